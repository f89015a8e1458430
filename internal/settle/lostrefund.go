package settle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/times"
)

// LostRefundReason is the reason of a prepared refund with a record that was made from its transfer.
const LostRefundReason = "Recovered from the chain: the database had lost what was prepared"

// restorePrepared makes the record of a prepared refund that the database has lost, if the tag of the
// transfer names a payment that it refunds. Without the record, the money would be offered again after
// a restored backup.
func (b *transferBatch) restorePrepared(ctx context.Context, e *entry) error {
	tag := e.Evidence.Calldata
	paymentID, refundID, preparedAt, ok := invoice.ParseRefundTag(tag)
	if !ok || e.refundID == "" || b.refunds[e.refundID].Status == invoice.Confirmed || b.payments[e.paymentID].Attributed() {
		return nil
	}
	if slices.ContainsFunc(b.prepared, func(r invoice.RefundRecord) bool { return r.Tag == tag }) {
		return nil
	}
	p, ok, err := b.payment(ctx, paymentID)
	if err != nil || !ok {
		return err
	}
	if !paysBack(e, p) {
		return nil
	}
	if err := b.refundSums.load(ctx, p.ID); err != nil {
		return err
	}
	if e.Amount.IsZero() || p.Amount.Minus(b.refundSums.without(p.ID, b.refunds[e.refundID])).Less(e.Amount) {
		return nil
	}
	if _, err := NewReader(b.tx).RefundRecord(ctx, refundID); !errors.Is(err, db.ErrNotFound) {
		return err // the id is another refund's
	}
	return b.insertLost(ctx, e, p, invoice.RefundRecord{ID: refundID, Tag: tag, CreatedAt: preparedAt.Truncate(time.Second)})
}

// paysBack reports whether a transfer can be a refund of a payment.
func paysBack(e *entry, p invoice.Payment) bool {
	return p.ChainKey == e.ChainKey && p.Token == e.Token && p.RefundedFrom() == e.From && p.Status != invoice.Orphaned && p.Before(e.Position)
}

// insertLost completes the record of a refund from its transfer and its payment, and stores it.
func (b *transferBatch) insertLost(ctx context.Context, e *entry, p invoice.Payment, r invoice.RefundRecord) (err error) {
	if err := b.save(ctx); err != nil { // the record refers to its payment
		return err
	}
	// The sender of the transfer chooses the id, and with it the time.
	r.CreatedAt = times.Earlier(times.Later(r.CreatedAt, p.BlockTime), e.BlockTime)
	r.PaymentID, r.InvoiceID, r.MerchantID, r.ChainKey = p.ID, p.InvoiceID, p.MerchantID, p.ChainKey
	r.Token, r.Currency, r.From, r.Payer, r.Amount, r.To = p.Token, p.Currency, e.From, p.From, e.Amount, e.To
	r.Status, r.Reason, r.Account, r.ExpiresAt = invoice.RefundPending, LostRefundReason, invoice.AccountUnknown, r.CreatedAt.Add(invoice.RefundLifetime)
	if r.ManyInvoices, err = HasPaidManyInvoices(ctx, b.tx, p, invoice.ManyInvoices); err != nil {
		return err
	}
	b.prepared = append(b.prepared, r)
	return InsertPreparedRefund(ctx, b.tx, r, "", "", invoice.Hash{})
}

// noteUnrecognized records, during a recovery, the transfers out of settlement addresses that are not
// known refunds. They may be refunds with records that the database has lost.
func (b *transferBatch) noteUnrecognized(ctx context.Context) error {
	if !b.service.recovery {
		return nil
	}
	var unknown []invoice.Transfer
	for _, e := range b.entries {
		if e.refundID != "" && !isActive(b.refunds[e.refundID]) && !b.payments[e.paymentID].Attributed() {
			unknown = append(unknown, e.Transfer)
		}
	}
	return InsertUnrecognizedTransfers(ctx, b.tx, unknown)
}
