package settle

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of AttributeManually.
var (
	// ErrAttributed: the payment belongs to another invoice.
	ErrAttributed = errors.New("the payment belongs to another invoice")
	// ErrOrphaned: a reorg replaced the payment's block, and its transaction was
	// not mined again.
	ErrOrphaned = errors.New("the payment's block left the chain")
	// ErrUndecided: the payment may still be attributed by a rule, once older
	// blocks of its chain are read.
	ErrUndecided = errors.New("the payment waits for older blocks to be read")
	// ErrIsRefund: the transfer is a refund that a merchant prepared.
	ErrIsRefund = errors.New("the transfer is a prepared refund")
)

// ManualAttribution attributes a payment to an invoice without a rule. The
// caller checks By and Note by the rules of a label; Note may be empty.
type ManualAttribution struct {
	PaymentID string
	InvoiceID string
	By        string // who attributes it
	Note      string // why
	// MerchantID, if set, is the merchant that attributes it. Only payments to the
	// merchant's addresses and its invoices are found then.
	MerchantID string
}

// auditedAttribution is a manual attribution in the audit log.
type auditedAttribution struct {
	InvoiceID string `json:"invoiceId"`
	By        string `json:"by"`
	Note      string `json:"note,omitempty"`
}

// AttributeManually attributes a payment without an invoice, and records by whom. payment.received is
// emitted as for any payment, and the invoice is recomputed at once if the payment is final. Its
// confirmed refunds are attributed and announced with it. If the transfer was stored as a refund that
// was not prepared, that refund is orphaned. It works on a halted chain.
//
// It returns the payment; if the payment belongs to the invoice already, it makes no change. The error
// is db.ErrNotFound if there is no such payment, and *invoice.FieldError if there is no such invoice
// or it expects another chain, token or address. It is *DecidedError if a person dismissed the
// payment, and *UsedError if the payment has another use. Other errors are *AttributedError,
// ErrIsRefund, ErrOrphaned and ErrUndecided.
func (s *Service) AttributeManually(ctx context.Context, m ManualAttribution) (invoice.Payment, error) {
	found, err := NewReader(s.store).Payment(ctx, m.PaymentID)
	if err != nil {
		return invoice.Payment{}, err
	}
	chainKey := found.ChainKey
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		if _, err := LockCursor(ctx, tx, chainKey); err != nil {
			return err
		}
		if found, err = NewReader(tx).Payment(ctx, m.PaymentID); err != nil {
			return err
		}
		if sees, err := sees(ctx, tx, m.MerchantID, found); err != nil {
			return err
		} else if !sees {
			return db.ErrNotFound
		}
		if found.InvoiceID == m.InvoiceID {
			return nil
		}
		if err := checkAttributable(ctx, tx, found.Payment); err != nil {
			return err
		}
		inv, err := NewReader(tx).Invoice(ctx, m.InvoiceID)
		switch {
		case errors.Is(err, db.ErrNotFound), err == nil && m.MerchantID != "" && inv.MerchantID != m.MerchantID:
			return &invoice.FieldError{Field: "invoiceId", Detail: "is of no invoice"}
		case err != nil:
			return err
		case !inv.Accepts(found.Transfer):
			return &invoice.FieldError{
				Field: "invoiceId", Detail: "is of an invoice that awaits another token, on another chain or at another address",
			}
		}
		if err := s.wantUse(ctx, tx, found, invoice.ActAttribute, m.MerchantID); err != nil {
			return err
		}
		out.audit = append(out.audit, access.NewEntry(ctx, s.now(), access.Change{
			MerchantID: inv.MerchantID, Action: access.ActionAttributionAssign, Object: found.ID,
			After: auditedAttribution{m.InvoiceID, m.By, m.Note},
		}))
		return s.attributeTo(ctx, tx, out, invoice.ByHand, &found, inv, m)
	})
	return found.Payment, err
}

// sees reports whether a merchant may see a payment. The empty merchant is the operator.
func sees(ctx context.Context, tx *db.Tx, merchantID string, p PaymentRow) (bool, error) {
	if merchantID == "" || p.Attributed() {
		return merchantID == "" || p.MerchantID == merchantID, nil
	}
	return NewReader(tx).HasUnattributed(ctx, merchantID, p.SeenID)
}

// checkAttributable returns ErrAttributed, ErrOrphaned, ErrUndecided or ErrIsRefund if the
// payment cannot be attributed by hand.
func checkAttributable(ctx context.Context, tx *db.Tx, p invoice.Payment) error {
	switch undecided, err := isUndecided(ctx, tx, p.ID); {
	case p.Attributed():
		return &AttributedError{p}
	case p.Status == invoice.Orphaned:
		return ErrOrphaned
	case undecided:
		return ErrUndecided
	case err != nil:
		return err
	}
	refund, err := storedRefund(ctx, tx, p.Transfer)
	if err == nil && isActive(refund) && refund.PreparedID != "" {
		return ErrIsRefund
	}
	return err
}

// attributeTo attributes a payment without an invoice by an off-chain method.
func (s *Service) attributeTo(ctx context.Context, tx *db.Tx, out *outbox, method invoice.Method, p *PaymentRow, inv invoice.Invoice, m ManualAttribution) error {
	invoices := newInvoiceSet(tx)
	if err := invoices.add(ctx, []invoice.Invoice{inv}); err != nil {
		return err
	}
	was := p.Payment
	p.Payment = p.WithAttribution(invoice.Attribution{Invoice: inv, Method: method})
	p.AttributedBy, p.AttributedAt = m.By, s.seconds()
	back, err := amountsReturned(ctx, tx, []string{p.ID}, s.schedule().Add(-returnPatience))
	if err != nil {
		return err
	}
	p.Returned = inv.ReturnedBefore(p.Payment, back[p.ID])
	if err := SavePayments(ctx, tx, []PaymentRow{*p}); err != nil {
		return err
	}
	if err := SetRefundInvoices(ctx, tx, []string{p.ID}); err != nil {
		return err
	}
	err = insertAttribution(ctx, tx, AttributionRow{
		ID: s.ids.New(""), PaymentID: p.ID, InvoiceID: inv.ID, By: m.By, Note: m.Note, At: p.AttributedAt,
	})
	if err != nil {
		return err
	}
	if err := s.emitReceived(out, p.Payment, inv); err != nil {
		return err
	}
	invoices.replace(was, p.Payment)
	freed, err := invoices.orphanRefund(ctx, p.Payment)
	if err != nil {
		return err
	}
	if _, err := s.recountReturned(ctx, invoices, []string{p.ID, freed}); err != nil {
		return err
	}
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
	heights, err := IndexedHeights(ctx, tx, []string{inv.ChainKey})
	if err != nil {
		return err
	}
	return s.saveInvoices(ctx, invoices, heights[inv.ChainKey])
}

// isUndecided reports whether a payment's attribution was deferred.
func isUndecided(ctx context.Context, tx *db.Tx, paymentID string) (bool, error) {
	undecided, err := NewReader(tx).WhichUndecided(ctx, []string{paymentID})
	return len(undecided) > 0, err
}

// confirmedRefunds returns the confirmed refunds of a payment.
func confirmedRefunds(ctx context.Context, tx *db.Tx, paymentID string) ([]invoice.Refund, error) {
	refunds, err := RefundsOfPayments(ctx, tx, []string{paymentID})
	return slices.DeleteFunc(refunds, func(r invoice.Refund) bool { return r.Status != invoice.Confirmed }), err
}

// storedRefund returns the stored refund of a transfer, or a zero Refund.
func storedRefund(ctx context.Context, tx *db.Tx, t invoice.Transfer) (r invoice.Refund, err error) {
	refunds, err := RefundsByID(ctx, tx, []string{tx.TransferID(invoice.PrefixRefund, t)})
	if len(refunds) > 0 {
		r = refunds[0]
	}
	return r, err
}

// isRefund reports whether a transfer is stored as a refund.
func isRefund(ctx context.Context, tx *db.Tx, t invoice.Transfer) (bool, error) {
	r, err := storedRefund(ctx, tx, t)
	return isActive(r), err
}

// orphanRefund orphans the stored refund of a payment's transfer. The event of the refund stays sent.
// It returns the id of the payment that was refunded, or an empty one.
func (set *invoiceSet) orphanRefund(ctx context.Context, p invoice.Payment) (freed string, err error) {
	was, err := storedRefund(ctx, set.tx, p.Transfer)
	if err != nil || !isActive(was) {
		return "", err
	}
	r := was
	if r.Status == invoice.Confirmed && r.Attributed() {
		if err := set.load(ctx, r.InvoiceID); err != nil {
			return "", err
		}
		set.put(set.byID[r.InvoiceID].WithoutRefund(r))
	}
	r.Status, r.ConfirmedAt = invoice.Orphaned, time.Time{}
	sums := newRefundedSums(set.tx)
	if err := sums.replace(ctx, was, r); err != nil {
		return "", err
	}
	if err := sums.save(ctx); err != nil {
		return "", err
	}
	return was.PaymentID, SaveRefund(ctx, set.tx, r)
}

// emitReceived emits payment.received for an attributed payment. It is stored once for each payment
// and invoice.
func (s *Service) emitReceived(out *outbox, p invoice.Payment, inv invoice.Invoice) error {
	return s.emit(out, invoice.EventReceived, p.ID+"/"+inv.ID, inv, apiconv.PaymentData(p))
}
