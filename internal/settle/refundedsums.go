package settle

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// refundedSums holds how much of payments was paid back in refunds that are not
// orphaned. The sums are kept with the payments, so that a refund does not read
// all refunds before it. The chain's cursor must be locked.
type refundedSums struct {
	tx      *store.Tx
	sums    map[string]invoice.Amount // by the payment's id, as they are by now
	changed map[string]bool           // to be written, by the payment's id
}

func newRefundedSums(tx *store.Tx) *refundedSums {
	return &refundedSums{tx: tx, sums: make(map[string]invoice.Amount), changed: make(map[string]bool)}
}

// load reads the sums of the payments with the ids that are not there yet. It
// must be called before any of their refunds is written.
func (b *refundedSums) load(ctx context.Context, ids ...string) error {
	var missing []string
	for _, id := range ids {
		if _, ok := b.sums[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	known, unknown, err := b.tx.RefundedSums(ctx, missing)
	if err != nil {
		return err
	}
	for _, id := range missing {
		b.sums[id] = known[id] // nothing of one that is not stored yet
	}
	refunds, err := b.tx.RefundsOfPayments(ctx, unknown)
	for _, id := range unknown {
		b.sums[id], b.changed[id] = invoice.Amount{}, true
	}
	for _, r := range refunds {
		if r.Status != invoice.Orphaned {
			b.sums[r.PaymentID] = b.sums[r.PaymentID].Plus(r.Amount)
		}
	}
	return err
}

// replace moves the sums from a refund as it was, or a zero one, to the refund
// as it is. It must be called before the refund is written.
func (b *refundedSums) replace(ctx context.Context, was, is invoice.Refund) error {
	for _, r := range []invoice.Refund{was, is} {
		if r.PaymentID == "" {
			continue
		}
		if err := b.load(ctx, r.PaymentID); err != nil {
			return err
		}
	}
	if counts(was) {
		b.sums[was.PaymentID], b.changed[was.PaymentID] = b.sums[was.PaymentID].Minus(was.Amount), true
	}
	if counts(is) {
		b.sums[is.PaymentID], b.changed[is.PaymentID] = b.sums[is.PaymentID].Plus(is.Amount), true
	}
	return nil
}

// without returns how much of a payment was paid back but for one refund.
func (b *refundedSums) without(paymentID string, r invoice.Refund) invoice.Amount {
	if r.PaymentID == paymentID && counts(r) {
		return b.sums[paymentID].Minus(r.Amount)
	}
	return b.sums[paymentID]
}

// save writes the sums that changed. The payments must have been written.
func (b *refundedSums) save(ctx context.Context) error {
	changed := make(map[string]invoice.Amount, len(b.changed))
	for id := range b.changed {
		changed[id] = b.sums[id]
	}
	clear(b.changed)
	return b.tx.SaveRefundedSums(ctx, changed)
}

// counts reports whether a refund, or a zero one, pays back a payment.
func counts(r invoice.Refund) bool { return r.PaymentID != "" && r.Status != invoice.Orphaned }
