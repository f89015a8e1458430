package ledger

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// closedBatch is how many closed invoices one transaction decides about. While it runs, their chain cannot be read.
	closedBatch = 20
	// ClosedPayments is how many payments without an invoice it reads for each. An invoice with that many
	// may be paid by hand.
	ClosedPayments = 500
)

// endsInLostPast reports whether the close of an invoice's commitment shows that the invoice became void or paid in a past
// that the database has lost.
func endsInLostPast(inv invoice.Invoice, l LostInvoice) bool {
	return l.ClosedBlock > 0 && inv.Status == invoice.Open && !inv.EndedInLostPast() && !l.ClosedAt.After(inv.ExpiresAt)
}

// endInLostPast records that the close of its commitment ended an open invoice. voidClosed decides about it.
func endInLostPast(ctx context.Context, tx *db.Tx, inv invoice.Invoice, l LostInvoice) error {
	if err := insertLostInvoices(ctx, tx, []LostInvoice{l}); err != nil {
		return err
	}
	if err := markClosed(ctx, tx, l.CommitmentID, true); err != nil {
		return err
	}
	return markEndedInLostPast(ctx, tx, inv.ID, l.ClosedBlock)
}

// voidClosed makes open invoices void if their commitments were closed in final blocks, before they
// expired, by a past that the database has lost. Payments up to there have paid the invoices that they
// cover. An invoice that payments without an invoice may have paid by hand stays open until a person
// decides; it does not expire. During a recovery voidClosed does not decide, because imported invoices
// may explain such payments. It reports whether there may be more invoices than it decided about.
func (s *Service) voidClosed(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, cur Cursor) (more bool, err error) {
	if s.conf.Recovery {
		return false, nil
	}
	closed, err := closedInvoices(ctx, tx, chainKey, cur.Confirmed.Number, closedBatch)
	if err != nil || len(closed) == 0 {
		return false, err
	}
	uncounted, err := newestUncounted(ctx, tx, chainKey, cur)
	if err != nil {
		return false, err
	}
	ids := db.Each(closed, func(l LostInvoice) string { return l.InvoiceID })
	ch, err := s.load(ctx, tx, chainKey, ids...)
	if err != nil {
		return false, err
	}
	for _, l := range closed {
		was := ch.invoice(l.InvoiceID)
		if was.EndedInLostPast() && was.FromBlock < uncounted {
			continue
		}
		if err := s.voidUnlessPaid(ctx, tx, out, ch, was); err != nil {
			return false, err
		}
		if err := markClosed(ctx, tx, l.CommitmentID, false); err != nil {
			return false, err
		}
		more = len(closed) == closedBatch
	}
	return more, UpdateInvoices(ctx, tx, ch.changedInvoices())
}

// voidUnlessPaid makes an invoice void if it is open and no payment up to the block at which it ended can have
// paid it. An invoice that a held payment can have paid before it was refunded stays open until the payment's verdict.
func (s *Service) voidUnlessPaid(ctx context.Context, tx *db.Tx, out *outbox, ch *Changes, was invoice.Invoice) error {
	if !was.EndedInLostPast() {
		return nil
	}
	byHand, err := mayBePaidByHand(ctx, tx, was)
	if err != nil || byHand {
		return err
	}
	kept := was
	if kept.Sums.Returned = (invoice.Amount{}); kept.Covered() {
		if held, err := hasHeldPayment(ctx, tx, was); err != nil || held {
			return err
		}
	}
	voided, err := was.Cancel(was.ClosedBlock)
	if errors.Is(err, invoice.ErrCovered) {
		return nil
	}
	if err != nil {
		return err
	}
	ch.putInvoice(voided)
	return s.recordVoid(ctx, tx, out, was, voided)
}

// mayBePaidByHand reports whether payments without an invoice, up to the block at which an open
// invoice ended, may have paid it, or are too many to be read.
func mayBePaidByHand(ctx context.Context, tx *db.Tx, inv invoice.Invoice) (bool, error) {
	payments, err := unattributedOf(ctx, tx, inv, ClosedPayments)
	for _, p := range payments {
		if inv.Accepts(p.Transfer) {
			inv = inv.WithPayment(p)
		}
	}
	return len(payments) == ClosedPayments || inv.Covered(), err
}
