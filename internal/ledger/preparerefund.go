package ledger

import (
	"cmp"
	"context"
	"errors"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of prepared refunds.
var (
	// ErrPaymentPending: a reorg can still drop the payment.
	ErrPaymentPending = errors.New("the payment is not final")
	// ErrRefundExceeds: less is left of the payment.
	ErrRefundExceeds = errors.New("the refund exceeds what is left of the payment")
	// ErrTooManyRefunds: the payment has invoice.MaxPreparedRefunds.
	ErrTooManyRefunds = errors.New("too many refunds were prepared for the payment")
	// ErrRefundNotOpen: the refund's state does not allow this.
	ErrRefundNotOpen = errors.New("the refund is in another state")
)

// RefundRequest asks for a refund of a payment.
type RefundRequest struct {
	Once
	PaymentID string
	// MerchantID, if set, is the merchant that asks. Only payments that it sees are found then.
	MerchantID string
	Amount     invoice.Amount      // zero: the rest of the payment
	To         invoice.Address     // zero: the payer
	AskPayer   bool                // the payer names To
	Account    invoice.AccountKind // of To, unless the payer names it
	Reason     string              // checked as a label; may be empty
}

// auditedRefund is a prepared refund in the audit log.
type auditedRefund struct {
	PaymentID string               `json:"paymentId"`
	Amount    string               `json:"amount"`
	To        string               `json:"to,omitempty"`
	Status    invoice.RefundStatus `json:"status"`
	Reason    string               `json:"reason,omitempty"`
}

func auditRefund(r invoice.RefundRecord) auditedRefund {
	a := auditedRefund{PaymentID: r.PaymentID, Amount: r.Amount.String(), Status: r.Status, Reason: r.Reason}
	if !r.To.IsZero() {
		a.To = chain.Checksum(r.To)
	}
	return a
}

// PrepareRefund reserves a part of a payment for a refund, which the merchant then sends. With a key that was used
// before, it returns the refund of the first request in its current state. It works on a halted chain.
//
// Errors are db.ErrNotFound, ErrOrphaned, ErrPaymentPending, ErrUndecided, *DecidedError if a person
// dismissed the payment or waived the rest of its invoice, *UsedError, ErrRefundExceeds,
// ErrTooManyRefunds, ErrIdempotencyMismatch, *invoice.FieldError and *access.ApprovalRequiredError.
func (s *Service) PrepareRefund(ctx context.Context, req RefundRequest) (r invoice.RefundRecord, err error) {
	found, err := NewReader(s.conf.Store).Payment(ctx, req.PaymentID)
	if err != nil {
		return r, err
	}
	chainKey := found.ChainKey
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		if _, err := LockCursor(ctx, tx, chainKey); err != nil {
			return err
		}
		if found, err = NewReader(tx).Payment(ctx, req.PaymentID); err != nil {
			return err
		}
		if sees, err := sees(ctx, tx, req.MerchantID, found); err != nil || !sees {
			return cmp.Or(err, db.ErrNotFound)
		}
		r, err = s.prepareOnce(ctx, tx, out, req, found)
		return err
	})
	return r, err
}

// prepareOnce prepares the refund unless the request's key was used before for the payment.
func (s *Service) prepareOnce(ctx context.Context, tx *db.Tx, out *outbox, req RefundRequest, p PaymentRow) (r invoice.RefundRecord, err error) {
	hash, err := hashRefund(req)
	if err != nil {
		return r, err
	}
	if req.Key != "" {
		first, used, err := RefundByKey(ctx, tx, p.ID, req.Scope, req.Key)
		switch {
		case err == nil && used != hash:
			return r, ErrIdempotencyMismatch
		case !errors.Is(err, db.ErrNotFound):
			req.Mark(err == nil)
			return first, err
		}
	}
	r, taken, err := s.buildRefund(ctx, tx, req, p)
	if err != nil {
		return r, err
	}
	if err := s.wantRefundApproval(ctx, tx, out, r, p, "", taken.Plus(r.Amount)); err != nil {
		return r, err
	}
	out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
		MerchantID: r.MerchantID, Action: access.ActionRefundPrepare, Object: r.ID, After: auditRefund(r),
	}))
	if err := insertPreparedRefund(ctx, tx, r, req.Scope, req.Key, hash); err != nil {
		return r, err
	}
	if err := s.updateReturned(ctx, tx, out, r.ChainKey, r.PaymentID); err != nil {
		return r, err
	}
	token := r.ClaimToken
	r, err = NewReader(tx).RefundRecord(ctx, r.ID)
	r.ClaimToken = token
	return r, err
}

// buildRefund checks a request and returns its refund, and what other refunds take of the payment.
func (s *Service) buildRefund(ctx context.Context, tx *db.Tx, req RefundRequest, p PaymentRow) (r invoice.RefundRecord, taken invoice.Amount, err error) {
	if err := checkRefundable(ctx, tx, p.Payment, cmp.Or(req.To, p.From)); err != nil {
		return r, taken, err
	}
	if err := s.wantUse(ctx, tx, p, invoice.ActRefund, req.MerchantID); err != nil {
		return r, taken, err
	}
	taken, prepared, err := takenByRefunds(ctx, tx, p.ID)
	if err == nil && prepared >= invoice.MaxPreparedRefunds {
		err = ErrTooManyRefunds
	}
	if err != nil {
		return r, taken, err
	}
	amount, left := req.Amount, p.Amount.Minus(taken)
	if amount.IsZero() {
		amount = left
	}
	if amount.IsZero() || left.Less(amount) {
		return r, taken, ErrRefundExceeds
	}
	now := s.seconds()
	r = invoice.RefundRecord{
		ID: s.ids.New(invoice.PrefixRefund), PaymentID: p.ID, InvoiceID: p.InvoiceID, MerchantID: p.MerchantID, ChainKey: p.ChainKey,
		Token: p.Token, From: p.RefundedFrom(), Payer: p.From, Status: invoice.RefundPending, CreatedAt: now, Amount: amount, Reason: req.Reason,
		ExpiresAt: now.Add(invoice.RefundLifetime),
	}
	if r.Tag, err = invoice.RefundTag(r.PaymentID, r.ID); err != nil {
		return r, taken, err
	}
	if r.MerchantID == "" {
		r.MerchantID = req.MerchantID
	}
	if r.ManyInvoices, err = HasPaidManyInvoices(ctx, tx, p.Payment, invoice.ManyInvoices); err != nil {
		return r, taken, err
	}
	if req.AskPayer {
		r.Status = invoice.RefundAwaitingAddress
		r.ClaimToken, err = s.newClaimToken(r.ID)
		return r, taken, err
	}
	r.To, r.Account = req.To, req.Account
	if r.To.IsZero() {
		r.To = p.From
	}
	return r, taken, s.checkRecipient(ctx, tx, r, r.To)
}

// CheckRecipient returns an *invoice.FieldError if the tokens of a refund must not go to an address: it cannot send
// them on, or it receives payments. The account that paid may be one that receives payments.
func (s *Service) CheckRecipient(ctx context.Context, r invoice.RefundRecord, to invoice.Address) error {
	return s.checkRecipient(ctx, s.conf.Store, r, to)
}

func (s *Service) checkRecipient(ctx context.Context, read db.Querier, r invoice.RefundRecord, to invoice.Address) error {
	switch {
	case to.IsZero():
		return &invoice.FieldError{Field: "to", Detail: "must not be the zero address"}
	case to == r.Token, s.byKey[r.ChainKey].KeepsMoney(to):
		return &invoice.FieldError{Field: "to", Detail: "is a contract that would keep the money"}
	case to == r.From:
		return &invoice.FieldError{Field: "to", Detail: "is the settlement address itself"}
	case to == r.Payer:
		return nil
	}
	settlements, err := access.SettlementAddresses(ctx, read, r.ChainKey, []invoice.Address{to})
	if err != nil {
		return err
	}
	deposits, err := Deposits(ctx, read, r.ChainKey, []invoice.Address{to})
	if err == nil && (settlements[to] || deposits[to] != "") {
		err = &invoice.FieldError{Field: "to", Detail: "is an address at which payments are received"}
	}
	return err
}

// checkRefundable returns an error if no refund of the payment to a recipient can be prepared.
func checkRefundable(ctx context.Context, tx *db.Tx, p invoice.Payment, to invoice.Address) error {
	switch p.Status {
	case invoice.Orphaned:
		return ErrOrphaned
	case invoice.Pending, invoice.Held:
		return ErrPaymentPending
	case invoice.Confirmed:
	}
	if undecided, err := isUndecided(ctx, tx, p.ID); err != nil || undecided {
		return cmp.Or(err, ErrUndecided)
	}
	paid := p.Transfer
	paid.To = p.RefundedFrom()
	if waits, err := MayBeRefunded(ctx, tx, paid, to); err != nil || waits { // for older blocks
		return cmp.Or(err, ErrUndecided)
	}
	if refund, err := isRefund(ctx, tx, p.Transfer); err != nil || refund {
		return cmp.Or(err, ErrRefundExceeds) // a refund is not refunded
	}
	return nil
}

// takenByRefunds returns how much of a payment refunds on the chain and prepared ones take, and how many were prepared
// of it, in any state.
func takenByRefunds(ctx context.Context, q db.Querier, paymentID string) (taken invoice.Amount, prepared int, err error) {
	reserving, err := reservingRefunds(ctx, q, []string{paymentID})
	if err != nil {
		return taken, 0, err
	}
	for _, r := range reserving {
		if r.Prepared() {
			prepared++
		}
	}
	sums, err := RefundedSums(ctx, q, []string{paymentID})
	return sums[paymentID].All.Plus(invoice.ReservedOf(reserving)), prepared, err
}

// hashRefund returns a hash of the request's fields, which does not depend on how its JSON was written.
func hashRefund(req RefundRequest) (invoice.Hash, error) {
	return hashFields(req.Amount.String(), req.To.String(), req.AskPayer, req.Reason)
}
