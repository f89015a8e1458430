package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Rescan schedules the blocks of a chain from a number up to the newest read block to be read again. A
// running service starts at once, another when it is started. Rescan returns the range, which includes
// a range that was scheduled before. It returns ledger.ErrNotStarted if the chain was never read.
func Rescan(ctx context.Context, c Config, chainKey string, from uint64) (gap ledger.Gap, err error) {
	err = c.withLedger(ctx, func(service *ledger.Service) error {
		gap, err = service.Rescan(ctx, chainKey, from)
		return err
	})
	return gap, err
}

// Halted returns why the chain is halted, or an empty text if it is not.
func Halted(ctx context.Context, c Config, chainKey string) (reason string, err error) {
	err = c.withLedger(ctx, func(service *ledger.Service) error {
		cur, err := service.Cursor(ctx, chainKey)
		if err == nil && !cur.Started {
			err = fmt.Errorf("%s: %w", chainKey, ledger.ErrNotStarted)
		}
		reason = cur.Halted
		return err
	})
	return reason, err
}

// Resume removes a chain's halt. A running service continues at once, another
// when it is started.
func Resume(ctx context.Context, c Config, chainKey string) error {
	return c.withLedger(ctx, func(service *ledger.Service) error { return service.Resume(ctx, chainKey) })
}

// Unread returns the transactions of a chain that are not recorded, in the order of their
// blocks.
func Unread(ctx context.Context, c Config, chainKey string) (all []ledger.UnreadTransaction, err error) {
	err = c.withLedger(ctx, func(service *ledger.Service) error {
		all, err = service.UnreadTransactions(ctx, chainKey)
		return err
	})
	return all, err
}

// RetryUnread schedules an unread transaction to be read now. A running service does so within seconds.
func RetryUnread(ctx context.Context, c Config, chainKey string, tx invoice.Hash) error {
	return c.withLedger(ctx, func(service *ledger.Service) error {
		return known(service.RetryUnread(ctx, chainKey, tx), chainKey, tx)
	})
}

// DismissUnread ends the attempts to read a transaction that is not recorded.
func DismissUnread(ctx context.Context, c Config, chainKey string, tx invoice.Hash) error {
	return c.withLedger(ctx, func(service *ledger.Service) error {
		return known(service.DismissUnread(ctx, chainKey, tx), chainKey, tx)
	})
}

// known explains the error for a transaction that is not in the list of unread ones.
func known(err error, chainKey string, tx invoice.Hash) error {
	if errors.Is(err, db.ErrNotFound) {
		return fmt.Errorf("%s is not among the unread transactions of %s", tx, chainKey)
	}
	return err
}
