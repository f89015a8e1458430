package indexer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// block makes a header with a hash that is made of a number and a fork.
func block(number uint64, fork byte, parent invoice.Header) invoice.Header {
	h := invoice.Header{Number: number, Parent: parent.Hash, Time: invoice.Unix(int64(number))}
	binary.BigEndian.PutUint64(h.Hash[:], number)
	h.Hash[31] = fork
	return h
}

// line makes a chain of blocks from first through last above parent.
func line(first, last uint64, fork byte, parent invoice.Header) []invoice.Header {
	var chain []invoice.Header
	for n := first; n <= last; n++ {
		parent = block(n, fork, parent)
		chain = append(chain, parent)
	}
	return chain
}

// TestPart divides the blocks to confirm by the number of their pending transfers. Block 12 is not known.
func TestPart(t *testing.T) {
	a := line(0, 14, 'a', invoice.Header{})
	tracker := NewTracker(ledger.Progress{Started: true, Indexed: a[14], Confirmed: a[10]}, []invoice.Header{a[9], a[10], a[11], a[13], a[14]})
	for _, test := range []struct {
		blocks []uint64 // of pending transfers
		at     uint64
		want   uint64
	}{
		{nil, 14, 14}, {[]uint64{11, 13}, 14, 14}, {[]uint64{14, 11, 13}, 14, 13}, {[]uint64{13, 11, 11}, 14, 11}, {[]uint64{11, 12, 12, 13}, 14, 11},
		{[]uint64{12, 12, 13}, 14, 11}, {[]uint64{11, 11, 11}, 14, 11}, {[]uint64{12, 12, 12}, 14, 11}, {[]uint64{11, 13, 13}, 13, 11}, {[]uint64{13, 13, 13}, 11, 11},
	} {
		var pending []invoice.Transfer
		for _, n := range test.blocks {
			pending = append(pending, invoice.Transfer{Position: invoice.Position{BlockNumber: n}})
		}
		expect.Equal(t, tracker.Part(a[test.at], pending, 2).Number, test.want, "transfers in %v, through %d:", test.blocks, test.at)
	}
}

// TestClassify walks through what one header can mean to a chain that is read up
// to block 14, is final up to block 10 and has a gap at block 12.
func TestClassify(t *testing.T) {
	a := line(0, 16, 'a', invoice.Header{})
	stored := []invoice.Header{a[9], a[10], a[11], a[13], a[14]}
	tracker := NewTracker(ledger.Progress{Started: true, Indexed: a[14], Confirmed: a[10]}, stored)
	b := func(n uint64) invoice.Header { return line(n, n, 'b', a[n-1])[0] }           // forks off at n
	c := func(n uint64) invoice.Header { return block(n, 'c', block(n-1, 'c', a[0])) } // forks off earlier
	for _, test := range []struct {
		h    invoice.Header
		want Step
	}{
		{a[14], Step{Verdict: Known}},
		{a[15], Step{Verdict: Extends}},
		{a[16], Step{Verdict: Ask, Ask: 15}},
		{b(15), Step{Verdict: Extends}},
		{c(15), Step{Verdict: Ask, Ask: 14}},
		{b(14), Step{Verdict: Reorg, Ancestor: a[13]}},
		{c(14), Step{Verdict: Ask, Ask: 13}},
		{a[13], Step{Verdict: Reorg, Ancestor: a[13]}},
		{b(13), Step{Verdict: Ask, Ask: 11}}, // block 12 is not known, so its parent is no evidence
		{a[11], Step{Verdict: Reorg, Ancestor: a[11]}},
		{b(11), Step{Verdict: Reorg, Ancestor: a[10]}},
		{c(11), Step{Verdict: Violation}},
		{a[10], Step{Verdict: Reorg, Ancestor: a[10]}},
		{b(10), Step{Verdict: Violation}},
		{a[3], Step{Verdict: Ask, Ask: 10}},
	} {
		if got := tracker.Classify(test.h); got != test.want {
			t.Errorf("block %d%c: %+v, want %+v", test.h.Number, test.h.Hash[31], got, test.want)
		}
	}

	tracker.Rewind(a[13])
	tracker.Finalize(a[11])
	tracker.Append(b(14))
	if want := []invoice.Header{a[11], a[13], b(14)}; !slices.Equal(tracker.blocks, want) {
		t.Errorf("blocks are %v, want %v", tracker.blocks, want)
	}
	if h, ok := tracker.At(12); !ok || h != a[11] {
		t.Errorf("At(12) = %+v, %t; want block 11", h, ok)
	}
	if h, ok := tracker.At(10); ok {
		t.Errorf("At(10) = %+v; want none below the final block", h)
	}
}

// TestLinked finds the block from which the parents are known to lead up to the tip. They do not lead over a gap, and
// not if the newest block was not stored.
func TestLinked(t *testing.T) {
	a := line(0, 16, 'a', invoice.Header{})
	bare := a[14]
	bare.Parent = invoice.Hash{} // as in the cursor
	cursor := ledger.Progress{Started: true, Indexed: bare, Confirmed: a[10]}
	for _, test := range []struct {
		stored []invoice.Header
		want   uint64
	}{
		{a[10:15], 10}, {[]invoice.Header{a[11], a[13], a[14]}, 13}, {a[10:14], 14}, {nil, 14},
		{append(append([]invoice.Header{}, a[10:14]...), block(14, 'b', a[13])), 14},
	} {
		tracker := NewTracker(cursor, test.stored)
		if got := tracker.Linked(); got != test.want || tracker.Tip().Hash != a[14].Hash {
			t.Errorf("with %d blocks stored, those from %d on lead to block %d, want %d and 14", len(test.stored), got, tracker.Tip().Number, test.want)
		}
	}
	tracker := NewTracker(ledger.Progress{Started: true, Indexed: a[10], Confirmed: a[10]}, nil)
	tracker.Append(a[11])
	tracker.Append(block(12, 'a', a[11]))
	expect.Equal(t, tracker.Linked(), 10, "blocks that follow each other lead up from")
}

// TestTrackerFollowsAnyFork is a state machine: a model chain grows and forks as far as finality allows, and the
// tracker gets the headers that it asks for.
func TestTrackerFollowsAnyFork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		genesis := block(0, 0, invoice.Header{})
		model := []invoice.Header{genesis}
		tracker := NewTracker(ledger.Progress{Started: true, Indexed: genesis, Confirmed: genesis}, nil)
		made := byte(0)
		grow := func(n int) {
			made++
			model = append(model, line(uint64(len(model)), uint64(len(model)+n-1), made, model[len(model)-1])...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"grow": func(t *rapid.T) { grow(rapid.IntRange(1, 6).Draw(t, "blocks")) },
			"fork": func(t *rapid.T) {
				depth := rapid.IntRange(0, len(model)-1-int(tracker.Final().Number)).Draw(t, "depth")
				model = model[:len(model)-depth]
				grow(rapid.IntRange(1, depth+2).Draw(t, "blocks"))
			},
			"follow": func(t *rapid.T) {
				head := model[len(model)-1]
				if head.Number >= tracker.Tip().Number {
					feed(t, tracker, model)
					if tracker.Tip() != head {
						t.Fatalf("the tip is %+v, want %+v", tracker.Tip(), head)
					}
				}
			},
			"skip": func(*rapid.T) {
				// A range was read: only its last block is kept.
				head := model[len(model)-1]
				if tip := tracker.Tip(); head.Number > tip.Number && model[tip.Number] == tip {
					tracker.Append(head)
				}
			},
			"finalize": func(t *rapid.T) {
				n := rapid.IntRange(0, len(model)-1).Draw(t, "number")
				if h, ok := tracker.At(uint64(n)); ok && model[h.Number] == h {
					tracker.Finalize(h)
				}
			},
			"restart": func(t *rapid.T) {
				cursor := ledger.Progress{Started: true, Indexed: tracker.Tip(), Confirmed: tracker.Final()}
				again := NewTracker(cursor, tracker.blocks)
				if !slices.Equal(again.blocks, tracker.blocks) {
					t.Fatalf("loaded again the blocks are %v, want %v", again.blocks, tracker.blocks)
				}
				tracker = again
			},
			"": func(t *rapid.T) {
				for i, h := range tracker.blocks[1:] {
					if below := tracker.blocks[i]; h.Number <= below.Number || (h.Number == below.Number+1 && h.Parent != below.Hash) {
						t.Fatalf("block %+v follows %+v", h, below)
					}
				}
			},
		})
	})
}

// feed brings the tracker to the model's head, as the loop does.
func feed(t *rapid.T, tracker *Tracker, model []invoice.Header) {
	final := tracker.Final()
	h := model[len(model)-1]
	for steps := 0; ; steps++ {
		if steps > 10*len(model) {
			t.Fatal("the tracker asks for ever")
		}
		switch step := tracker.Classify(h); step.Verdict {
		case Known:
			return
		case Extends:
			tracker.Append(h)
			h = model[len(model)-1]
		case Ask:
			h = model[step.Ask]
		case Reorg:
			if model[step.Ancestor.Number] != step.Ancestor || step.Ancestor.Number < final.Number {
				t.Fatalf("rolls back to %+v, which is not common or below the final block %+v", step.Ancestor, final)
			}
			tracker.Rewind(step.Ancestor)
			h = model[len(model)-1]
		case Violation:
			t.Fatalf("block %+v is said to violate finality at %+v", h, final)
		}
	}
}

// TestTrackerReportsEveryViolation forks below the final block and above it, and expects a violation only if the final
// block itself was replaced.
func TestTrackerReportsEveryViolation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tip := rapid.Uint64Range(1, 20).Draw(t, "tip")
		final := rapid.Uint64Range(0, tip).Draw(t, "final")
		fork := rapid.Uint64Range(1, tip).Draw(t, "fork")
		head := rapid.Uint64Range(tip, tip+3).Draw(t, "head")
		a := line(0, tip, 'a', invoice.Header{})
		tracker := NewTracker(ledger.Progress{Started: true, Indexed: a[tip], Confirmed: a[final]}, a)
		b := append(slices.Clone(a[:fork]), line(fork, head, 'b', a[fork-1])...)
		h := b[head]
		for range 100 {
			step := tracker.Classify(h)
			switch {
			case step.Verdict == Ask:
				h = b[step.Ask]
				continue
			case fork <= final && step.Verdict != Violation, fork > final && step != (Step{Verdict: Reorg, Ancestor: a[fork-1]}):
				t.Fatalf("fork at block %d, final block %d: %+v", fork, final, step)
			}
			return
		}
		t.Fatal("the tracker asks for ever")
	})
}

func ExampleTracker() {
	a := line(0, 3, 'a', invoice.Header{})
	tracker := NewTracker(ledger.Progress{Started: true, Indexed: a[3], Confirmed: a[1]}, a)
	b := line(3, 4, 'b', a[2])
	for _, h := range []invoice.Header{b[1], b[0]} {
		step := tracker.Classify(h)
		fmt.Println(step.Verdict == Ask, step.Ask, step.Verdict == Reorg, step.Ancestor.Number)
	}
	// Output:
	// true 3 false 0
	// false 0 true 2
}

func TestAhead(t *testing.T) {
	of := func(numbers ...uint64) *Tracker {
		tracker := &Tracker{}
		for _, n := range numbers {
			tracker.Append(invoice.Header{Number: n})
		}
		return tracker
	}
	for _, test := range []struct {
		kept []uint64
		most uint64
		want uint64
	}{
		{[]uint64{5}, 10, 5},
		{[]uint64{5, 6, 7}, 10, 7},
		{[]uint64{5, 6, 7}, 1, 6},
		{[]uint64{5, 7, 30, 31}, 10, 7},
		{[]uint64{5, 30, 31}, 10, 30}, // blocks that were read as a range
	} {
		expect.Equal(t, of(test.kept...).Ahead(test.most).Number, test.want, "%d ahead of %v:", test.most, test.kept)
	}
}

// timeline is a chain with a fixed block time. Its head is read at every step, with a clock that is ahead of it.
type timeline struct {
	every, ahead, step time.Duration
	late               time.Duration // from a block's time until the nodes have it
}

// play returns all skews that are reported within the duration.
func (p timeline) play(long time.Duration) (told []time.Duration) {
	var s skew
	genesis := time.Unix(1_800_000_000, 0)
	s.observe(chain.Header{Header: invoice.Header{Number: 1 << 40, Time: invoice.Unix(1)}}, genesis.Add(-time.Hour)) // invented
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
