package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const decisionColumns = "id, merchant_id, kind, object_id, version, decision, reason, decided_by, decided_at, undone_by, undone_at"

func scanDecision(row db.Scanner) (d invoice.Decision, err error) {
	err = row.Scan(&d.ID, &d.MerchantID, &d.Kind, &d.ObjectID, &d.Version, &d.Outcome, &d.Reason, &d.By, db.Seconds(&d.At), db.NullText(&d.UndoneBy), db.Seconds(&d.UndoneAt))
	return d, err
}

// InsertDecision inserts a decision. At most one of an item's version and a merchant may be in
// force. The cursor of the item's chain must be locked, as for UndoDecision.
func InsertDecision(ctx context.Context, tx *db.Tx, d invoice.Decision) error {
	_, err := tx.Exec(ctx, `INSERT INTO inbox_decisions (id, merchant_id, kind, object_id, version, decision, reason, decided_by, decided_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		d.ID, d.MerchantID, string(d.Kind), d.ObjectID, d.Version, string(d.Outcome), d.Reason, d.By, invoice.UnixSeconds(d.At))
	if err != nil {
		return err
	}
	return RefreshItems(ctx, tx, d.ObjectID)
}

// undoDecision stores that a decision was taken back.
func undoDecision(ctx context.Context, tx *db.Tx, d invoice.Decision) error {
	_, err := tx.Exec(ctx, "UPDATE inbox_decisions SET undone_by = $1, undone_at = $2 WHERE id = $3", d.UndoneBy, invoice.UnixSeconds(d.UndoneAt), d.ID)
	if err != nil {
		return err
	}
	return RefreshItems(ctx, tx, d.ObjectID)
}

// decision returns the decision with the id, or ErrNotFound.
func decision(ctx context.Context, q db.Querier, id string) (invoice.Decision, error) {
	return db.QueryRow(ctx, q, scanDecision, "SELECT "+decisionColumns+" FROM inbox_decisions WHERE id = $1", id)
}

// DecisionsInForce returns the decisions about payments, invoices and refunds that were not
// taken back.
func DecisionsInForce(ctx context.Context, q db.Querier, objectIDs []string) ([]invoice.Decision, error) {
	return db.QueryIn(objectIDs, func(chunk []any) ([]invoice.Decision, error) {
		return db.QueryAll(ctx, q, scanDecision, "SELECT "+decisionColumns+" FROM inbox_decisions WHERE undone_at IS NULL AND object_id IN "+
			db.ParameterList(0, len(chunk)), chunk...)
	})
}

// DecisionFilter selects decisions. Empty fields match all.
type DecisionFilter struct {
	MerchantID string
	ObjectID   string
	Before     string // a decision's id; those listed were made before it
	Limit      int
}

// Decisions lists decisions, newest first, also those that were taken back.
func (q Reader) Decisions(ctx context.Context, f DecisionFilter) ([]invoice.Decision, error) {
	w := db.Where{}
	w.Equal("merchant_id", f.MerchantID)
	w.Equal("object_id", f.ObjectID)
	w.Below("id", f.Before)
	return db.QueryAll(ctx, q, scanDecision, "SELECT "+decisionColumns+" FROM inbox_decisions"+w.Text()+
		" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}
