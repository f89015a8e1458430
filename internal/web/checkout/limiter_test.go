package checkout

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/limits"
)

// from returns a request of a client at an address with a port.
func from(address string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.RemoteAddr = address
	return r.WithContext(limits.NewContext(r.Context(), limits.Proxies{}.Client(r)))
}

// TestNetworksOfClients checks which networks count for a client.
func TestNetworksOfClients(t *testing.T) {
	for address, want := range map[string]string{
		"203.0.113.7:1": "203.0.113.7/32 1 ", "[::ffff:203.0.113.7]:1": "203.0.113.7/32 1 ",
		"[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64 1 2001:db8:1::/48 4 ",
		"127.0.0.1:1":           "", "[::1]:1": "", "10.1.2.3:1": "", "@": "",
	} {
		var got string
		for _, n := range networksOf(from(address)) {
			got += fmt.Sprint(n.prefix, n.weight, " ")
		}
		if got != want {
			t.Errorf("a client at %s counts as %q, want %q", address, got, want)
		}
	}
}

// TestNetworksBehindProxies uses proxies that report private addresses. Each belongs to one client.
func TestNetworksBehindProxies(t *testing.T) {
	r := from("10.1.2.3:1")
	r = r.WithContext(limits.WithProxied(r.Context()))
	if got := networksOf(r); len(got) != 1 || got[0].prefix.String() != "10.1.2.3/32" {
		t.Errorf("the client counts as %v", got)
	}
	if got := limits.Networks(r.Context()); len(got) != 1 || got[0].Client.Network.String() != "10.1.2.3/32" {
		t.Errorf("of payers' limits, the client has %v", got)
	}
}

// spend has each client use up a quota as far as it can, and returns the number of uses.
func spend(l *limiter, q quota, merchant, object string, clients ...string) (uses int) {
	now := newWorld().defaultNow()
	for _, client := range clients {
		for l.allow(now, from(client), q, merchant, object) {
			uses++
		}
	}
	return uses
}

// hosts returns n client addresses.
func hosts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("198.51.%d.%d:1", 100+i/256, i%256))
	}
	return all
}

// home returns a client address in each /64 network of an IPv6 /56.
func home() (all []string) {
	for i := range 256 {
		all = append(all, fmt.Sprintf("[2001:db8:1:ff%02x::1]:1", i))
	}
	return all
}

// TestNobodyClosesTheLinks uses up quotas at the links of one merchant, from one connection with an IPv6 /56, and then
// from very many clients. Clients elsewhere can still make invoices at links of that merchant and of others.
func TestNobodyClosesTheLinks(t *testing.T) {
	q := quota{all: AllLinkInvoices, ofObject: InvoicesOfLink, ofClient: InvoicesOfClient, divided: true}
	var l limiter
	at := func(merchant, link, client string, want bool) {
		t.Helper()
		if got := l.allow(newWorld().defaultNow(), from(client), q, merchant, link); got != want {
			t.Errorf("%s at the link %s of %s: allowed %t, want %t", client, link, merchant, got, want)
		}
	}
	used := 0
	for i := range 20 {
		used += spend(&l, q, "acme", fmt.Sprint("lnk_", i), home()...)
	}
	if used != InvoicesOfClient*SiteWeight {
		t.Errorf("a home connection makes %d invoices a minute, want %d", used, InvoicesOfClient*SiteWeight)
	}
	at("acme", "lnk_1", "203.0.113.1:1", true)
	at("globex", "lnk_99", "203.0.113.1:1", true)
	at("globex", "lnk_99", "[2001:db8:1:ff00::1]:1", false) // the site has used up its own
	for i := range 20 {
		used += spend(&l, q, "acme", fmt.Sprint("lnk_", i), hosts(512)...)
	}
	if used > AllLinkInvoices/2 {
		t.Errorf("%d invoices of one merchant are made, more than its share of %d", used, AllLinkInvoices/2)
	}
	at("globex", "lnk_99", "203.0.113.2:1", true)
	for m := range 6 {
		spend(&l, q, fmt.Sprint("merchant", m), fmt.Sprint("lnk_m", m), hosts(512)...)
	}
	at("initech", "lnk_x", "203.0.113.3:1", true)
}

// TestLimiterLeavesSome uses up quotas in random ways. A client network and a merchant without uses
// are not refused before the quota of all is used up. That quota also bounds the counts.
func TestLimiterLeavesSome(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := quota{all: rapid.IntRange(8, 200).Draw(t, "all"), ofClient: rapid.IntRange(1, 50).Draw(t, "ofClient"), divided: true}
		q.ofObject = rapid.IntRange(1, q.all/2).Draw(t, "ofObject")
		var l limiter
		now := newWorld().defaultNow()
		for range rapid.IntRange(0, 50).Draw(t, "steps") {
			client, merchant := rapid.IntRange(0, 5).Draw(t, "client"), rapid.IntRange(0, 2).Draw(t, "merchant")
			address := fmt.Sprintf("203.0.113.%d:1", client)
			if client > 3 {
				address = fmt.Sprintf("[2001:db8:%d:%d::1]:1", client, rapid.IntRange(0, 300).Draw(t, "network"))
			}
			object := fmt.Sprint(merchant, "o", rapid.IntRange(0, 3).Draw(t, "object"))
			for range rapid.IntRange(1, 60).Draw(t, "times") {
				l.allow(now, from(address), q, fmt.Sprint("m", merchant), object)
			}
		}
		used := l.used[party{}]
		if used > q.all || len(l.used) > 9*q.all+1 {
			t.Fatalf("%d uses and %d counts with a quota of %d", used, len(l.used), q.all)
		}
		if used < q.all && !l.allow(now, from("192.0.2.1:1"), q, "new", "new") {
			t.Fatalf("a client and a merchant that did nothing are refused after %d of %d uses", used, q.all)
		}
	})
}
