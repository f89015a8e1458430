package admin

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/settle"
)

// Rescan has the blocks of a chain read again from a number on, up to the newest
// one that was read. A running service begins with it by itself, any other when
// it starts. It returns the range, which takes in one that was there already;
// settle.ErrNotStarted when the chain was never read.
func Rescan(ctx context.Context, c Config, chainKey string, from uint64) (gap settle.Gap, err error) {
	err = c.with(ctx, func(ledger *settle.Service) error {
		gap, err = ledger.Rescan(ctx, chainKey, from)
		return err
	})
	return gap, err
}

// Halted returns why the chain is read no further, or nothing when it is not
// halted.
func Halted(ctx context.Context, c Config, chainKey string) (reason string, err error) {
	err = c.with(ctx, func(ledger *settle.Service) error {
		cur, err := ledger.Cursor(ctx, chainKey)
		if err == nil && !cur.Started {
			err = fmt.Errorf("%s: %w", chainKey, settle.ErrNotStarted)
		}
		reason = cur.Halted
		return err
	})
	return reason, err
}

// Resume takes back that a chain is halted. A running service goes on with it by
// itself, any other when it starts.
func Resume(ctx context.Context, c Config, chainKey string) error {
	return c.with(ctx, func(ledger *settle.Service) error { return ledger.Resume(ctx, chainKey) })
}
