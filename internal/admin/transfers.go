package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/store"
)

// MaxUnrecognized is how many unrecognized transfers are listed at a time.
const MaxUnrecognized = 1000

// CheckAll means all transfers that are listed.
const CheckAll = "all"

// UnrecognizedTransfers returns the transfers that a recovery found and that no person has checked, of a service's
// database, without those that checked names, which are recorded as checked. It is safe while the service runs.
func UnrecognizedTransfers(ctx context.Context, database string, checked []string, now time.Time) (left []store.UnrecognizedTransfer, err error) {
	db, err := store.OpenExisting(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if len(checked) == 1 && checked[0] == CheckAll {
		all, err := db.UnrecognizedTransfers(ctx, "", MaxUnrecognized)
		if err != nil {
			return nil, err
		}
		checked = nil
		for _, t := range all {
			checked = append(checked, t.ID)
		}
	}
	err = db.Update(ctx, func(tx *store.Tx) error {
		for _, id := range checked {
			if err := tx.CheckTransfer(ctx, id); errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("there is no unrecognized transfer %s; the command lists them without --checked", id)
			} else if err != nil {
				return err
			}
			if err := tx.AppendAudit(ctx, access.NewEntry(ctx, now, access.Change{Action: access.ActionRecoveryTransfer, Object: id})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return db.UnrecognizedTransfers(ctx, "", MaxUnrecognized)
}
