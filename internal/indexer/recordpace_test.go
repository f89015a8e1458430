package indexer

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestRecordPace checks that recording steps take about as long as creates may wait, and that at most about three
// quarters of the time go into the fixed cost of transactions, whatever a transaction or a transfer costs.
func TestRecordPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fixed := time.Duration(rapid.IntRange(0, int(3*time.Second)).Draw(t, "a transaction"))
		if rapid.Bool().Draw(t, "near") {
			fixed /= 1000
		}
		each := time.Duration(rapid.IntRange(int(time.Microsecond), int(time.Millisecond)).Draw(t, "a transfer"))
		p := newRecordPace()
		cost := func() time.Duration { return fixed + time.Duration(p.size)*each }
		for _, waited := range []bool{true, false, true} {
			turn := recordIdleTurn
			if waited {
				turn = recordTurn
			}
			for range 30 {
				before := p.size
				p.recorded(p.size, cost(), waited)
				if p.size < leastRecorded || p.size > mostRecorded || p.size > 2*before {
					t.Fatalf("steps of %d follow those of %d", p.size, before)
				}
			}
			took := cost()
			if wasted := fixed.Seconds() / took.Seconds(); wasted > 0.76 && p.size < mostRecorded {
				t.Fatalf("of steps of %d, which take %v, %.0f%% is the transaction", p.size, took, 100*wasted)
			}
			if p.size > p.least && took > turn*3/2 {
				t.Fatalf("steps of %d take %v, want about %v", p.size, took, turn)
			}
			if p.size < mostRecorded && took < turn/3 {
				t.Fatalf("steps of %d take only %v, want about %v", p.size, took, turn)
			}
			if least := time.Duration(p.least) * each; p.least > leastRecorded && least > 4*fixed {
				t.Fatalf("steps have %d at least, where a transaction takes %v by itself", p.least, fixed)
			}
		}
	})
}

// TestRecordPaceOfFew checks that the last blocks of a range, which hold few transfers, do not slow down the next.
func TestRecordPaceOfFew(t *testing.T) {
	t.Parallel()
	p := &recordPace{size: 1000, least: 100, warm: true, learned: true}
	p.recorded(10, recordIdleTurn/2, false)
	if p.size != 1000 {
		t.Errorf("steps of %d after one of 10, want 1000", p.size)
	}
	p.recorded(10, 2*recordIdleTurn, false)
	if p.size != 100 {
		t.Errorf("steps of %d after one of 10 that took too long, want the least, 100", p.size)
	}
}

// TestRecordPaceSplit checks that steps have all blocks in their order, begin with the child of the block before, and
// have no more transfers and events than allowed if that is possible.
func TestRecordPaceSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &recordPace{size: rapid.IntRange(1, 20).Draw(t, "size")}
		var blocks []ledger.Block
		number := uint64(1)
		for _, distance := range rapid.SliceOfN(rapid.Uint64Range(1, 2), 1, 30).Draw(t, "distances") {
			number += distance
			blocks = append(blocks, ledger.Block{
				Header:    invoice.Header{Number: number},
				Transfers: make([]invoice.Transfer, rapid.IntRange(0, 12).Draw(t, "transfers")),
				Registry:  make([]ledger.RegistryEvent, rapid.IntRange(0, 2).Draw(t, "events")),
			})
		}
		at := 0
		for next, rest := p.split(blocks); len(next) > 0; next, rest = p.split(rest) {
			dividable := false
			for i, b := range next {
				if b.Number != blocks[at].Number {
					t.Fatalf("block %d instead of %d", b.Number, blocks[at].Number)
				}
				at++
				dividable = dividable || i > 0 && b.Number == next[i-1].Number+1 && sizeOf(next[:i+1]...) > p.size
			}
			if dividable {
				t.Fatalf("a step of %d could have been divided", sizeOf(next...))
			}
			if len(rest) > 0 && rest[0].Number != next[len(next)-1].Number+1 {
				t.Fatalf("block %d begins a step after block %d", rest[0].Number, next[len(next)-1].Number)
			}
		}
		if at != len(blocks) {
			t.Fatalf("%d of %d blocks", at, len(blocks))
		}
	})
}
