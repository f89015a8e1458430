package ledger

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// amountReturned returns how much of a payment was refunded or is on its way back to the payer. It adds up refunds on
// the chain, and prepared refunds that are not stored as canceled or expired. It also adds refunds that a reorg
// dropped, if that was after since or they are awaited, because they may be mined again.
func amountReturned(ctx context.Context, q db.Querier, paymentID string, since time.Time) (sum invoice.Amount, err error) {
	records, err := reservingRefunds(ctx, q, []string{paymentID})
	if err != nil {
		return sum, err
	}
	refunds, err := RefundsOfPayments(ctx, q, []string{paymentID})
	if err != nil {
		return sum, err
	}
	dropped, err := refundsOrphanedSince(ctx, q, refunds, since)
	return invoice.AmountReturned(records, refunds, func(r invoice.Refund) bool { return dropped[r.ID] }), err
}

// DroppedSince returns those of the refunds that a reorg dropped after a time, wherever they are now.
func DroppedSince(ctx context.Context, q db.Querier, ids []string, since time.Time) (map[string]bool, error) {
	found, err := db.QueryIn(ids, func(chunk []any) ([]string, error) {
		return db.QueryAll(ctx, q, db.ScanID, "SELECT id FROM refunds WHERE orphaned_at > $1 AND id IN "+
			db.ParameterList(1, len(chunk)), append([]any{since.Unix()}, chunk...)...)
	})
	dropped := make(map[string]bool, len(found))
	for _, id := range found {
		dropped[id] = true
	}
	return dropped, err
}

// refundsOrphanedSince returns the refunds that a reorg dropped after a time, except those that turned
// out to be payments.
func refundsOrphanedSince(ctx context.Context, q db.Querier, refunds []invoice.Refund, since time.Time) (map[string]bool, error) {
	var ids, asPayments []string
	byPayment := make(map[string]string)
	for _, r := range refunds {
		if r.Status == invoice.Orphaned {
			id := q.TransferID(invoice.PrefixPayment, r.Transfer)
			ids, asPayments, byPayment[id] = append(ids, r.ID), append(asPayments, id), r.ID
		}
	}
	found, err := DroppedSince(ctx, q, ids, since)
	if err != nil || len(found) == 0 {
		return found, err
	}
	payments, err := PaymentsByID(ctx, q, asPayments)
	for _, p := range payments {
		if p.Attributed() && p.Status != invoice.Orphaned {
			delete(found, byPayment[p.ID])
		}
	}
	return found, err
}

// setReturned writes Payment.Returned of payments, by id.
func setReturned(ctx context.Context, tx *db.Tx, returned map[string]invoice.Amount) error {
	rows := make([][]any, 0, len(returned))
	for id, amount := range returned {
		rows = append(rows, []any{id, db.OrNull(amount)})
	}
	return tx.SendFrom(ctx, []string{"payment", "back"}, rows, "UPDATE payments SET returned = back FROM wanted WHERE payments.id = payment")
}

// OrphanedRefund is the place of a refund among those that reorgs dropped.
type OrphanedRefund struct {
	At time.Time
	ID string
}

// orphanedRefundsBetween returns the payments of up to limit refunds of a chain that reorgs dropped,
// in the order in which they were dropped: the refunds after one place, and before a time. last is the
// last place, or zero if there are no more.
func orphanedRefundsBetween(ctx context.Context, q db.Querier, chainKey string, after OrphanedRefund, to time.Time, limit int) (paymentIDs []string, last OrphanedRefund, err error) {
	found, err := db.QueryAll(ctx, q, func(row db.Scanner) (r OrphanedRefund, err error) {
		var paymentID string
		err = row.Scan(db.Seconds(&r.At), &r.ID, &paymentID)
		paymentIDs = append(paymentIDs, paymentID)
		return r, err
	}, `SELECT orphaned_at, id, payment_id FROM refunds
		WHERE status = 'orphaned' AND orphaned_at >= $1 AND orphaned_at < $2 AND (orphaned_at > $1 OR id > $3) AND chain_key = $4
		ORDER BY orphaned_at, id LIMIT $5`, after.At.Unix(), to.Unix(), after.ID, chainKey, limit)
	if len(found) == limit && err == nil {
		last = found[limit-1]
	}
	return paymentIDs, last, err
}

// markInvoicesPaid records that the invoices were paid, in their prepared refunds that can still be
// sent.
func markInvoicesPaid(ctx context.Context, tx *db.Tx, invoiceIDs []string) error {
	return db.SendIn(ctx, tx, `UPDATE refund_records SET invoice_paid = 1 WHERE tag IS NOT NULL
		AND status IN ('awaiting_address', 'awaiting_approval', 'pending') AND invoice_id IN `, invoiceIDs)
}
