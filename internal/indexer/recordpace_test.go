package indexer

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// TestRecordPace checks that steps of recording come near the time for which creates may wait, whatever a transaction and a
// transfer cost, and stay within their bounds.
func TestRecordPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fixed := time.Duration(rapid.IntRange(0, int(recordTurn)/2).Draw(t, "a transaction"))
		each := time.Duration(rapid.IntRange(1, int(time.Millisecond)).Draw(t, "a transfer"))
		p := newRecordPace()
		for _, waited := range []bool{true, false, true} {
			turn := recordIdleTurn
			if waited {
				turn = recordTurn
			}
			var took time.Duration
			for range 20 {
				before := p.transfers
				took = fixed + time.Duration(before)*each
				p.recorded(blocksOf(before), took, waited)
				if p.transfers < leastRecorded || p.transfers > mostRecorded || p.transfers > 2*before {
					t.Fatalf("%d transfers follow %d", p.transfers, before)
				}
			}
			if p.transfers > leastRecorded && took > turn*3/2 {
				t.Fatalf("%d transfers take %v, want about %v", p.transfers, took, turn)
			}
			if p.transfers < mostRecorded && took < turn/3 {
				t.Fatalf("%d transfers take only %v, want about %v", p.transfers, took, turn)
			}
		}
	})
}

// TestRecordPaceOfFew checks that the last blocks of a range, which hold few transfers, do not slow down the next.
func TestRecordPaceOfFew(t *testing.T) {
	t.Parallel()
	p := &recordPace{1000}
	p.recorded(blocksOf(10), recordIdleTurn/2, false)
	if p.transfers != 1000 {
		t.Errorf("%d transfers after a step of 10, want 1000", p.transfers)
	}
	p.recorded(blocksOf(10), 2*recordIdleTurn, false)
	if p.transfers != leastRecorded {
		t.Errorf("%d transfers after 10 that took too long, want %d", p.transfers, leastRecorded)
	}
}

// TestRecordPaceSplit checks that steps have all blocks in their order, begin with the child of the block before, and have
// no more transfers than allowed where that can be.
func TestRecordPaceSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &recordPace{rapid.IntRange(1, 20).Draw(t, "transfers")}
		var blocks []settle.Block
		number := uint64(1)
		for _, distance := range rapid.SliceOfN(rapid.Uint64Range(1, 2), 1, 30).Draw(t, "distances") {
			b := blocksOf(rapid.IntRange(0, 12).Draw(t, "in a block"))[0]
			number += distance
			b.Number = number
			blocks = append(blocks, b)
		}
		at := 0
		for next, rest := p.split(blocks); len(next) > 0; next, rest = p.split(rest) {
			n, dividable := 0, false
			for i, b := range next {
				if b.Number != blocks[at].Number {
					t.Fatalf("block %d instead of %d", b.Number, blocks[at].Number)
				}
				at++
				if n += len(b.Transfers); i > 0 && b.Number == next[i-1].Number+1 {
					dividable = dividable || n > p.transfers
				}
			}
			if dividable {
				t.Fatalf("a step of %d transfers could have been divided", n)
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

// blocksOf returns one block with so many transfers.
func blocksOf(transfers int) []settle.Block {
	return []settle.Block{{Transfers: make([]invoice.Transfer, transfers)}}
}
