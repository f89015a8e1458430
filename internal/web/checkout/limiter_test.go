package checkout

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout/locale"
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
		"[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64 1 2001:db8:1::/48 2 ",
		"127.0.0.1:1":           "", "[::1]:1": "", "10.1.2.3:1": "", "@": "",
	} {
		var got string
		for _, n := range networksOf(from(address)) {
			got += fmt.Sprint(n.prefix, n.weight, " ")
		}
		expect.Equal(t, got, want, "a client at %s counts as", address)
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
	q := quota{all: AllLinkInvoices, ofObject: InvoicesOfLink, ofClient: InvoicesOfClient}
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
	expect.Equal(t, used, InvoicesOfClient*limits.SiteWeight, "a home connection makes … invoices a minute:")
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
		q := quota{all: rapid.IntRange(8, 200).Draw(t, "all"), ofClient: rapid.IntRange(1, 50).Draw(t, "ofClient")}
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

// manyPages returns open pages of n invoices that are not kept up to date.
func manyPages(t *testing.T, n int) *openPages {
	t.Helper()
	c := newWorld().config()
	c.Feed = newFeed()
	p := New(c).open
	for i := range n {
		expect.Success(t)(p.join(fmt.Sprintf("inv_%d", i), nil))
	}
	return p
}

// Pages are spread over the slots of a round, also after others have left.
func TestSlots(t *testing.T) {
	p := manyPages(t, 10*slotsOfRound)
	for i := range 5 * slotsOfRound {
		p.leave(fmt.Sprintf("inv_%d", i), nil, nil)
	}
	for i, slot := range p.slots {
		expect.Len(t, slot, 5, "slot %d has … pages:", i)
		for index, page := range slot {
			if page.slot != i || page.index != index || p.pages[page.id] != page {
				t.Errorf("page %s of slot %d, index %d says %d, %d", page.id, i, index, page.slot, page.index)
			}
		}
	}
	expect.Equal(t, len(p.pages), 5*slotsOfRound, "pages are open:")
}

// In a slot, rereadBatch pages are read, and in addition the pages with news.
func TestRereadsAreBounded(t *testing.T) {
	p := manyPages(t, 2*rereadBatch)
	p.markAll()
	p.rounds.rereads = rereadBatch
	last := fmt.Sprintf("inv_%d", 2*rereadBatch-1)
	p.markOne(last)
	taken := 0
	for page := p.takeChanged(); page != nil; page = p.takeChanged() {
		if taken++; (page.id == last) != (taken == 1) {
			t.Errorf("page %d is %s", taken, page.id)
		}
	}
	expect.Equal(t, taken, rereadBatch+1, "pages were read in a slot:")
	p.rounds.rereads = rereadBatch
	for page := p.takeChanged(); page != nil; page = p.takeChanged() {
		taken++
	}
	if taken != 2*rereadBatch {
		t.Errorf("%d reads of %d pages", taken, 2*rereadBatch)
	}
}

// A page is read again if its first read may have been before a reorg, because its chain is not known yet.
func TestReorgDuringTheFirstRead(t *testing.T) {
	p := manyPages(t, 1)
	read, err := p.join("inv_known", nil)
	expect.OK(t, err)
	p.adopt("inv_known", read, pageStatus{chainKey: p.checkout.chainKeys[0]})
	for range slotsOfRound {
		p.observe(t.Context()) // the first look at the chain counts as a reorg
	}
	if !p.pages["inv_0"].changed || p.pages["inv_known"].changed {
		t.Error("not the page that was never read is read again")
	}
}

// cursorReader counts the reads of a cursor.
type cursorReader struct {
	*world
	reads int
}

func (r *cursorReader) Cursor(ctx context.Context, key string) (ledger.Cursor, error) {
	r.reads++
	return r.world.Cursor(ctx, key)
}

// A cursor is read once a second, and whenever a payment is above it.
func TestCursorIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &cursorReader{world: newWorld()}
		conf := r.config()
		conf.Reader = r
		c := New(conf)
		have := func() uint64 {
			s, err := c.currentStatus(t.Context(), testID)
			expect.OK(t, err)
			if s.Confirmations == nil {
				return 0
			}
			return s.Confirmations.Have
		}
		for range 3 {
			have()
		}
		expect.Equal(t, r.reads, 1, "three polls read it … times:")
		r.cursor.Indexed.Number++
		r.payments = []invoice.Payment{payment(4_900_123, r.cursor.Indexed.Number, defaultNow, invoice.Pending)}
		if got := have(); got != 1 || r.reads != 2 {
			t.Errorf("a payment above it has %d confirmations after %d reads", got, r.reads)
		}
		clock.Sleep(t.Context(), cursorAge, nil)
		have()
		expect.Equal(t, r.reads, 3, "a second later it was read … times:")
	})
}

func TestIsBlind(t *testing.T) {
	now := invoice.Unix(defaultNow)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, test := range map[string]struct {
		block, synced time.Duration // ages
		catchingUp    bool
		halted        bool
		want          bool
	}{
		"at the head":                            {time.Second, time.Second, false, false, false},
		"halted":                                 {time.Second, time.Second, false, true, true},
		"a block of a minute":                    {BlindAfter, time.Hour, false, false, false},
		"a block older than a minute":            {BlindAfter + time.Second, time.Hour, false, false, true},
		"a chain that pauses":                    {time.Hour, BlindAfter, false, false, false},
		"a chain that pauses, and no sync":       {time.Hour, BlindAfter + time.Nanosecond, false, false, true},
		"far behind":                             {time.Hour, time.Second, true, false, true},
		"this process is behind, another is not": {time.Second, time.Hour, true, false, false},
		"this machine's clock is an hour behind": {-time.Hour, time.Second, false, false, false},
		"that, and no sync":                      {-time.Hour, time.Hour, false, false, true},
		"this machine's clock is an hour ahead":  {time.Hour, time.Second, false, false, false},
	} {
		f := following{Progress: Progress{Synced: ago(test.synced), CatchingUp: test.catchingUp}, indexed: invoice.Header{Time: ago(test.block)}, halted: test.halted}
		expect.Equal(t, f.isBlind(now), test.want, "%s: blind is", name)
	}
	if !(following{}).isBlind(now) {
		t.Error("a chain that was never read is not blind")
	}
}

func TestUsualTime(t *testing.T) {
	for took, want := range map[time.Duration]string{
		0: "5 s", 5 * time.Second: "5 s", 6 * time.Second: "10 s", 31 * time.Second: "1 min", 61 * time.Second: "2 min",
		13 * time.Minute: "15 min", 19 * time.Minute: "20 min", time.Hour: "1 h", time.Hour + time.Second: "",
	} {
		f := following{indexed: invoice.Header{Time: invoice.Unix(defaultNow).Add(took)}, confirmed: invoice.Header{Time: invoice.Unix(defaultNow)}}
		s := pageInput{text: locale.English(), chain: localChain(), following: f}
		if got := s.confirmations(1).UsualText; strings.ReplaceAll(got, "\u00a0", " ") != want {
			t.Errorf("of %v the page says %q, want %q", took, got, want)
		}
	}
}
