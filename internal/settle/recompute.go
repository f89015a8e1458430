package settle

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
)

// recompute counts payments and refunds that are confirmed now, and announces
// what follows: invoices that are paid by them, and the refunds. The payments
// come in the order of the chain; they and the refunds must have been written,
// and their invoices loaded.
func (s *Service) recompute(ctx context.Context, out *outbox, a *invoiceSet, payments []invoice.Payment, refunds []invoice.Refund) error {
	before := make(map[string]invoice.Status)
	for id, inv := range a.invoices {
		before[id] = inv.Status
	}
	touched, err := a.confirm(ctx, payments)
	if err != nil {
		return err
	}
	var paid []string
	for _, id := range touched {
		if a.invoices[id].Status != before[id] {
			paid = append(paid, id)
		}
	}
	if err := s.emitPaid(ctx, out, a, paid); err != nil {
		return err
	}
	return s.recomputeRefunds(ctx, out, a, refunds)
}

// emitPaid announces invoices that are paid now, and has the commitments
// closed of those that were paid without the registry.
func (s *Service) emitPaid(ctx context.Context, out *outbox, a *invoiceSet, ids []string) error {
	registered, err := a.tx.PaidThroughRegistry(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		inv := a.invoices[id]
		if err := s.emit(out, invoice.EventPaid, id, inv, apiconv.PaidInvoiceData(inv)); err != nil {
			return err
		}
		if inv.CloseIntent(registered[id]) {
			s.enqueueIntent(out, invoice.IntentClose, inv)
		}
	}
	return nil
}

// recomputeRefunds counts refunds that are confirmed now and announces them.
func (s *Service) recomputeRefunds(ctx context.Context, out *outbox, a *invoiceSet, refunds []invoice.Refund) error {
	ids := make([]string, len(refunds))
	for i, r := range refunds {
		ids[i] = r.PaymentID
	}
	rows, err := a.tx.PaymentsByID(ctx, slices.Compact(slices.Sorted(slices.Values(ids))))
	if err != nil {
		return err
	}
	payments := make(map[string]invoice.Payment, len(rows))
	for _, row := range rows {
		payments[row.ID] = row.Payment
	}
	for _, r := range refunds {
		inv := a.invoices[r.InvoiceID].WithRefunds(r)
		a.put(inv)
		if err := s.emit(out, invoice.EventRefunded, r.ID, inv, apiconv.RefundData(r, payments[r.PaymentID])); err != nil {
			return err
		}
	}
	return nil
}
