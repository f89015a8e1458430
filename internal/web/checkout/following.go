package checkout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// BlindAfter is the age of the last proof that a chain's newest blocks are read after which pages show
// that payments cannot be seen.
const BlindAfter = time.Minute

// Progress is the last results of the indexer of a chain in this process.
type Progress struct {
	Synced     time.Time // end of the last successful sync; zero before it
	CatchingUp bool      // it is far behind the finalized height
}

// following is how far a chain is read.
type following struct {
	Progress

	indexed, confirmed invoice.Header
	revision           int64 // see ledger.Cursor
	halted             bool
}

// follow reads how far a chain is read.
func (c *Checkout) follow(ctx context.Context, chainKey string) (following, error) {
	cursor, err := c.conf.Reader.Cursor(ctx, chainKey)
	if err != nil && !errors.Is(err, db.ErrNotFound) { // the chain was never read
		return following{}, fmt.Errorf("read cursor of %s: %w", chainKey, err)
	}
	return following{
		Progress: c.conf.Progress(chainKey), indexed: cursor.Indexed, confirmed: cursor.Confirmed, revision: cursor.Revision, halted: cursor.Halted != "",
	}, nil
}

// isBlind reports whether a payment that was just made may not be seen: the chain is halted, or there
// is no proof within BlindAfter that its newest blocks are read. A recent block is a proof, whichever
// process read it. On a chain that pauses, a recent sync of this process's indexer is a proof, unless
// it reads old blocks.
func (f following) isBlind(now time.Time) bool {
	recent := func(t time.Time) bool { return now.Sub(t).Abs() <= BlindAfter }
	return f.halted || !recent(f.indexed.Time) && (f.CatchingUp || !recent(f.Synced))
}

// usualTimes are the times until a block is final that pages may show.
var usualTimes = []time.Duration{
	5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
	5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute, time.Hour,
}

// usualTime returns how long blocks of the chain usually take to become final: the difference in age
// of the newest final block and the newest block, rounded up. It is 0 if that is unusually long, or
// unknown.
func (f following) usualTime() time.Duration {
	took := f.indexed.Time.Sub(f.confirmed.Time)
	for _, t := range usualTimes {
		if took <= t {
			return t
		}
	}
	return 0
}
