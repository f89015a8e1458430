package settle

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// refundedSums holds the refunded amounts of payments, in refunds that are not orphaned. The sums are
// stored with the payments, so that a refund does not read all earlier refunds. The chain's cursor
// must be locked.
type refundedSums struct {
	tx      *db.Tx
	sums    map[string]invoice.Amount // by payment id
	changed map[string]bool           // ids of the payments with a sum to be written
}

func newRefundedSums(tx *db.Tx) *refundedSums {
	return &refundedSums{tx: tx, sums: make(map[string]invoice.Amount), changed: make(map[string]bool)}
}

// load reads the sums of the payments that are not there yet.
func (f *refundedSums) load(ctx context.Context, paymentIDs ...string) error {
	var missing []string
	for _, id := range paymentIDs {
		if _, ok := f.sums[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	known, err := RefundedSums(ctx, f.tx, missing)
	if err != nil {
		return err
	}
	for _, id := range missing {
		f.sums[id] = known[id] // zero for a payment that is not stored yet
	}
	return nil
}

// replace updates the sums after a refund changed. It must be called before the
// refund is written.
func (f *refundedSums) replace(ctx context.Context, was, is invoice.Refund) error {
	for _, r := range []invoice.Refund{was, is} {
		if r.PaymentID == "" {
			continue
		}
		if err := f.load(ctx, r.PaymentID); err != nil {
			return err
		}
	}
	if isActive(was) {
		f.sums[was.PaymentID], f.changed[was.PaymentID] = f.sums[was.PaymentID].Minus(was.Amount), true
	}
	if isActive(is) {
		f.sums[is.PaymentID], f.changed[is.PaymentID] = f.sums[is.PaymentID].Plus(is.Amount), true
	}
	return nil
}

// without returns the refunded amount of a payment in refunds other than r.
func (f *refundedSums) without(paymentID string, r invoice.Refund) invoice.Amount {
	if r.PaymentID == paymentID && isActive(r) {
		return f.sums[paymentID].Minus(r.Amount)
	}
	return f.sums[paymentID]
}

// save writes the changed sums. The payments must have been written.
func (f *refundedSums) save(ctx context.Context) error {
	changed := make(map[string]invoice.Amount, len(f.changed))
	for id := range f.changed {
		changed[id] = f.sums[id]
	}
	clear(f.changed)
	return SaveRefundedSums(ctx, f.tx, changed)
}

// isActive reports whether a refund counts: it is not the zero Refund and not
// orphaned.
func isActive(r invoice.Refund) bool { return r.PaymentID != "" && r.Status != invoice.Orphaned }
