package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/tracing"
)

// Errors of AttributeManually.
var (
	// ErrAttributed: the payment belongs to another invoice.
	ErrAttributed = errors.New("the payment belongs to another invoice")
	// ErrOrphaned: a reorg replaced the payment's block, and its transaction was not mined again.
	ErrOrphaned = errors.New("the payment's block left the chain")
	// ErrUndecided: the payment may still be attributed by a rule, once older blocks of its chain are read.
	ErrUndecided = errors.New("the payment waits for older blocks to be read")
	// ErrRejected: the operator rejected the payment, which was quarantined.
	ErrRejected = errors.New("the payment was rejected after its screening")
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
// ErrIsRefund, ErrOrphaned, ErrRejected, ErrUndecided and *access.ApprovalRequiredError.
func (s *Service) AttributeManually(ctx context.Context, m ManualAttribution) (_ invoice.Payment, err error) {
	ctx, end := tracing.Begin(ctx, "attribute payment")
	defer end(&err)
	found, err := NewReader(s.conf.Store).Payment(ctx, m.PaymentID)
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
		if sees, err := sees(ctx, tx, m.MerchantID, found); err != nil || !sees {
			return cmp.Or(err, db.ErrNotFound)
		}
		if found.InvoiceID == m.InvoiceID {
			return nil
		}
		inv, err := s.wantAttributable(ctx, tx, found, m)
		if err != nil {
			return err
		}
		if err := s.wantAttributionApproval(ctx, tx, out, found, m); err != nil {
			return err
		}
		return s.attributeByHand(ctx, tx, out, &found, inv, m)
	})
	return found.Payment, err
}

// attributeByHand attributes a payment for which wantAttributable has returned the invoice, under the lock of its chain.
func (s *Service) attributeByHand(ctx context.Context, tx *db.Tx, out *outbox, p *PaymentRow, inv invoice.Invoice, m ManualAttribution) error {
	out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
		MerchantID: inv.MerchantID, Action: access.ActionAttributionAssign, Object: p.ID,
		After: auditedAttribution{m.InvoiceID, m.By, m.Note},
	}))
	return s.attributeTo(ctx, tx, out, invoice.ByHand, p, inv, m)
}

// wantAttributable returns the invoice to which a payment may be attributed by hand, by a merchant or by the operator.
// Otherwise it returns an error of AttributeManually.
func (s *Service) wantAttributable(ctx context.Context, tx *db.Tx, p PaymentRow, m ManualAttribution) (inv invoice.Invoice, err error) {
	if err := checkAttributable(ctx, tx, p.Payment); err != nil {
		return inv, err
	}
	inv, err = NewReader(tx).Invoice(ctx, m.InvoiceID)
	switch {
	case errors.Is(err, db.ErrNotFound), err == nil && m.MerchantID != "" && inv.MerchantID != m.MerchantID:
		return inv, &invoice.FieldError{Field: "invoiceId", Detail: "is of no invoice"}
	case err != nil:
		return inv, err
	case !inv.Accepts(p.Transfer):
		return inv, &invoice.FieldError{
			Field: "invoiceId", Detail: "is of an invoice that awaits another token, on another chain or at another address",
		}
	}
	return inv, s.wantUse(ctx, tx, p, invoice.ActAttribute, m.MerchantID)
}

// sees reports whether a merchant may see a payment. The empty merchant is the operator.
func sees(ctx context.Context, q db.Querier, merchantID string, p PaymentRow) (bool, error) {
	if merchantID == "" || p.Attributed() {
		return merchantID == "" || p.MerchantID == merchantID, nil
	}
	return NewReader(q).HasUnattributed(ctx, merchantID, p.SeenID)
}

// checkAttributable returns ErrAttributed, ErrOrphaned, ErrRejected, ErrUndecided or ErrIsRefund if the
// payment cannot be attributed by hand.
func checkAttributable(ctx context.Context, tx *db.Tx, p invoice.Payment) error {
	switch undecided, err := isUndecided(ctx, tx, p.ID); {
	case p.Attributed():
		return &AttributedError{p}
	case p.Status == invoice.Orphaned:
		return ErrOrphaned
	case p.Screening == invoice.ScreeningRejected:
		return ErrRejected
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
	heights, err := IndexedHeights(ctx, tx, []string{inv.ChainKey})
	if err != nil {
		return err
	}
	indexed := Cursor{Indexed: invoice.Header{Number: heights[inv.ChainKey]}}
	ch, err := change(ctx, tx, s.scope(inv.ChainKey, indexed), func(ch *Changes) {
		row := *p
		row.Note = m.Note
		ch.attributeTo(row, method, inv.ID, m.By)
	})
	if err != nil {
		return err
	}
	if err := s.save(ctx, tx, out, ch); err != nil {
		return err
	}
	*p = ch.payments[p.ID]
	return nil
}

// attributeTo attributes a payment without an invoice by an off-chain method.
func (ch *Changes) attributeTo(p PaymentRow, method invoice.Method, invoiceID, by string) {
	was, inv := p.Payment, ch.invoice(invoiceID)
	p.Payment = p.WithAttribution(invoice.Attribution{Invoice: inv, Method: method})
	p.AttributedBy, p.AttributedAt = by, ch.chain.now
	p.Returned = inv.ReturnedBefore(p.Payment, ch.amountReturned(p.ID))
	ch.effects.received(p.Payment, inv)
	ch.put(was, p)
	freed := ch.freeRefund(p.Payment)
	ch.recountEarly(p.ID, freed)
	if p.Status == invoice.Confirmed {
		ch.confirmed = []invoice.Payment{p.Payment}
	}
	ch.countConfirmed(maxBlock)
	ch.finishPaid()
	ch.countRefunds(ch.confirmedRefunds(p.ID))
	ch.recountRemainders()
}

// freeRefund orphans the refund that a payment's transfer is stored as. The event of the refund stays sent. It returns
// the id of the payment that was refunded, or an empty one.
func (ch *Changes) freeRefund(p invoice.Payment) (freed string) {
	was, _ := ch.refund(ch.before.transferID(invoice.PrefixRefund, p.Transfer))
	if !isActive(was) {
		return ""
	}
	ch.replaceRefund(was, ch.uncounted(was))
	ch.markRefund(was.ID)
	ch.endAwait(was.ID)
	return was.PaymentID
}

// isUndecided reports whether a payment's attribution was deferred.
func isUndecided(ctx context.Context, tx *db.Tx, paymentID string) (bool, error) {
	undecided, err := NewReader(tx).WhichUndecided(ctx, []string{paymentID})
	return len(undecided) > 0, err
}

// storedRefund returns the refund that a transfer is stored as, or a zero Refund.
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

const (
	// maxAppliedAttributions bounds the attributions of one call of ApplyAttributions.
	maxAppliedAttributions = 100
	// maxUndoneBy bounds the column that names who undid a decision, in characters.
	maxUndoneBy = 200
)

// ApplyAttributions attributes the payments whose attribution was decided invoice.AttributionDelay ago and not undone,
// each in a separate transaction. A decision that cannot take effect any more is undone, and names the reason. A
// failure does not stop the others.
func (s *Service) ApplyAttributions(ctx context.Context) error {
	ids, err := attributionsToApply(ctx, s.conf.Store, s.conf.Now(), maxAppliedAttributions)
	for _, id := range ids {
		if failed := s.applyAttribution(ctx, id); failed != nil {
			err = errors.Join(err, fmt.Errorf("decision %s: %w", id, failed))
		}
	}
	return err
}

// applyAttribution makes the decision with the id take effect, unless it was undone or has taken effect.
func (s *Service) applyAttribution(ctx context.Context, id string) error {
	return s.update(ctx, func(tx *db.Tx, out *outbox) error {
		d, err := decision(ctx, tx, id)
		if err != nil {
			return err
		}
		if _, _, err := s.lockItem(ctx, tx, d.ObjectID, ""); err != nil { // which an undo locks, too
			return err
		}
		if d, err = decision(ctx, tx, id); err != nil || d.UndoneBy != "" || !d.AppliedAt.IsZero() {
			return err
		}
		was := d
		d.AppliedAt = s.seconds()
		if err := endDecision(ctx, tx, d); err != nil { // first, since the decision keeps the payment from other uses
			return err
		}
		p, err := NewReader(tx).Payment(ctx, d.ObjectID)
		if err != nil {
			return err
		}
		m := ManualAttribution{PaymentID: p.ID, InvoiceID: d.InvoiceID, By: d.By, Note: d.Reason}
		inv, err := s.wantAttributable(ctx, tx, p, m) // people have approved the decision, if they had to
		if err == nil {
			err = s.attributeByHand(ctx, tx, out, &p, inv, m)
		}
		if !isAttributionRefused(err) {
			return err
		}
		d.AppliedAt, d.UndoneBy, d.UndoneAt = was.AppliedAt, fmt.Sprintf("the service: %.*s", maxUndoneBy-20, err), s.seconds()
		out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
			MerchantID: d.MerchantID, Action: access.ActionInboxUndo, Object: d.ID, Before: auditDecision(was), After: auditDecision(d),
		}))
		return endDecision(ctx, tx, d)
	})
}

// isAttributionRefused reports whether an error is one with which AttributeManually refuses an attribution.
func isAttributionRefused(err error) bool {
	var decided *DecidedError
	var used *UsedError
	var field *invoice.FieldError
	return errors.As(err, &decided) || errors.As(err, &used) || errors.As(err, &field) ||
		errors.Is(err, ErrAttributed) || errors.Is(err, ErrOrphaned) || errors.Is(err, ErrRejected) || errors.Is(err, ErrUndecided) || errors.Is(err, ErrIsRefund)
}
