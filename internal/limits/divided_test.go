package limits

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

// from returns the context of a client at an address.
func from(address string) context.Context {
	return NewContext(context.Background(), netip.MustParseAddr(address))
}

// TestNetworksOfClients checks which networks count for a client.
func TestNetworksOfClients(t *testing.T) {
	t.Parallel()
	all := func(ctx context.Context) (got string) {
		for _, n := range Networks(ctx) {
			got += fmt.Sprint(n.Client.Network, n.Weight, " ")
		}
		return got
	}
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7/32 1 ", "2001:db8:1:2:3::4": "2001:db8:1:2::/64 1 2001:db8:1::/48 2 ", "127.0.0.1": "", "::1": "", "10.1.2.3": "",
	} {
		expect.Equal(t, all(from(address)), want, "a client at %s counts as", address)
	}
	expect.Equal(t, all(context.Background()), "", "a client without an address counts as")
	expect.Equal(t, all(WithProxied(from("10.1.2.3"))), "10.1.2.3/32 1 ", "a client that a proxy reports counts as")
}

// spend has each client use up a quota as far as it can, and returns the number of uses.
func spend(d *Divided, merchant, object string, clients ...string) (uses int) {
	for _, client := range clients {
		for d.Take(from(client), merchant, object) == nil {
			uses++
		}
	}
	return uses
}

// hosts returns n client addresses.
func hosts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("198.51.%d.%d", 100+i/256, i%256))
	}
	return all
}

// home returns a client address in each /64 network of an IPv6 /56.
func home() (all []string) {
	for i := range 256 {
		all = append(all, fmt.Sprintf("2001:db8:1:ff%02x::1", i))
	}
	return all
}

// TestNobodyUsesUpAQuota uses up quotas at the objects of one merchant, from one connection with an IPv6 /56, and then
// from very many clients. Clients elsewhere can still use objects of that merchant and of others.
func TestNobodyUsesUpAQuota(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	q := Quota{Name: "links", All: 300, OfObject: 60, OfClient: 20}
	d := NewDivided(q, c.now)
	at := func(merchant, object, client string, want bool) {
		t.Helper()
		err := d.Take(from(client), merchant, object)
		if exceeded := (*ExceededError)(nil); (err == nil) != want || err != nil && (!errors.As(err, &exceeded) || exceeded.Limit != "links" || exceeded.RetryAfter != "60") {
			t.Errorf("%s at %s of %s: %v, want %t", client, object, merchant, err, want)
		}
	}
	expect.Equal(t, spend(d, "tea", "lnk_0", "203.0.113.9"), q.OfClient, "one client uses")
	used := 0
	for i := range 20 {
		used += spend(d, "acme", fmt.Sprint("lnk_", i), home()...)
	}
	expect.Equal(t, used, q.OfClient*SiteWeight, "a home connection uses")
	at("acme", "lnk_1", "203.0.113.1", true)
	at("globex", "lnk_99", "203.0.113.1", true)
	at("globex", "lnk_99", "2001:db8:1:ff00::1", false) // the site has used up its own
	expect.Equal(t, spend(d, "globex", "lnk_98", hosts(512)...), q.OfObject, "many clients use one object")
	for i := range 20 {
		used += spend(d, "acme", fmt.Sprint("lnk_", i), hosts(512)...)
	}
	if used > q.All/2 {
		t.Errorf("%d uses of one merchant, more than its share of %d", used, q.All/2)
	}
	at("globex", "lnk_99", "203.0.113.2", true)
	for m := range 6 {
		spend(d, fmt.Sprint("merchant", m), fmt.Sprint("lnk_m", m), hosts(512)...)
	}
	at("initech", "lnk_x", "203.0.113.3", true)
	c.at = c.at.Add(QuotaWindow)
	at("globex", "lnk_99", "2001:db8:1:ff00::1", true)
}

// TestOneObjectIsDivided leaves others a part of the quota of one object.
func TestOneObjectIsDivided(t *testing.T) {
	t.Parallel()
	c := &stopped{time.Unix(1_764_000_000, 0)}
	d := NewDivided(Quota{All: 300, OfObject: 15, OfClient: 30}, c.now)
	expect.Equal(t, spend(d, "acme", "inv_1", "203.0.113.7"), 8, "a stranger uses")
	expect.Equal(t, spend(d, "acme", "inv_1", "203.0.113.8"), 4, "the payer uses")
	expect.Equal(t, spend(d, "acme", "inv_1", hosts(9)...), 3, "others use")
}

// TestQuotaLeavesSome uses up quotas in random ways. A client network and a merchant without uses
// are not refused before the quota of all is used up. That quota also bounds the counts.
func TestQuotaLeavesSome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := Quota{All: rapid.IntRange(8, 200).Draw(t, "all"), OfClient: rapid.IntRange(1, 50).Draw(t, "ofClient")}
		q.OfObject = rapid.IntRange(1, q.All/2).Draw(t, "ofObject")
		c := &stopped{time.Unix(1_764_000_000, 0)}
		d := NewDivided(q, c.now)
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			client, merchant := rapid.IntRange(0, 5).Draw(t, "client"), rapid.IntRange(0, 2).Draw(t, "merchant")
			address := fmt.Sprintf("203.0.113.%d", client)
			if client > 3 {
				address = fmt.Sprintf("2001:db8:%d:%d::1", client, rapid.IntRange(0, 300).Draw(t, "network"))
			}
			object := fmt.Sprint(merchant, "o", rapid.IntRange(0, 3).Draw(t, "object"))
			for range rapid.IntRange(1, 60).Draw(t, "times") {
				_ = d.Take(from(address), fmt.Sprint("m", merchant), object) // some are refused
			}
		}
		used := d.used[Party{}]
		if used > q.All || len(d.used) > 9*q.All+1 {
			t.Fatalf("%d uses and %d counts with a quota of %d", used, len(d.used), q.All)
		}
		if used < q.All && d.Take(from("192.0.2.1"), "new", "new") != nil {
			t.Fatalf("a client and a merchant that did nothing are refused after %d of %d uses", used, q.All)
		}
	})
}
