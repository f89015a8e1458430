package checkout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

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

// In a round, rereadBatch pages are read, and in addition the pages with news.
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
	expect.Equal(t, taken, rereadBatch+1, "pages were read in a round:")
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
	p.observe(t.Context()) // the first look at the chain counts as a reorg
	if !p.pages["inv_0"].changed || p.pages["inv_known"].changed {
		t.Error("not the page that was never read is read again")
	}
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
