package ledger

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// The column use of a payment is its use, by invoice.ChangeUse. Every transaction that changes one of
// the facts that decide it sets it, under the chain's cursor.

// PaymentUse has the facts and the decisions that determine the use of a payment.
type PaymentUse struct {
	invoice.UseFacts
	Dismissals   []invoice.Decision     // in force, of the payment as it is now
	Decided      bool                   // a person dismissed it, in its present or an earlier version
	Attributions []invoice.Decision     // in force: at most one
	Prepared     []invoice.RefundRecord // including those that a reorg dropped
}

// paymentUses returns the facts that determine the uses of payments, by id. It does not determine
// whether an invoice's shortfall is waived.
func paymentUses(ctx context.Context, q db.Querier, payments []PaymentRow) (map[string]PaymentUse, error) {
	byID := make(map[string]PaymentRow, len(payments))
	ids := make([]string, len(payments))
	for i, p := range payments {
		byID[p.ID], ids[i] = p, p.ID
	}
	refunded, err := RefundedSums(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	records, err := reservingRefunds(ctx, q, ids)
	if err != nil {
		return nil, err
	}
	prepared := make(map[string][]invoice.RefundRecord)
	for _, r := range records {
		prepared[r.PaymentID] = append(prepared[r.PaymentID], r)
	}
	decisions, err := paymentDecisions(ctx, q, byID)
	if err != nil {
		return nil, err
	}
	uses := make(map[string]PaymentUse, len(payments))
	for _, p := range payments {
		u := PaymentUse{UseFacts: useFacts(p, refunded[p.ID]), Prepared: prepared[p.ID]}
		u.Reserved = invoice.ReservedOf(u.Prepared)
		for _, d := range decisions[p.ID] {
			switch {
			case d.Outcome == invoice.Attributed:
				u.Attributing, u.Attributions = true, append(u.Attributions, d.Decision)
				continue
			case d.current:
				u.Dismissed, u.Dismissals = true, append(u.Dismissals, d.Decision)
			}
			u.Decided = true
		}
		uses[p.ID] = u
	}
	return uses, nil
}

// useFacts returns the facts that determine the use of a payment without decisions and prepared refunds.
func useFacts(p PaymentRow, refunded RefundedSum) invoice.UseFacts {
	return invoice.UseFacts{
		Amount: p.Amount, Counted: p.Attributed(), Pending: refunded.All.Minus(refunded.Final), Refunded: refunded.Final,
	}
}

// useOf returns the use that follows from the facts.
func useOf(f invoice.UseFacts) invoice.PaymentUse {
	use, _ := invoice.ChangeUse(f, invoice.ActNone) // which is not refused
	return use
}

// reservingRefunds returns the refunds that may reserve a part of payments, in no order: prepared refunds, and
// transfers that a reorg dropped and that may be mined again, because a submission of them is in force. It does not
// read the others, of which a payment may have any number.
func reservingRefunds(ctx context.Context, q db.Querier, paymentIDs []string) ([]invoice.RefundRecord, error) {
	return db.AllIn(ctx, q, scanRecord, selectRecordsBy(q.IndexedBy("refund_records_reserving"))+
		"WHERE (refund_records.tag IS NOT NULL OR refund_records.submitted_tx IS NOT NULL AND refund_records.status = 'orphaned') AND refund_records.payment_id IN ", paymentIDs)
}

// paymentDecision is a decision about a payment that is in force.
type paymentDecision struct {
	invoice.Decision
	current bool // the payment has not changed since
}

// paymentDecisions returns the decisions about payments that are in force, by payment id.
func paymentDecisions(ctx context.Context, q db.Querier, payments map[string]PaymentRow) (map[string][]paymentDecision, error) {
	ids := make([]string, 0, len(payments))
	for id := range payments {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	decisions, err := DecisionsInForce(ctx, q, ids)
	if err != nil || len(decisions) == 0 {
		return nil, err
	}
	items := db.Each(decisions, func(d invoice.Decision) PaymentItem {
		return PaymentItem{Payment: payments[d.ObjectID], MerchantID: d.MerchantID}
	})
	if err := judgePayments(ctx, q, items); err != nil {
		return nil, err
	}
	found := make(map[string][]paymentDecision)
	for i, d := range decisions {
		found[d.ObjectID] = append(found[d.ObjectID], paymentDecision{d, items[i].isDecidedBy(d)})
	}
	return found, nil
}

// refreshUses sets the uses of payments. The cursors of their chains must be locked.
func refreshUses(ctx context.Context, tx *db.Tx, paymentIDs ...string) error {
	payments, err := PaymentsByID(ctx, tx, slices.Compact(slices.Sorted(slices.Values(paymentIDs))))
	if err != nil || len(payments) == 0 {
		return err
	}
	uses, err := paymentUses(ctx, tx, payments)
	if err != nil {
		return err
	}
	var changed [][]any
	for _, p := range payments {
		if use := useOf(uses[p.ID].UseFacts); use != p.Use {
			changed = append(changed, []any{p.ID, string(use)})
		}
	}
	return tx.SendFrom(ctx, []string{"payment", "used_for"}, changed,
		"UPDATE payments SET use = used_for FROM wanted WHERE payments.id = payment")
}

// paymentsBeingRefunded returns up to limit payments of an invoice that were mined before it expired
// and that have a refund that is prepared, not final, or may still be mined, in no order.
func paymentsBeingRefunded(ctx context.Context, q db.Querier, inv invoice.Invoice, limit int) ([]PaymentRow, error) {
	ids, err := db.QueryAll(ctx, q, db.ScanID, `SELECT DISTINCT refund_records.payment_id FROM refund_records JOIN payments ON payments.id = refund_records.payment_id
		WHERE refund_records.invoice_id = $1 AND (refund_records.status IN ('awaiting_address', 'awaiting_approval', 'pending')
				OR refund_records.status <> 'confirmed' AND EXISTS (SELECT 1 FROM refund_submissions AS sent
					WHERE sent.refund_id = refund_records.id AND sent.withdrawn_at IS NULL AND sent.tx_hash IS NOT NULL))
			AND payments.block_time <= $2 LIMIT $3`, inv.ID, invoice.UnixSeconds(inv.ExpiresAt), limit)
	if err != nil {
		return nil, err
	}
	return PaymentsByID(ctx, q, ids)
}
