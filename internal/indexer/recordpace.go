package indexer

import (
	"time"

	"github.com/quittance/quittance/internal/settle"
)

const (
	// leastRecorded and mostRecorded bound the transfers and events of final blocks that are recorded at once. A block is not divided.
	leastRecorded, mostRecorded = 50, 6400
	// recordTurn is how long that may take while creates wait for it, since on SQLite it has the only writer, and
	// recordIdleTurn while none does. A first create waits for the latter.
	recordTurn, recordIdleTurn = 20 * time.Millisecond, 200 * time.Millisecond
	// worthDoubling is how much faster steps of twice the size have to be for those of the size to be too small.
	worthDoubling = 1.6
)

// recordPace is how many transfers and events of final blocks are recorded at once, so that creates wait little for it. It
// begins with few and doubles them as long as that pays, since a transaction takes seconds where the database is far away.
type recordPace struct {
	size    int
	warm    bool    // the first step is over, which prepares statements
	least   int     // so many at least: the size whose double was not faster
	learned bool    // least is known
	rate    float64 // of the step before, in a second, until then
}

func newRecordPace() *recordPace { return &recordPace{size: leastRecorded, least: leastRecorded} }

// sizeOf returns how many transfers and events blocks have.
func sizeOf(blocks ...settle.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Transfers) + len(b.Registry)
	}
	return n
}

// split returns the first of the blocks, at least one, that are recorded at once, and the others.
// The first of these is the child of the block before it, as the ledger requires of new blocks.
func (p *recordPace) split(blocks []settle.Block) (next, rest []settle.Block) {
	n := 0
	for i, b := range blocks {
		if n += sizeOf(b); n > p.size && i > 0 && b.Number == blocks[i-1].Number+1 {
			return blocks[:i:i], blocks[i:]
		}
	}
	return blocks, nil
}

// recorded sets the pace by how many were recorded in which time, and whether creates waited then.
func (p *recordPace) recorded(n int, took time.Duration, waited bool) {
	turn := recordIdleTurn
	if waited {
		turn = recordTurn
	}
	if n < p.size/2 && took <= turn {
		return // few say little about many
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
