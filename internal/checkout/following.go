package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// BlindAfter is how old the last proof may be that a chain's newest blocks are read, before
// pages say that payments cannot be seen.
const BlindAfter = time.Minute

// Progress is what the indexer of a chain in this process did last.
type Progress struct {
	Synced     time.Time // end of the last successful sync; zero before it
	CatchingUp bool      // it is far behind the finalized height
}

// following is how far a chain is read.
type following struct {
	Progress

	indexed, confirmed invoice.Header
	revision           int64 // see store.Cursor
	halted             bool
}

// follow reads how far a chain is read.
func (c *Checkout) follow(ctx context.Context, chainKey string) (following, error) {
	cursor, err := c.reader.Cursor(ctx, chainKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // the chain was never read
		return following{}, fmt.Errorf("read cursor of %s: %w", chainKey, err)
	}
	return following{
		Progress: c.progress(chainKey), indexed: cursor.Indexed, confirmed: cursor.Confirmed, revision: cursor.Revision, halted: cursor.Halted != "",
	}, nil
}

// isBlind reports whether a payment that was just made may not be seen: the chain is halted,
// or there is no proof within BlindAfter that its newest blocks are read. A block of that age
// is a proof, whichever process read it. So is a sync of this process's indexer, on a chain
// that pauses, unless it reads old blocks.
func (f following) isBlind(now time.Time) bool {
	recent := func(t time.Time) bool { return now.Sub(t).Abs() <= BlindAfter }
	return f.halted || !recent(f.indexed.Time) && (f.CatchingUp || !recent(f.Synced))
}

// usualTimes are the times until a block is final that pages show.
var usualTimes = []time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
	5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
}

// usualTime returns how long blocks of the chain take until they are final: by how much the
// newest final block is older than the newest one, rounded up. It is 0 if that is too long to
// be usual, or unknown.
func (f following) usualTime() time.Duration {
	took := f.indexed.Time.Sub(f.confirmed.Time)
	for _, t := range usualTimes {
		if took <= t {
			return t
		}
	}
	return 0
}
