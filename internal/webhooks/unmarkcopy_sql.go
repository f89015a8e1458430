package webhooks

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// UnmarkCopy removes a person's mark from a database that is not a copy, and begins the retry windows of the deliveries
// that were not attempted, such as those of events that were written in isolation. It returns ErrIsolated for any other
// copy. The record of the database's identity stays, so that a start still notices a real copy.
func UnmarkCopy(ctx context.Context, tx *db.Tx, now time.Time) error {
	r, err := tx.Recovery(ctx)
	if err != nil {
		return err
	}
	if !r.MarkedByHand() {
		return db.ErrIsolated
	}
	if _, err := tx.Exec(ctx, "UPDATE deliveries SET due_ms = $1, deadline_ms = $2 WHERE attempts = 0 AND lease_id IS NULL",
		now.UnixMilli(), now.Add(RetryWindow).UnixMilli()); err != nil {
		return err
	}
	return tx.Do(ctx, "UPDATE recovery SET state = 'normal', reason = '', since = $1, isolated_at = NULL WHERE id = 1", r.Isolated.Unix())
}
