package settle

import (
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Errors of AttributeManually.
var (
	// ErrAttributed: the payment belongs to another invoice.
	ErrAttributed = errors.New("the payment belongs to another invoice")
	// ErrOrphaned: a reorg left the payment's block, and its transaction was
	// not mined again.
	ErrOrphaned = errors.New("the payment's block left the chain")
	// ErrUndecided: the payment waits for older blocks of its chain to be read,
	// and a rule may give it to an invoice then.
	ErrUndecided = errors.New("the payment waits for older blocks to be read")
)

// ManualAttribution is somebody's word that a payment is meant for an invoice.
// By and Note are held against the rules of a label by who takes them in; Note
// may be empty.
type ManualAttribution struct {
	PaymentID string
	InvoiceID string
	By        string // who says so
	Note      string // why
}

// AttributeManually attributes a payment that belongs to no invoice, and records
// who did. The payment is announced as any other, and if it is final the
// invoice is reckoned at once. Its refunds come along, and are announced then.
// Where the transfer was taken for a refund, it is one no longer. It returns the payment; when it belongs to the
// invoice already, nothing is changed. A halted chain does not hinder it.
//
// It returns store.ErrNotFound when there is no such payment, a
// *invoice.FieldError when there is no such invoice or it awaits other money
// than the payment's, ErrAttributed, ErrOrphaned or ErrUndecided.
func (s *Service) AttributeManually(ctx context.Context, h ManualAttribution) (invoice.Payment, error) {
	found, err := s.Store.Payment(ctx, h.PaymentID)
	if err != nil {
		return invoice.Payment{}, err
	}
	err = s.update(ctx, func(tx *store.Tx, out *outbox) error {
		if _, err := tx.LockCursor(ctx, found.ChainKey); err != nil {
			return err
		}
		if found, err = tx.Payment(ctx, h.PaymentID); err != nil {
			return err
		}
		switch {
		case found.InvoiceID == h.InvoiceID:
			return nil
		case found.Attributed():
			return ErrAttributed
		case found.Status == invoice.Orphaned:
			return ErrOrphaned
		}
		if waits, err := isUndecided(ctx, tx, found.ID); err != nil {
			return err
		} else if waits {
			return ErrUndecided
		}
		inv, err := tx.Invoice(ctx, h.InvoiceID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return &invoice.FieldError{Field: "invoiceId", Detail: "is of no invoice"}
		case err != nil:
			return err
		case !inv.Accepts(found.Transfer):
			return &invoice.FieldError{
				Field: "invoiceId", Detail: "is of an invoice that awaits another token, on another chain or at another address",
			}
		}
		return s.attributeBy(ctx, tx, out, invoice.ByHand, &found, inv, h)
	})
	return found.Payment, err
}

// attributeBy gives a payment without an invoice to one on somebody's word, by
// hand or by a claim.
func (s *Service) attributeBy(ctx context.Context, tx *store.Tx, out *outbox, method invoice.Method, p *store.PaymentRow, inv invoice.Invoice, h ManualAttribution) error {
	invoices := newInvoiceSet(tx)
	if err := invoices.add(ctx, []invoice.Invoice{inv}); err != nil {
		return err
	}
	was := p.Payment
	p.Payment = p.Of(invoice.Attribution{Invoice: inv, Method: method})
	p.AttributedBy, p.AttributedAt = h.By, s.Now().Unix()
	if err := tx.SavePayments(ctx, []store.PaymentRow{*p}); err != nil {
		return err
	}
	err := tx.InsertAttribution(ctx, store.AttributionRow{
		ID: s.ids.New(""), PaymentID: p.ID, InvoiceID: inv.ID, By: h.By, Note: h.Note, At: p.AttributedAt,
	})
	if err != nil {
		return err
	}
	if err := s.emitReceived(out, p.Payment, inv); err != nil {
		return err
	}
	invoices.replace(was, p.Payment)
	var confirmed []invoice.Payment
	if p.Status == invoice.Confirmed {
		confirmed = []invoice.Payment{p.Payment}
	}
	refunds, err := confirmedRefunds(ctx, tx, p.ID)
	if err != nil {
		return err
	}
	if err := s.recompute(ctx, out, invoices, confirmed, refunds); err != nil {
		return err
	}
	if err := invoices.undoRefund(ctx, p.Payment); err != nil {
		return err
	}
	heights, err := tx.IndexedHeights(ctx, []string{inv.ChainKey})
	if err != nil {
		return err
	}
	return s.saveInvoices(ctx, invoices, heights[inv.ChainKey])
}

// isUndecided reports whether a payment waits for older blocks to be read.
func isUndecided(ctx context.Context, tx *store.Tx, paymentID string) (bool, error) {
	waits, err := tx.WhichUndecided(ctx, []string{paymentID})
	return len(waits) > 0, err
}

// confirmedRefunds returns the refunds of a payment that are confirmed: they
// come along when it is attributed.
func confirmedRefunds(ctx context.Context, tx *store.Tx, paymentID string) ([]invoice.Refund, error) {
	refunds, err := tx.RefundsOfPayments(ctx, []string{paymentID})
	return slices.DeleteFunc(refunds, func(r invoice.Refund) bool { return r.Status != invoice.Confirmed }), err
}

// refundOf returns what was stored of a transfer as a refund; a zero one when
// nothing was.
func refundOf(ctx context.Context, tx *store.Tx, t invoice.Transfer) (r invoice.Refund, err error) {
	refunds, err := tx.RefundsByID(ctx, []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	if len(refunds) > 0 {
		r = refunds[0]
	}
	return r, err
}

// isRefund reports whether a transfer pays back a payment.
func isRefund(ctx context.Context, tx *store.Tx, t invoice.Transfer) (bool, error) {
	r, err := refundOf(ctx, tx, t)
	return counts(r), err
}

// undoRefund takes back what was stored of a transfer as a refund, now that
// somebody says that it is a payment. What was announced of it was announced.
func (a *invoiceSet) undoRefund(ctx context.Context, p invoice.Payment) error {
	was, err := refundOf(ctx, a.tx, p.Transfer)
	if err != nil || !counts(was) {
		return err
	}
	r := was
	if r.Status == invoice.Confirmed && r.Attributed() {
		if err := a.load(ctx, r.InvoiceID); err != nil {
			return err
		}
		a.put(a.invoices[r.InvoiceID].WithoutRefund(r))
	}
	r.Status, r.ConfirmedAt = invoice.Orphaned, 0
	back := newRefundedSums(a.tx)
	if err := back.replace(ctx, was, r); err != nil {
		return err
	}
	if err := back.save(ctx); err != nil {
		return err
	}
	return a.tx.SaveRefund(ctx, r)
}

// emitReceived tells the invoice's merchant of a payment that is
// attributed now. To the same invoice it is told once.
func (s *Service) emitReceived(out *outbox, p invoice.Payment, inv invoice.Invoice) error {
	return s.emit(out, invoice.EventReceived, p.ID+"/"+inv.ID, inv, apiconv.PaymentData(p))
}
