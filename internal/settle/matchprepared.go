package settle

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// loadPrepared reads the prepared refunds that the entries may pay.
func (b *transferBatch) loadPrepared(ctx context.Context) error {
	tags, recipients := make(map[string]bool), make(map[string]bool)
	for _, e := range b.entries {
		if e.refundID == "" {
			continue
		}
		recipients[e.To.String()] = true
		if !e.Evidence.Calldata.IsZero() {
			tags[e.Evidence.Calldata.String()] = true
		}
	}
	if len(recipients) == 0 {
		return nil
	}
	var err error
	b.prepared, err = PreparedFor(ctx, b.tx, b.chain.key, slices.Sorted(maps.Keys(tags)), slices.Sorted(maps.Keys(recipients)))
	return err
}

// mayRefund reports whether a transfer out of a settlement address can be a refund: to an account that
// paid there, or a prepared one.
func (b *transferBatch) mayRefund(e *entry) bool {
	if b.paidPairs[e.refundPair()] {
		return true
	}
	_, _, ok := b.preparedFor(e)
	return ok
}

// isNamed reports whether the calldata of a transfer out of a settlement address names a refund that
// was prepared for that address. The state of the refund and the recipient of the transfer do not
// matter.
func (b *transferBatch) isNamed(e *entry) bool {
	return e.refundID != "" && slices.ContainsFunc(b.prepared, func(r invoice.RefundRecord) bool { return r.NamedBy(e.Transfer) })
}

// isPreparedRefund reports whether a transfer is a prepared refund. Its calldata names one, or it has
// the recipient and amount of a waiting one and its transaction names no invoice.
func (b *transferBatch) isPreparedRefund(ctx context.Context, e *entry) (bool, error) {
	switch {
	case e.refundID == "":
		return false, nil
	case b.isNamed(e):
		return true, nil
	case len(e.named) > 0:
		return false, nil
	}
	m, decided, err := b.matchPrepared(ctx, e)
	return decided && m.PreparedID != "", err
}

// preparedFor returns the prepared refund that a transfer pays, as invoice.PreparedFor. If the
// transfer was stored before without a prepared refund, it pays only the one that its calldata names.
func (b *transferBatch) preparedFor(e *entry) (r invoice.RefundRecord, named, ok bool) {
	prepared := b.prepared
	was, known := b.refunds[e.refundID]
	if known && was.PreparedID == "" {
		prepared = slices.DeleteFunc(slices.Clone(prepared), func(r invoice.RefundRecord) bool { return r.Tag != e.Evidence.Calldata })
	}
	return invoice.PreparedFor(e.Transfer, e.refundID, prepared, was.PreparedID)
}

// matchPrepared returns the payment of the prepared refund that a transfer pays. decided is false if
// there is no such refund; then the rules for other refunds apply. A transfer with calldata that names
// a prepared refund can refund only that refund's payment. If another transfer pays that prepared
// refund, it still refunds the payment, but not the prepared refund.
func (b *transferBatch) matchPrepared(ctx context.Context, e *entry) (m invoice.RefundMatch, decided bool, err error) {
	r, named, ok := b.preparedFor(e)
	if !ok {
		return m, named, nil
	}
	rows, err := PaymentsByID(ctx, b.tx, []string{r.PaymentID})
	if err != nil || len(rows) == 0 {
		return m, named, err
	}
	p := rows[0].Payment
	if err := b.refundSums.load(ctx, p.ID); err != nil {
		return m, false, err
	}
	left := p.Amount.Minus(b.refundSums.without(p.ID, b.refunds[e.refundID]))
	if p.Status == invoice.Orphaned || !p.Before(e.Position) || e.Amount.IsZero() || left.Less(e.Amount) {
		return m, named, nil
	}
	m = invoice.RefundMatch{Payment: p, Exact: true}
	if r.Takes(e.refundID) {
		m.PreparedID = r.ID
	}
	return m, true, nil
}

// linkPrepared stores in memory which transfer pays which prepared refund.
func (b *transferBatch) linkPrepared(refund invoice.Refund) {
	for i, r := range b.prepared {
		switch {
		case r.ID == refund.PreparedID:
			b.prepared[i].Transfer = refund
		case r.Transfer.ID == refund.ID:
			b.prepared[i].Transfer = invoice.Refund{}
		}
	}
}
