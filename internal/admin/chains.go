package admin

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/settle"
)

// Rescan schedules the blocks of a chain from a number on to be read again, up
// to the newest block that was read. A running service starts at once, another
// when it is started. Rescan returns the range, which includes one that was
// scheduled before. It returns settle.ErrNotStarted if the chain was never
// read.
func Rescan(ctx context.Context, c Config, chainKey string, from uint64) (gap settle.Gap, err error) {
	err = c.withLedger(ctx, func(ledger *settle.Service) error {
		gap, err = ledger.Rescan(ctx, chainKey, from)
		return err
	})
	return gap, err
}

// Halted returns why the chain is halted, or an empty text if it is not.
func Halted(ctx context.Context, c Config, chainKey string) (reason string, err error) {
	err = c.withLedger(ctx, func(ledger *settle.Service) error {
		cur, err := ledger.Cursor(ctx, chainKey)
		if err == nil && !cur.Started {
			err = fmt.Errorf("%s: %w", chainKey, settle.ErrNotStarted)
		}
		reason = cur.Halted
		return err
	})
	return reason, err
}

// Resume removes a chain's halt. A running service continues at once, another
// when it is started.
func Resume(ctx context.Context, c Config, chainKey string) error {
	return c.withLedger(ctx, func(ledger *settle.Service) error { return ledger.Resume(ctx, chainKey) })
}
