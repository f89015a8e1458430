package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// UnrecognizedBatch is how many unrecognized transfers are read at a time, and marked as checked in one transaction.
const UnrecognizedBatch = 1000

// CheckAll means all transfers.
const CheckAll = "all"

// UnrecognizedTransfers calls list with the transfers in a service's database that a recovery found
// and that no person has checked, up to UnrecognizedBatch at a time. It leaves out the transfers in
// checked, and records them as checked. It is safe while the service runs.
func UnrecognizedTransfers(ctx context.Context, database string, checked []string, now time.Time, list func([]ledger.UnrecognizedTransfer) error) (err error) {
	store, err := db.OpenExisting(ctx, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if len(checked) == 1 && checked[0] == CheckAll {
		err = eachUnrecognized(ctx, store, func(some []ledger.UnrecognizedTransfer) error {
			ids := make([]string, len(some))
			for i, t := range some {
				ids[i] = t.ID
			}
			return checkTransfers(ctx, store, ids, now)
		})
	} else {
		err = checkTransfers(ctx, store, checked, now)
	}
	if err != nil {
		return err
	}
	return eachUnrecognized(ctx, store, list)
}

// eachUnrecognized calls each with the unrecognized transfers, in the order of their blocks.
func eachUnrecognized(ctx context.Context, store *db.DB, each func([]ledger.UnrecognizedTransfer) error) error {
	var after ledger.UnrecognizedTransfer
	for {
		some, err := ledger.UnrecognizedTransfers(ctx, store, "", after, UnrecognizedBatch)
		if err != nil || len(some) == 0 {
			return err
		}
		if err := each(some); err != nil || len(some) < UnrecognizedBatch {
			return err
		}
		after = some[len(some)-1]
	}
}

// checkTransfers records in one transaction that transfers were checked.
func checkTransfers(ctx context.Context, store *db.DB, ids []string, now time.Time) error {
	return store.Update(ctx, func(tx *db.Tx) error {
		for _, id := range ids {
			if err := ledger.CheckTransfer(ctx, tx, id); errors.Is(err, db.ErrNotFound) {
				return fmt.Errorf("there is no unrecognized transfer %s; the command lists them without --checked", id)
			} else if err != nil {
				return err
			}
			if err := access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{Action: access.ActionRecoveryTransfer, Object: id})); err != nil {
				return err
			}
		}
		return nil
	})
}
