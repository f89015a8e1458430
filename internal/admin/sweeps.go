package admin

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// RequestSweeps requests sweeps of the selected deposits from the service, and returns their number. A
// running service makes them within seconds, another one when it is started.
func RequestSweeps(ctx context.Context, c Config, r ledger.SweepRequest) (n int64, err error) {
	err = c.withLedger(ctx, func(service *ledger.Service) error {
		n, err = service.RequestSweeps(ctx, r)
		return err
	})
	return n, err
}

// QueuedSweeps returns up to limit of the deposits of a chain that are to be swept: the deposits of a
// merchant or, if merchantID is empty, all.
func QueuedSweeps(ctx context.Context, database, chainKey, merchantID string, limit int) (all []ledger.QueuedSweep, err error) {
	err = withStore(ctx, database, func(store *db.DB) error {
		all, err = ledger.QueuedSweeps(ctx, store, chainKey, merchantID, limit)
		return err
	})
	return all, err
}
