package settle

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wire"
)

// account is an invoice with all that was paid to it.
type account struct {
	invoice.Invoice
	payments []invoice.Payment
}

// loadAccounts returns the accounts of the invoices with the ids.
func loadAccounts(ctx context.Context, tx *store.Tx, ids []string) ([]account, error) {
	invoices, err := tx.InvoicesByID(ctx, ids)
	if err != nil {
		return nil, err
	}
	payments, err := tx.PaymentsOfInvoices(ctx, ids)
	if err != nil {
		return nil, err
	}
	of := make(map[string][]invoice.Payment)
	for _, p := range payments {
		of[p.InvoiceID] = append(of[p.InvoiceID], p.Payment)
	}
	accounts := make([]account, len(invoices))
	for i, inv := range invoices {
		accounts[i] = account{inv, of[inv.ID]}
	}
	return accounts, nil
}

// reckon brings invoices up to date with their payments and refunds, and
// announces what follows: that they are paid now, and refunds of theirs that
// were confirmed just now.
func (s *Service) reckon(ctx context.Context, tx *store.Tx, c *changes, accounts []account, confirmed []invoice.Refund) error {
	ids := make([]string, len(accounts))
	for i, a := range accounts {
		ids[i] = a.ID
	}
	refunds, err := tx.RefundsOfInvoices(ctx, ids)
	if err != nil {
		return err
	}
	refundsOf := make(map[string][]invoice.Refund)
	for _, r := range refunds {
		refundsOf[r.InvoiceID] = append(refundsOf[r.InvoiceID], r)
	}
	after := make([]invoice.Invoice, len(accounts))
	byID := make(map[string]account, len(accounts))
	for i, a := range accounts {
		after[i] = a.Reckon(a.payments).ReckonRefunds(refundsOf[a.ID])
		byID[a.ID] = account{after[i], a.payments}
		if after[i].Status == a.Status {
			continue
		}
		if err := s.announce(c, invoice.EventPaid, a.ID, after[i], wire.PaidData(after[i])); err != nil {
			return err
		}
		if after[i].CloseIntent(a.payments) {
			s.intend(c, invoice.IntentClose, after[i])
		}
	}
	if err := tx.UpdateInvoices(ctx, after); err != nil {
		return err
	}
	for _, r := range confirmed {
		a := byID[r.InvoiceID]
		for _, p := range a.payments {
			if p.ID != r.PaymentID {
				continue
			}
			if err := s.announce(c, invoice.EventRefunded, r.ID, a.Invoice, wire.RefundedData(r, p)); err != nil {
				return err
			}
		}
	}
	return nil
}
