package ledger

import (
	"cmp"
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// StatusDiffersError is the error of a copy with a final status that the invoice can no longer have here.
type StatusDiffersError struct{ Copied, Stored invoice.Status }

// Error describes how they differ and who decides.
func (e *StatusDiffersError) Error() string {
	return fmt.Sprintf("its status is %s in the copy and %s in the database, and both are final; compare its payments with the merchant, and refund what is too much", e.Copied, e.Stored)
}

// pastEnd is how an imported invoice ended in the lost past, as its copy and the chain show it.
type pastEnd struct {
	status    invoice.Status // in the copy
	lost      LostInvoice    // its commitment on the chain; zero without it
	recovered bool           // a recovery has read the chain
	backup    uint64         // the newest block that the backup had read
	cur       Cursor
}

// Ended reports whether the invoice has a final status in the copy.
func (c InvoiceCopy) Ended() bool { return c.status() != invoice.Open }

// status returns the status in the copy if it is final, and otherwise open.
func (c InvoiceCopy) status() invoice.Status {
	switch s := invoice.Status(c.Invoice.Status); s {
	case invoice.Paid, invoice.Expired, invoice.Void:
		return s
	case invoice.Open, invoice.Drafted:
	}
	return invoice.Open
}

// apply returns the imported form of an invoice that the database lacks. For a void invoice, no
// payment since the backup is in time: it is unknown which arrived before it became void, and one with
// its amount may be for another invoice.
func (p pastEnd) apply(inv invoice.Invoice) invoice.Invoice {
	inv.FromBlock = p.backup
	if endsInLostPast(inv, p.lost) {
		inv.ClosedBlock = p.lost.ClosedBlock
	}
	switch p.status {
	case invoice.Void:
		inv.Status, inv.ClosedBlock = invoice.Void, cmp.Or(inv.ClosedBlock, p.backup)
	case invoice.Paid:
		inv.ClosedBlock = cmp.Or(inv.ClosedBlock, p.cur.Indexed.Number)
	case invoice.Expired:
		if expired, ok := inv.Expire(p.cur.Confirmed.Time); ok {
			inv = expired
			inv.ClosedBlock = p.cur.Indexed.Number
		}
	case invoice.Open, invoice.Drafted:
	}
	return inv
}

// followImport emits the events of an imported invoice that the merchant has had, with their former
// ids, and enqueues the intents for its commitment.
func (s *Service) followImport(ctx context.Context, tx *db.Tx, out *outbox, done Imported, p pastEnd) error {
	inv := done.Invoice
	created := inv
	created.Status = invoice.Open
	if err := s.emitOnlyCreated(out, created); err != nil {
		return err
	}
	switch {
	case inv.CloseIntent(false) && p.lost.ClosedBlock == 0:
		s.enqueueIntent(out, invoice.IntentClose, inv)
	case inv.Status == invoice.Open && done.Proof != ProvedByChain:
		s.enqueueIntent(out, invoice.IntentOpen, inv)
	case p.status == invoice.Open && inv.EndedInLostPast():
		return markClosed(ctx, tx, p.lost.CommitmentID, true)
	}
	switch inv.Status {
	case invoice.Expired:
		return s.emit(out, invoice.EventExpired, inv.ID, inv, apiconv.InvoiceData(inv))
	case invoice.Void:
		return InsertInvoiceTransition(ctx, tx, inv.ID, InvoiceTransition{Status: invoice.Void, At: s.conf.Now()})
	case invoice.Open, invoice.Drafted, invoice.Paid:
	}
	return nil
}

// endImported applies the final status of a copy to an invoice that exists. An open one expires and is paid as usual.
func (s *Service) endImported(ctx context.Context, tx *db.Tx, out *outbox, inv invoice.Invoice, p pastEnd) (invoice.Invoice, error) {
	switch {
	case p.status == invoice.Open, p.status == inv.Status:
		return inv, nil
	case inv.Status != invoice.Open:
		return inv, &StatusDiffersError{p.status, inv.Status}
	case p.status == invoice.Expired:
		return inv, nil
	case !p.recovered:
		return inv, ErrNoRecovery
	}
	block := p.cur.Indexed.Number
	if p.status == invoice.Void {
		block = p.backup
	}
	if err := markEndedInLostPast(ctx, tx, inv.ID, block); err != nil {
		return inv, err
	}
	if err := markClosed(ctx, tx, inv.CommitmentID, false); err != nil {
		return inv, err
	}
	ch, err := s.load(ctx, tx, inv.ChainKey, inv.ID)
	if err != nil {
		return inv, err
	}
	if p.status == invoice.Void {
		voided, err := ch.invoice(inv.ID).Cancel(block)
		if err != nil {
			return inv, err
		}
		ch.putInvoice(voided)
		s.enqueueIntent(out, invoice.IntentClose, voided)
		if err := s.recordVoid(ctx, tx, out, inv, voided); err != nil {
			return inv, err
		}
	}
	return ch.invoice(inv.ID), UpdateInvoices(ctx, tx, ch.changedInvoices())
}
