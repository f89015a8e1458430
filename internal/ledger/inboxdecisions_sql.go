package ledger

import (
	"context"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

var decisionTable = db.NewTable("inbox_decisions", func(d *invoice.Decision) []db.Column {
	return []db.Column{
		db.Col("id", db.Text(&d.ID)),
		db.Col("merchant_id", db.Text(&d.MerchantID)),
		db.Col("kind", db.Text(&d.Kind)),
		db.Col("object_id", db.Text(&d.ObjectID)),
		db.Col("version", db.Text(&d.Version)),
		db.Col("decision", db.Text(&d.Outcome)),
		db.Col("reason", db.Text(&d.Reason)),
		db.Col("decided_by", db.Text(&d.By)),
		db.Col("decided_at", db.Seconds(&d.At)),
		db.Col("undone_by", db.Null(db.Text(&d.UndoneBy))),
		db.Col("undone_at", db.Null(db.Seconds(&d.UndoneAt))),
		db.Col("invoice_id", db.Null(db.Text(&d.InvoiceID))),
		db.Col("applies_at", db.Null(db.Seconds(&d.AppliesAt))),
		db.Col("applied_at", db.Null(db.Seconds(&d.AppliedAt))),
	}
})

// InsertDecision inserts a decision. At most one of an item's version and a merchant may be in
// force. The cursor of the item's chain must be locked, as for UndoDecision.
func InsertDecision(ctx context.Context, tx *db.Tx, d invoice.Decision) error {
	if err := decisionTable.Insert(ctx, tx, "", d); err != nil {
		return err
	}
	return RefreshItems(ctx, tx, d.ObjectID)
}

// endDecision stores that a decision was taken back, or has taken effect.
func endDecision(ctx context.Context, tx *db.Tx, d invoice.Decision) error {
	_, err := decisionTable.Only("undone_by", "undone_at", "applied_at").Update(ctx, tx, d, "id = $1", d.ID)
	if err != nil {
		return err
	}
	return RefreshItems(ctx, tx, d.ObjectID)
}

// decision returns the decision with the id, or ErrNotFound.
func decision(ctx context.Context, q db.Querier, id string) (invoice.Decision, error) {
	return db.QueryRow(ctx, q, decisionTable.Scan, decisionTable.Select()+" WHERE id = $1", id)
}

// DecisionsInForce returns the decisions about payments, invoices and refunds that were not
// taken back, except attributions that have taken effect.
func DecisionsInForce(ctx context.Context, q db.Querier, objectIDs []string) ([]invoice.Decision, error) {
	return db.AllIn(ctx, q, decisionTable.Scan, decisionTable.Select()+" WHERE undone_at IS NULL AND applied_at IS NULL AND object_id IN ", objectIDs)
}

// attributionsToApply returns up to limit decisions to attribute payments that are to have taken effect at a time, the
// oldest first.
func attributionsToApply(ctx context.Context, q db.Querier, now time.Time, limit int) ([]string, error) {
	return db.QueryAll(ctx, q, db.ScanID, "SELECT id FROM inbox_decisions WHERE applies_at <= $1 AND undone_at IS NULL AND applied_at IS NULL ORDER BY applies_at LIMIT $2",
		invoice.UnixSeconds(now), limit)
}

// undoAttributions undoes the attributions that have not taken effect, in a recovery: they may have been undone since the
// backup.
func undoAttributions(ctx context.Context, tx *db.Tx, by string, at time.Time) error {
	const pending = " WHERE applies_at IS NOT NULL AND undone_at IS NULL AND applied_at IS NULL"
	payments, err := db.QueryAll(ctx, tx, db.ScanID, "SELECT object_id FROM inbox_decisions"+pending)
	if err != nil || len(payments) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, "UPDATE inbox_decisions SET undone_by = $1, undone_at = $2"+pending, by, invoice.UnixSeconds(at)); err != nil {
		return err
	}
	return RefreshItems(ctx, tx, payments...)
}

// DecisionFilter selects decisions. Empty fields match all.
type DecisionFilter struct {
	MerchantID string
	ObjectID   string // with the attributions to it, if it is an invoice
	Before     string // a decision's id; those listed were made before it
	Limit      int
}

// Decisions lists decisions, newest first, also those that were taken back.
func (q Reader) Decisions(ctx context.Context, f DecisionFilter) ([]invoice.Decision, error) {
	w := db.Where{}
	w.Equal("merchant_id", f.MerchantID)
	if strings.HasPrefix(f.ObjectID, invoice.PrefixInvoice) {
		w.Add("id IN (SELECT id FROM inbox_decisions WHERE object_id = $%[1]d UNION ALL SELECT id FROM inbox_decisions WHERE invoice_id = $%[1]d)", f.ObjectID)
	} else {
		w.Equal("object_id", f.ObjectID)
	}
	w.Below("id", f.Before)
	return db.QueryAll(ctx, q, decisionTable.Scan, decisionTable.Select()+w.Text()+
		" ORDER BY id DESC LIMIT "+db.Parameter(w.Next()), append(w.Args, f.Limit)...)
}
