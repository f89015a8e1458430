package indexer

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// timeline is a chain with a fixed block time. Its head is read at every step, with a clock that is ahead of it.
type timeline struct {
	every, ahead, step time.Duration
	late               time.Duration // from a block's time until the nodes have it
}

// play returns all skews that are reported within the duration.
func (p timeline) play(long time.Duration) (told []time.Duration) {
	var s skew
	genesis := time.Unix(1_800_000_000, 0)
	for t := time.Duration(0); t < long; t += p.step {
		age := max(0, t-p.late)
		h := chain.Header{Header: invoice.Header{Number: uint64(age/p.every) + 1, Time: invoice.Unix(genesis.Add(age.Truncate(p.every)).Unix())}}
		if ahead, ok := s.observe(h, genesis.Add(t+p.ahead)); ok {
			told = append(told, ahead)
		}
	}
	return told
}

func TestSkew(t *testing.T) {
	for name, test := range map[string]struct {
		timeline
		least, most time.Duration // of the reported skews
		quiet       bool          // no skew may be reported
	}{
		"right":                  {timeline{12 * time.Second, 0, time.Second, 2 * time.Second}, 0, 5 * time.Second, false},
		"blocks are rare":        {timeline{10 * time.Minute, 0, time.Second, 0}, 0, 2 * time.Second, false},
		"several a second":       {timeline{250 * time.Millisecond, 0, time.Second, 0}, 0, 2 * time.Second, false},
		"the clock is ahead":     {timeline{12 * time.Second, time.Minute, time.Second, 0}, time.Minute, 65 * time.Second, false},
		"the clock is behind":    {timeline{12 * time.Second, -time.Minute, time.Second, 0}, -time.Minute, -55 * time.Second, false},
		"the chain's time lags":  {timeline{2 * time.Second, 0, time.Second, 90 * time.Second}, 90 * time.Second, 95 * time.Second, false},
		"it is seldom asked for": {timeline{12 * time.Second, 0, 11 * time.Second, 0}, 0, 0, true},
	} {
		told := test.play(2 * time.Hour)
		if (len(told) == 0) != test.quiet {
			t.Errorf("%s: %d skews were reported", name, len(told))
		}
		for _, ahead := range told {
			if ahead < test.least || ahead > test.most {
				t.Errorf("%s: reported %s, want %s to %s", name, ahead, test.least, test.most)
				break
			}
		}
	}
}

// TestSkewIsLogged sets the clock wrong for a while, with a single odd block before and after. The skew is logged and
// shown once, and so is its end, and indexing continues.
func TestSkewIsLogged(t *testing.T) {
	var log bytes.Buffer
	var now time.Time
	f := newFixture(t, nil)
	f.restart(t, func(c *Config) {
		c.Now, c.Logger = func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, phase := range []struct {
		off   time.Duration
		heads int
		want  bool // afterwards
	}{
		{0, 6, false}, {time.Hour, 1, false}, {0, 6, false}, {40 * time.Second, 6, true}, {27 * time.Second, 6, true},
		{0, 6, false}, {-31 * time.Second, 6, true},
	} {
		for range phase.heads {
			now = time.Unix(f.chain.Mine().Time, 0).Add(phase.off)
			f.skew.lastLook = now.Add(-time.Second)
			expect.Success(t)(f.sync(t.Context()))
		}
		if st := f.Status(); st.Skewed != phase.want {
			t.Errorf("off by %s: skewed is %t, %v", phase.off, st.Skewed, st.Skew)
		}
	}
	if warned, cleared := strings.Count(log.String(), "clock differs from"), strings.Count(log.String(), "matches the chain's time again"); warned != 2 || cleared != 1 {
		t.Errorf("it was said %d times and taken back %d times:\n%s", warned, cleared, log.String())
	}
	if got, want := f.ledger.cursor.Indexed.Number, f.chain.Head().Number; got != want {
		t.Errorf("read up to block %d of %d", got, want)
	}
}
