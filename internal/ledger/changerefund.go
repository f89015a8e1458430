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

// expireRefundBatch is how many refunds one transaction expires.
const expireRefundBatch = 500

// CancelRefund cancels a prepared refund that was not sent, which ends its reservation. Repeating it
// has no effect. If merchantID is set, only refunds of that merchant are found. Errors are
// db.ErrNotFound, ErrRefundNotOpen, *SubmittedError while another person sends it, and ErrUndecided while a transfer that
// may pay it waits for older blocks.
func (s *Service) CancelRefund(ctx context.Context, id, merchantID string) (invoice.RefundRecord, error) {
	return s.changeRefund(ctx, id, merchantID, access.ActionRefundCancel, func(r invoice.RefundRecord) (invoice.RefundRecord, bool) {
		return r.Cancel(s.seconds())
	}, func(r invoice.RefundRecord) bool { return r.Status == invoice.RefundCanceled })
}

// ApproveRefund approves the address that a payer named without a signature. The caller repeats the
// address, so that the merchant approves the one that it has seen. Repeating it has no effect. It
// returns the errors of CancelRefund, *access.ApprovalRequiredError, and *invoice.FieldError if the address receives
// payments.
func (s *Service) ApproveRefund(ctx context.Context, id, merchantID string, to invoice.Address) (invoice.RefundRecord, error) {
	return s.changeRefund(ctx, id, merchantID, access.ActionRefundApprove, func(r invoice.RefundRecord) (invoice.RefundRecord, bool) {
		return r.Approve(to, s.conf.Confirmed())
	}, func(r invoice.RefundRecord) bool {
		return r.Status == invoice.RefundPending && !r.ClaimHash.IsZero() && r.To == to
	})
}

// changeRefund changes a prepared refund, unless the change was made already.
func (s *Service) changeRefund(ctx context.Context, id, merchantID string, action access.Action,
	change func(invoice.RefundRecord) (invoice.RefundRecord, bool), done func(invoice.RefundRecord) bool,
) (r invoice.RefundRecord, err error) {
	if r, err = NewReader(s.conf.Store).RefundRecord(ctx, id); err != nil {
		return r, err
	}
	if merchantID != "" && r.MerchantID != merchantID {
		return r, db.ErrNotFound
	}
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		was, err := lockRefund(ctx, tx, r)
		if err != nil {
			return err
		}
		if merchantID != "" && was.MerchantID != merchantID {
			return db.ErrNotFound
		}
		if done(was) {
			r = was
			return nil
		}
		var ok bool
		if r, ok = change(was); !ok {
			return ErrRefundNotOpen
		}
		if err := wantUnsent(ctx, tx, r); err != nil {
			return err
		}
		return s.saveChangedRefund(ctx, tx, out, action, was, r)
	})
	return r, err
}

// saveChangedRefund writes a prepared refund that an action has changed, and the consequences.
func (s *Service) saveChangedRefund(ctx context.Context, tx *db.Tx, out *outbox, action access.Action, was, r invoice.RefundRecord) error {
	if action == access.ActionRefundApprove {
		if err := s.checkRecipient(ctx, tx, r, r.To); err != nil {
			return err
		}
		p, err := NewReader(tx).Payment(ctx, r.PaymentID)
		if err != nil {
			return err
		}
		sum, _, err := takenByRefunds(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		if err := s.wantRefundApproval(ctx, tx, out, r, p, r.ID, sum); err != nil {
			return err
		}
	}
	out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
		MerchantID: r.MerchantID, Action: action, Object: r.ID, Before: auditRefund(was), After: auditRefund(r),
	}))
	if err := updatePreparedRefund(ctx, tx, r); err != nil {
		return err
	}
	return s.updateReturned(ctx, tx, out, r.ChainKey, r.PaymentID)
}

// wantUnsent returns a *SubmittedError if another person sends the refund, or ErrUndecided if a transfer to its recipient
// waits for older blocks. It may pay the refund, and the rules for other transfers find no payment to that recipient.
func wantUnsent(ctx context.Context, tx *db.Tx, r invoice.RefundRecord) error {
	all, err := NewReader(tx).Submissions(ctx, r.ID)
	if current, ok := invoice.InForceOf(all); ok {
		return &SubmittedError{current}
	}
	waits, err2 := MayBeRefunded(ctx, tx, invoice.Transfer{ChainKey: r.ChainKey, From: r.To, To: r.From})
	if waits {
		err2 = ErrUndecided
	}
	return cmp.Or(err, err2)
}

// lockRefund locks the chain of a refund and reads the refund again.
func lockRefund(ctx context.Context, tx *db.Tx, r invoice.RefundRecord) (invoice.RefundRecord, error) {
	if _, err := LockCursor(ctx, tx, r.ChainKey); err != nil {
		return r, err
	}
	return NewReader(tx).RefundRecord(ctx, r.ID)
}

// RefundClaim is the address that a payer names for a refund.
type RefundClaim struct {
	Token     string
	To        invoice.Address
	Account   invoice.AccountKind // of To
	Signature string              // of chain.RefundClaimText by the payer's account, or empty
}

// NameRefundAddress stores the address that a payer names for a prepared refund. With a
// signature of the account that paid, the refund can be sent; otherwise it waits for the
// merchant's approval. Errors are db.ErrNotFound, *invoice.FieldError,
// ErrRefundNotOpen, ErrNotThePayer and chain.ErrSignature.
func (s *Service) NameRefundAddress(ctx context.Context, claim RefundClaim) (r invoice.RefundRecord, err error) {
	if r, err = RefundByClaimToken(ctx, s.conf.Store, claim.Token); err != nil {
		return r, err
	}
	if err := s.CheckRecipient(ctx, r, claim.To); err != nil {
		return r, err
	}
	if claim.Signature != "" {
		signer, err := chain.PersonalSigner(chain.RefundClaimText(s.byKey[r.ChainKey].ID, r, claim.To), claim.Signature)
		if err != nil {
			return r, err
		}
		if signer != r.Payer {
			return r, ErrNotThePayer
		}
	}
	err = s.update(ctx, func(tx *db.Tx, _ *outbox) error {
		was, err := lockRefund(ctx, tx, r)
		if err != nil {
			return err
		}
		if was.Status == invoice.RefundPending && was.To == claim.To && was.Signature != "" && claim.Signature != "" {
			r = was
			return nil // sent twice
		}
		if err := s.checkRecipient(ctx, tx, was, claim.To); err != nil {
			return err
		}
		var ok bool
		if r, ok = was.NameAddress(claim.To, claim.Account, claim.Signature, s.conf.Confirmed()); !ok {
			r = was
			return ErrRefundNotOpen
		}
		return updatePreparedRefund(ctx, tx, r)
	})
	return r, err
}

// ExpireRefunds expires the prepared refunds that were not sent in time. Their amounts count for open
// invoices again. A failure on one chain does not stop the others.
func (s *Service) ExpireRefunds(ctx context.Context) (err error) {
	for _, c := range s.conf.Chains {
		err = errors.Join(err, s.expireRefunds(ctx, c.Key))
	}
	return err
}

func (s *Service) expireRefunds(ctx context.Context, chainKey string) error {
	for more := true; more; {
		more = false // if the chain was never read
		err := s.updateChain(ctx, chainKey, func(tx *db.Tx, out *outbox) error {
			payments, err := ExpireRefunds(ctx, tx, chainKey, s.conf.Confirmed(), expireRefundBatch)
			more = len(payments) == expireRefundBatch
			if err != nil || len(payments) == 0 {
				return err
			}
			return s.updateReturned(ctx, tx, out, chainKey, payments...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
