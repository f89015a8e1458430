package indexer

import (
	"time"

	"github.com/quittance/quittance/internal/ledger"
)

const (
	// leastRecorded and mostRecorded bound the transfers and events of final blocks that are recorded in one step. A
	// block is not divided.
	leastRecorded, mostRecorded = 50, 6400
	// recordTurn is how long a step may take while creates wait for it, because on SQLite it occupies the only writer.
	// recordIdleTurn is the time while no create waits; a first create may have to wait that long.
	recordTurn, recordIdleTurn = 20 * time.Millisecond, 200 * time.Millisecond
	// worthDoubling is how much faster steps of twice the size must be for the size to count as too small.
	worthDoubling = 1.6
)

// recordPace is how many transfers and events of final blocks are recorded in one step, so that creates wait little for
// it. It begins with few and doubles them while that makes recording faster, because a transaction takes seconds if the
// database is far away.
type recordPace struct {
	size    int
	warm    bool    // the first step, which prepares statements, is over
	least   int     // lower bound of the size: doubling it was not faster
	learned bool    // least is known
	rate    float64 // items per second of the step before, until least is known
}

func newRecordPace() *recordPace { return &recordPace{size: leastRecorded, least: leastRecorded} }

// sizeOf returns how many transfers and events blocks have.
func sizeOf(blocks ...ledger.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Transfers) + len(b.Registry)
	}
	return n
}

// split returns the first of the blocks, at least one, which are recorded in one step, and the others. The first of the
// others is the child of the block before it, as the ledger requires of new blocks.
func (p *recordPace) split(blocks []ledger.Block) (next, rest []ledger.Block) {
	n := 0
	for i, b := range blocks {
		if n += sizeOf(b); n > p.size && i > 0 && b.Number == blocks[i-1].Number+1 {
			return blocks[:i:i], blocks[i:]
		}
	}
	return blocks, nil
}

// recorded adapts the pace to the number of items recorded, the time it took, and whether creates waited then.
func (p *recordPace) recorded(n int, took time.Duration, waited bool) {
	turn := recordIdleTurn
	if waited {
		turn = recordTurn
	}
	if n < p.size/2 && took <= turn {
		return // a few items do not predict many
	}
	rate := float64(n) / max(took, time.Microsecond).Seconds()
	if !p.warm {
		p.warm = true
		return
	}
	if !p.learned && n >= p.size/2 {
		if p.rate == 0 || rate >= worthDoubling*p.rate {
			p.least, p.rate = p.size, rate
			p.size = min(2*p.size, mostRecorded)
			p.learned = p.least == mostRecorded
			return
		}
		p.learned = true
	}
	p.size = min(max(int(min(rate*turn.Seconds(), mostRecorded)), p.least), 2*p.size, mostRecorded)
}
