package indexer

import (
	"time"

	"github.com/quittance/quittance/internal/settle"
)

const (
	// leastRecorded and mostRecorded bound the transfers of final blocks that are recorded at once. A block is not divided.
	leastRecorded, mostRecorded = 50, 5000
	// recordTurn is how long that may take while creates wait for it, since on SQLite it has the only writer, and
	// recordIdleTurn while none does. A first create waits for the latter.
	recordTurn, recordIdleTurn = 20 * time.Millisecond, 200 * time.Millisecond
)

// recordPace is how many transfers of final blocks are recorded at once, so that creates wait little for it.
type recordPace struct{ transfers int }

func newRecordPace() *recordPace { return &recordPace{leastRecorded} }

// split returns the first of the blocks, at least one, of which the transfers are recorded at once, and the others.
// The first of these is the child of the block before it, so that both prove to be of one chain.
func (p *recordPace) split(blocks []settle.Block) (next, rest []settle.Block) {
	n := 0
	for i, b := range blocks {
		if n += len(b.Transfers); n > p.transfers && i > 0 && b.Number == blocks[i-1].Number+1 {
			return blocks[:i:i], blocks[i:]
		}
	}
	return blocks, nil
}

// recorded sets the pace by how long it took to record blocks, and whether creates waited then.
func (p *recordPace) recorded(blocks []settle.Block, took time.Duration, waited bool) {
	turn, n := recordIdleTurn, 0
	if waited {
		turn = recordTurn
	}
	for _, b := range blocks {
		n += len(b.Transfers)
	}
	next := 2 * p.transfers
	if took > 0 {
		next = min(next, int(int64(n)*int64(turn)/int64(took)))
	}
	if next < p.transfers && n < p.transfers/2 && took <= turn {
		return // few transfers say little about many
	}
	p.transfers = min(max(next, leastRecorded), mostRecorded)
}
