package settle

import (
	"context"
	"math"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wire"
)

// keptHeaders is how many headers of final blocks are kept, to tell a deep
// reorg when there is one.
const keptHeaders = 256

// expireBatch is how many invoices one transaction expires at most.
const expireBatch = 500

// Confirm makes everything in blocks up to the line final: payments and
// refunds are confirmed, invoices are paid, and intents whose event stands
// there are done. Then the invoices expire whose last second the chain has
// passed. The line must be a block that was read, and not one between two that
// were; one that is final already changes nothing.
func (s *Service) Confirm(ctx context.Context, chainKey string, line Header) error {
	err := s.update(ctx, func(tx *store.Tx, c *changes) error {
		cur, err := s.lock(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		if line.Number <= cur.Confirmed.Number {
			return nil
		}
		kept, err := tx.Headers(ctx, chainKey, line.Number, line.Number)
		if err != nil {
			return err
		}
		if len(kept) != 1 || kept[0].Hash != line.Hash {
			return ErrCursorMoved
		}
		if err := s.confirmTransfers(ctx, tx, c, chainKey, line.Number); err != nil {
			return err
		}
		if err := tx.FinishIntents(ctx, chainKey, line.Number); err != nil {
			return err
		}
		if err := tx.DeleteHeaders(ctx, chainKey, line.Number-min(line.Number, keptHeaders), math.MaxInt64); err != nil {
			return err
		}
		cur.Confirmed = line
		return tx.SaveCursor(ctx, chainKey, cur)
	})
	if err != nil {
		return err
	}
	return s.expire(ctx, chainKey)
}

// confirmTransfers confirms what is pending up to a block and reckons the
// invoices that it touches.
func (s *Service) confirmTransfers(ctx context.Context, tx *store.Tx, c *changes, chainKey string, through uint64) error {
	payments, err := tx.UnfinalPayments(ctx, chainKey, 0, through)
	if err != nil {
		return err
	}
	refunds, err := tx.UnfinalRefunds(ctx, chainKey, 0, through)
	if err != nil {
		return err
	}
	now := s.Now().Unix()
	touched := make(map[string]bool)
	for _, p := range payments {
		p.Status, p.ConfirmedAt = invoice.Confirmed, now
		if err := tx.SavePayment(ctx, p); err != nil {
			return err
		}
		if p.Attributed() {
			touched[p.InvoiceID] = true
		}
	}
	for _, r := range refunds {
		r.Status, r.ConfirmedAt = invoice.Confirmed, now
		if err := tx.SaveRefund(ctx, r); err != nil {
			return err
		}
		touched[r.InvoiceID] = true
	}
	return s.reckon(ctx, tx, c, touched, refunds)
}

// reckon brings the invoices up to date with their payments and refunds, and
// announces what follows: invoices that are paid now, and the refunds that
// were confirmed just now.
func (s *Service) reckon(ctx context.Context, tx *store.Tx, c *changes, touched map[string]bool, confirmed []invoice.Refund) error {
	ids := make([]string, 0, len(touched))
	for id := range touched {
		ids = append(ids, id)
	}
	invoices, err := tx.InvoicesByID(ctx, ids)
	if err != nil {
		return err
	}
	payments, err := tx.PaymentsOfInvoices(ctx, ids)
	if err != nil {
		return err
	}
	refunds, err := tx.RefundsOfInvoices(ctx, ids)
	if err != nil {
		return err
	}
	paymentsOf := make(map[string][]invoice.Payment)
	byID := make(map[string]invoice.Payment)
	for _, p := range payments {
		paymentsOf[p.InvoiceID] = append(paymentsOf[p.InvoiceID], p.Payment)
		byID[p.ID] = p.Payment
	}
	refundsOf := make(map[string][]invoice.Refund)
	for _, r := range refunds {
		refundsOf[r.InvoiceID] = append(refundsOf[r.InvoiceID], r)
	}
	invoicesByID := make(map[string]invoice.Invoice)
	for _, before := range invoices {
		after := before.Reckon(paymentsOf[before.ID]).ReckonRefunds(refundsOf[before.ID])
		invoicesByID[after.ID] = after
		if err := tx.UpdateInvoice(ctx, after); err != nil {
			return err
		}
		if before.Status == after.Status {
			continue
		}
		if err := s.announce(c, invoice.EventPaid, after.ID, after, wire.PaidData(after)); err != nil {
			return err
		}
		if after.CloseIntent(paymentsOf[after.ID]) {
			s.intend(c, invoice.IntentClose, after)
		}
	}
	for _, r := range confirmed {
		if err := s.announce(c, invoice.EventRefunded, r.ID, invoicesByID[r.InvoiceID],
			wire.RefundedData(r, byID[r.PaymentID])); err != nil {
			return err
		}
	}
	return nil
}

// expire expires the open invoices whose expiresAt lies before the chain's
// final block. Every payment up to that block is reckoned, so none that was
// mined in time is missed.
func (s *Service) expire(ctx context.Context, chainKey string) error {
	for {
		expired := 0
		err := s.update(ctx, func(tx *store.Tx, c *changes) error {
			cur, err := s.lock(ctx, tx, chainKey)
			if err != nil {
				return err
			}
			due, err := tx.ExpiringInvoices(ctx, chainKey, cur.Confirmed.Time, expireBatch)
			if err != nil {
				return err
			}
			expired = len(due)
			for _, inv := range due {
				if err := s.expireOne(ctx, tx, c, inv, cur.Confirmed.Time); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || expired < expireBatch {
			return err
		}
	}
}

func (s *Service) expireOne(ctx context.Context, tx *store.Tx, c *changes, inv invoice.Invoice, confirmedTime int64) error {
	after, ok := inv.Expire(confirmedTime)
	if !ok {
		return nil
	}
	if err := tx.UpdateInvoice(ctx, after); err != nil {
		return err
	}
	s.intend(c, invoice.IntentClose, after)
	return s.announce(c, invoice.EventExpired, after.ID, after, wire.ExpiredData(after))
}
