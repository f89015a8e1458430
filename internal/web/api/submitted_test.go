package api

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/limits"
)

// TestAuthorizationsOfClients submits authorizations from one client network, each for another invoice,
// and then from all networks of an IPv6 site. A refused authorization does not count.
func TestAuthorizationsOfClients(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	s, invoices := newSubmitted(func() time.Time { return now }), 0
	// fill submits authorizations until the client is refused, and returns how many were accepted.
	fill := func(client string) (n int) {
		ctx := limits.NewContext(t.Context(), netip.MustParseAddr(client))
		for ; n < 10*AuthorizationsOfClient; n++ {
			invoices++
			err := s.take(ctx, fmt.Sprint("inv_", invoices))
			if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) && exceeded.Limit == "authorizations" {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	for client, want := range map[string]int{"203.0.113.1": AuthorizationsOfClient, "203.0.113.2": AuthorizationsOfClient, "127.0.0.1": 10 * AuthorizationsOfClient} {
		if n := fill(client); n != want {
			t.Errorf("%s submits %d, want %d", client, n, want)
		}
	}
	site := 0
	for i := range 10 {
		site += fill(fmt.Sprintf("2001:db8:1:%x::1", i))
	}
	if want := limits.SiteWeight * AuthorizationsOfClient; site != want {
		t.Errorf("the networks of a site submit %d, want %d", site, want)
	}
	last := fmt.Sprint("inv_", invoices) // its authorization was refused
	for i := range AuthorizationsOfInvoice {
		if err := s.take(t.Context(), last); err != nil {
			t.Fatalf("authorization %d of an invoice: %v", i, err)
		}
	}
	if err := s.take(t.Context(), last); err == nil {
		t.Error("an invoice has more than it may")
	}
	now = now.Add(time.Second)
	if n := fill("203.0.113.1"); n != 1 {
		t.Errorf("after a second %d more, want 1", n)
	}
}
