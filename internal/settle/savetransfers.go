package settle

import (
	"context"
	"errors"
	"math"
)

// finish counts confirmed payments, and writes the sums and the invoices. Events of paid invoices are
// left to emitPaid.
func (b *transferBatch) finish(ctx context.Context) error {
	if err := b.recountReturned(ctx, b.returning...); err != nil {
		return err
	}
	b.countConfirmed(math.MaxUint64)
	if err := b.service.recomputeRefunds(ctx, b.out, b.invoices, b.refunded); err != nil {
		return err
	}
	if err := b.refundSums.save(ctx); err != nil {
		return err
	}
	if err := refreshRefundsOf(ctx, b.tx, b.minedAgain); err != nil {
		return err
	}
	if err := AddToDeposits(ctx, b.tx, b.confirmed, b.swept); err != nil {
		return err
	}
	return b.service.saveInvoices(ctx, b.invoices, b.chain.indexed)
}

// countConfirmed counts the payments of the batch that are final and below a block. A refund in that block
// does not undo them, just as if each block were read separately.
func (b *transferBatch) countConfirmed(below uint64) {
	n := b.counted
	for n < len(b.confirmed) && b.confirmed[n].BlockNumber < below {
		n++
	}
	b.invoices.confirm(b.confirmed[b.counted:n])
	b.counted = n
}

// save writes the unsaved payments, and links the notices that announced them.
func (b *transferBatch) save(ctx context.Context) error {
	if len(b.unsaved) == 0 {
		return nil
	}
	rows := make([]PaymentRow, len(b.unsaved))
	for i, id := range b.unsaved {
		rows[i] = b.payments[id]
	}
	b.unsaved = nil
	clear(b.dirty)
	if err := SavePayments(ctx, b.tx, rows); err != nil {
		return err
	}
	if err := SetRefundInvoices(ctx, b.tx, b.reattributed); err != nil {
		return err
	}
	b.reattributed = nil
	if err := b.saveAuthorizations(ctx); err != nil {
		return err
	}
	if err := b.saveUndecided(ctx, rows); err != nil {
		return err
	}
	announced, err := Announced(ctx, b.tx, rows)
	for _, p := range announced {
		err = errors.Join(err, LinkNotices(ctx, b.tx, p.Payment))
	}
	return err
}
