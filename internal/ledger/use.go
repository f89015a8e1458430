package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// UsedError means that a payment has a use that excludes the requested one.
type UsedError struct {
	Payment invoice.Payment
	Use     invoice.PaymentUse
	// RefundID is the prepared refund, if the calling merchant sees it; otherwise empty.
	RefundID string
}

// Error names the use.
func (e *UsedError) Error() string { return (&invoice.UsedError{Use: e.Use}).Error() }

// excludes reports whether the payment cannot be put to another use by an act.
func (u PaymentUse) excludes(act invoice.UseAct) bool {
	_, err := invoice.ChangeUse(u.UseFacts, act)
	return err != nil
}

// usesOf returns the facts that decide the current use of a payment. The chain's cursor must be locked.
func (s *Service) usesOf(ctx context.Context, tx *db.Tx, p PaymentRow) (PaymentUse, error) {
	uses, err := paymentUses(ctx, tx, []PaymentRow{p})
	return uses[p.ID], err
}

// wantUse returns an error unless a payment may be put to another use by a merchant, or by the
// operator if merchantID is empty. The error names the current use: *AttributedError, *DecidedError,
// *UsedError, or ErrRefundExceeds for a refund of a payment that was sent back.
func (s *Service) wantUse(ctx context.Context, tx *db.Tx, p PaymentRow, act invoice.UseAct, merchantID string) error {
	is, err := s.usesOf(ctx, tx, p)
	if err != nil {
		return err
	}
	if act == invoice.ActRefund && p.Attributed() {
		var waiver invoice.Decision
		if waiver, is.Accepted, err = waiverOf(ctx, tx, p.Payment); err != nil {
			return err
		}
		if is.Accepted && is.excludes(act) {
			return &DecidedError{waiver}
		}
	}
	_, err = invoice.ChangeUse(is.UseFacts, act)
	var used *invoice.UsedError
	switch {
	case !errors.As(err, &used):
		return err
	case used.Use == invoice.UseCounted:
		return &AttributedError{p.Payment}
	case used.Use == invoice.UseRefunded && act == invoice.ActRefund:
		return ErrRefundExceeds
	}
	return is.refusal(p.Payment, used.Use, merchantID)
}

// refusal returns the error that names a use to a merchant, or to the operator if merchantID is
// empty. It does not name people or refunds of other merchants.
func (u PaymentUse) refusal(p invoice.Payment, use invoice.PaymentUse, merchantID string) error {
	sees := func(id string) bool { return merchantID == "" || id == merchantID || id == "" }
	decisions := u.Dismissals
	if use == invoice.UseAttributing {
		decisions = u.Attributions
	}
	i := slices.IndexFunc(decisions, func(d invoice.Decision) bool { return sees(d.MerchantID) })
	if (use == invoice.UseDismissed || use == invoice.UseAttributing) && i >= 0 {
		return &DecidedError{decisions[i]}
	}
	e := &UsedError{Payment: p, Use: use}
	for _, r := range u.Prepared {
		if !r.Reserved().IsZero() && sees(r.MerchantID) {
			e.RefundID = r.ID
		}
	}
	return e
}

// waiverOf returns the decision that waives the rest of the amount of a payment's invoice. ok is false
// without one, and for a payment that came too late to count.
func waiverOf(ctx context.Context, tx *db.Tx, p invoice.Payment) (d invoice.Decision, ok bool, err error) {
	decisions, err := DecisionsInForce(ctx, tx, []string{p.InvoiceID})
	i := slices.IndexFunc(decisions, func(d invoice.Decision) bool { return d.Outcome == invoice.Accepted })
	if err != nil || i < 0 {
		return d, false, err
	}
	inv, err := NewReader(tx).Invoice(ctx, p.InvoiceID)
	return decisions[i], err == nil && !inv.IsLate(p.Position), err
}

// maxRefunding bounds the payments of an invoice with a refund that is prepared or not final that are
// examined before the rest of the invoice is waived.
const maxRefunding = 100

// wantFree returns a *UsedError unless a person may decide about an item, and uses up the approval of an attribution. The
// payment must have no other use, and the payments of an underpaid invoice must not be on their way back. It returns ErrUndecided
// while a rule may still attribute the payment, because a dismissed or rejected payment is not attributed.
func (s *Service) wantFree(ctx context.Context, tx *db.Tx, out *outbox, item InboxItem, req DecisionRequest) error {
	if req.Outcome == invoice.Attributed {
		m := ManualAttribution{InvoiceID: req.InvoiceID, MerchantID: req.MerchantID, Note: req.Reason}
		if _, err := s.wantAttributable(ctx, tx, item.Payment, m); err != nil {
			return err
		}
		return s.wantAttributionApproval(ctx, tx, out, item.Payment, m)
	}
	if req.Outcome == invoice.Released {
		return nil
	}
	if item.Payment.ID != "" {
		if undecided, err := isUndecided(ctx, tx, item.Payment.ID); err != nil || undecided {
			return cmp.Or(err, ErrUndecided)
		}
		if req.Kind == invoice.ItemQuarantined {
			return nil
		}
		return s.wantUse(ctx, tx, item.Payment, invoice.ActDismiss, req.MerchantID)
	}
	if req.Outcome != invoice.Accepted {
		return nil
	}
	payments, err := paymentsBeingRefunded(ctx, tx, item.Invoice, maxRefunding)
	for _, p := range payments {
		if !item.Invoice.IsLate(p.Position) {
			err = errors.Join(err, s.wantUse(ctx, tx, p, invoice.ActAccept, req.MerchantID))
		}
	}
	return err
}
