package checkout

import (
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/checkout/locale"
)

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
		if got := f.isBlind(now); got != test.want {
			t.Errorf("%s: blind is %t, want %t", name, got, test.want)
		}
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
