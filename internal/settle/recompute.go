package settle

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
)

// recompute counts newly confirmed payments and refunds, and emits the events of
// invoices that they pay and of the refunds. The payments come in the chain's
// order. Payments and refunds must have been written, and their invoices loaded.
func (s *Service) recompute(ctx context.Context, out *outbox, invoices *invoiceSet, payments []invoice.Payment, refunds []invoice.Refund) error {
	invoices.confirm(payments)
	if err := s.emitPaid(ctx, out, invoices); err != nil {
		return err
	}
	return s.recomputeRefunds(ctx, out, invoices, refunds)
}

// emitPaid emits invoice.paid for the invoices that confirmed payments paid, and
// enqueues intents to close the commitments of those that were paid without the
// registry. It recounts invoices first, so it runs once in a transaction.
func (s *Service) emitPaid(ctx context.Context, out *outbox, invoices *invoiceSet) error {
	if err := invoices.recountConfirmed(ctx); err != nil {
		return err
	}
	registered, err := PaidThroughRegistry(ctx, invoices.tx, invoices.paid)
	if err != nil {
		return err
	}
	slices.Sort(invoices.paid)
	if err := markInvoicesPaid(ctx, invoices.tx, invoices.paid); err != nil {
		return err
	}
	for _, id := range invoices.paid {
		inv := invoices.byID[id]
		if err := s.emit(out, invoice.EventPaid, id, inv, apiconv.PaidInvoiceData(inv)); err != nil {
			return err
		}
		if inv.CloseIntent(registered[id]) {
			s.enqueueIntent(out, invoice.IntentClose, inv)
		}
	}
	invoices.paid = nil
	return nil
}

// recomputeRefunds counts newly confirmed refunds and emits payment.refunded.
func (s *Service) recomputeRefunds(ctx context.Context, out *outbox, invoices *invoiceSet, refunds []invoice.Refund) error {
	ids := make([]string, len(refunds))
	for i, r := range refunds {
		ids[i] = r.PaymentID
	}
	rows, err := PaymentsByID(ctx, invoices.tx, slices.Compact(slices.Sorted(slices.Values(ids))))
	if err != nil {
		return err
	}
	payments := make(map[string]invoice.Payment, len(rows))
	for _, row := range rows {
		payments[row.ID] = row.Payment
	}
	for _, r := range refunds {
		inv := invoices.byID[r.InvoiceID].WithRefunds(r)
		invoices.put(inv)
		if err := s.emit(out, invoice.EventRefunded, r.ID, inv, apiconv.RefundData(r, payments[r.PaymentID])); err != nil {
			return err
		}
	}
	return nil
}
