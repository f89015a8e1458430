package ledger

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Errors of submissions.
var (
	// ErrTooManySubmissions: the refund has invoice.MaxSubmissions.
	ErrTooManySubmissions = errors.New("the refund was submitted too often")
	// ErrSubmissionSent: the submission has another transaction than the one that was not found.
	ErrSubmissionSent = errors.New("the submission's transaction may be mined")
)

// SubmittedError means that a person sends a refund.
type SubmittedError struct{ invoice.Submission }

// Error names who sends it.
func (e *SubmittedError) Error() string { return "submitted by " + e.By }

// auditedSubmission is a submission in the audit log.
type auditedSubmission struct {
	ID          string `json:"id"`
	By          string `json:"by"`
	TxHash      string `json:"txHash,omitempty"`
	WithdrawnBy string `json:"withdrawnBy,omitempty"`
	// CheckedInWallet is what the person who withdrew it declared.
	CheckedInWallet bool `json:"checkedInWallet,omitempty"`
}

func auditSubmission(s invoice.Submission) auditedSubmission {
	a := auditedSubmission{ID: s.ID, By: s.By, WithdrawnBy: s.WithdrawnBy}
	if !s.TxHash.IsZero() {
		a.TxHash = s.TxHash.String()
	}
	return a
}

// SubmitRefund records that the principal sends the transaction of a refund, so that no other principal does. tx is
// zero if it is not sent yet. If merchantID is set, only refunds of that merchant are found. A principal that gets a
// submission may sign. So a key returns the submission in force only to the principal that made it with the key, and
// only if it is unchanged since. Otherwise the key has no effect.
//
// Errors are db.ErrNotFound, ErrRefundNotOpen, *SubmittedError, ErrTooManySubmissions and ErrIdempotencyMismatch.
func (s *Service) SubmitRefund(ctx context.Context, refundID, merchantID string, tx invoice.Hash, once Once) (made invoice.Submission, err error) {
	hash, err := hashFields(tx.String())
	if err != nil {
		return made, err
	}
	err = s.changeSubmissions(ctx, refundID, merchantID, func(c submissionChange) error {
		p, open := access.FromContext(ctx), c.refund.CanBeSent(s.conf.Confirmed())
		switch current, ok := invoice.InForceOf(c.all); {
		case ok:
			used, err := hashInForce(ctx, c.tx, c.refund.ID, once.Scope, once.Key)
			switch own := err == nil && current.KeyID == p.KeyID; {
			case err != nil && !errors.Is(err, db.ErrNotFound):
				return err
			case own && used != hash:
				return ErrIdempotencyMismatch
			case !own || !open || current.TxHash != tx:
				return &SubmittedError{current}
			}
			made = current
			once.Mark(true)
			return nil
		case !open:
			return ErrRefundNotOpen
		case len(c.all) >= invoice.MaxSubmissions:
			return ErrTooManySubmissions
		}
		made = invoice.Submission{ID: s.ids.New(invoice.PrefixSubmission), RefundID: c.refund.ID, KeyID: p.KeyID, By: p.Label(), StartedAt: s.seconds(), Scheduled: s.scheduled(), TxHash: tx}
		c.audit(access.ActionRefundSubmit, nil, auditSubmission(made))
		return insertSubmission(ctx, c.tx, made, once.Scope, once.Key, hash)
	})
	return made, err
}

// RecordTransaction records the transaction of a submission. It may replace the transaction replaced, unless a reorg
// dropped that, and it may be mined again. The caller has checked that a contract cannot execute the replaced one. A
// submission that was withdrawn before its wallet answered is in force again, unless another one is. Each transaction may
// take invoice.SubmissionPatience to reach the nodes. Repeating it has no effect. Errors are db.ErrNotFound,
// *SubmittedError while a dropped transaction is awaited, and ErrSubmissionSent if the submission has another one.
func (s *Service) RecordTransaction(ctx context.Context, refundID, submissionID, merchantID string, tx, replaced invoice.Hash) (is invoice.Submission, err error) {
	err = s.changeSubmissions(ctx, refundID, merchantID, func(c submissionChange) error {
		was, err := c.find(submissionID)
		if err != nil {
			return err
		}
		if was.InForce() && c.refund.IsAwaited() && tx != was.TxHash {
			return &SubmittedError{was}
		}
		if was.InForce() && !was.TxHash.IsZero() && was.TxHash != tx && was.TxHash != replaced {
			return ErrSubmissionSent
		}
		is = was
		if is.TxHash != tx {
			is.TxHash, is.SignedHash = tx, invoice.Hash{}
		}
		if _, ok := invoice.InForceOf(c.all); !ok {
			is.WithdrawnBy, is.WithdrawnAt = "", time.Time{}
		}
		if is == was {
			return nil
		}
		is.Scheduled = s.scheduled()
		c.audit(access.ActionRefundSubmit, auditSubmission(was), auditSubmission(is))
		return saveSubmissions(ctx, c.tx, is)
	})
	return is, err
}

// Withdrawal asks to withdraw a submission of a refund.
type Withdrawal struct {
	RefundID, SubmissionID string
	// MerchantID, if set, is the merchant that asks. Only its refunds are found then.
	MerchantID string
	// Gone is the submission's transaction, which the nodes do not have; zero without one. Failed is set if it is in a
	// final block that is read, or the contract that would execute it cannot do so any more.
	Gone   invoice.Hash
	Failed bool
	// CheckedInWallet is set if a person declares that the transaction was not and will not be executed.
	CheckedInWallet bool
}

// WithdrawSubmission records that a submission did not send a transaction, so that the refund can be
// submitted again. Repeating it has no effect.
//
// Errors are db.ErrNotFound, *SubmittedError while a transaction may be sent, and ErrSubmissionSent if
// it has another transaction.
func (s *Service) WithdrawSubmission(ctx context.Context, req Withdrawal) (is invoice.Submission, err error) {
	err = s.changeSubmissions(ctx, req.RefundID, req.MerchantID, func(c submissionChange) error {
		was, err := c.find(req.SubmissionID)
		if err != nil || !was.InForce() {
			is = was
			return err
		}
		if was.TxHash != req.Gone {
			return ErrSubmissionSent
		}
		if c.refund.Sent() && c.refund.Transfer.TxHash == was.TxHash {
			return &SubmittedError{was} // it sent the refund
		}
		p := access.FromContext(ctx)
		var ok bool
		if is, ok = was.Withdraw(p.KeyID, p.Label(), req.Failed, s.seconds(), s.scheduled()); !ok {
			return &SubmittedError{was}
		}
		after := auditSubmission(is)
		after.CheckedInWallet = req.CheckedInWallet
		c.audit(access.ActionRefundWithdraw, auditSubmission(was), after)
		return saveSubmissions(ctx, c.tx, is)
	})
	return is, err
}

// SubmissionSeen records that a node has the transaction of a submission, so that it cannot be withdrawn for another
// invoice.SubmissionPatience. A submission with another transaction, or a withdrawn one, does not change. If merchantID
// is set, only refunds of that merchant are found. The error is db.ErrNotFound.
func (s *Service) SubmissionSeen(ctx context.Context, refundID, submissionID, merchantID string, tx invoice.Hash) error {
	return s.changeSubmissions(ctx, refundID, merchantID, func(c submissionChange) error {
		is, err := c.find(submissionID)
		if err != nil || !is.InForce() || is.TxHash != tx || tx.IsZero() {
			return err
		}
		is.Scheduled = s.scheduled()
		return saveSubmissions(ctx, c.tx, is)
	})
}

// submissionChange is a change of the submissions of a refund, under the lock of its chain.
type submissionChange struct {
	tx     *db.Tx
	refund invoice.RefundRecord
	all    []invoice.Submission // newest first
	audit  func(action access.Action, was any, is auditedSubmission)
}

// byReorg is the maker of the submission of a transfer that a reorg dropped.
const byReorg = "a transaction that left the chain"

// awaitDropped makes submissions of the transfers of refunds that a reorg dropped, because their
// transactions may be mined again. A submission in force takes the seen transaction, keeps the hash that the wallet
// answered, and starts again.
func (s *Service) awaitDropped(ctx context.Context, tx *db.Tx, dropped []invoice.Refund) error {
	records := db.Each(dropped, func(r invoice.Refund) string { return cmp.Or(r.PreparedID, r.ID) })
	stored, err := NewReader(tx).Submissions(ctx, records...)
	if err != nil {
		return err
	}
	byRecord := grouped(stored, func(s invoice.Submission) string { return s.RefundID })
	awaited := make([]invoice.Submission, len(dropped))
	for i, r := range dropped {
		all := byRecord[records[i]]
		is, ok := invoice.InForceOf(all)
		if !ok && len(all) >= invoice.MaxSubmissions {
			is, ok = all[0], true
		}
		switch {
		case !ok:
			is = invoice.Submission{ID: s.ids.New(invoice.PrefixSubmission), RefundID: records[i], By: byReorg}
		case is.TxHash != r.TxHash:
			is.SignedHash = is.Signed()
		}
		is.TxHash, is.StartedAt, is.Scheduled = r.TxHash, s.seconds(), s.scheduled()
		is.WithdrawnBy, is.WithdrawnAt = "", time.Time{}
		awaited[i] = is
	}
	return saveSubmissions(ctx, tx, awaited...)
}

// endAwait withdraws the submission of a transfer that a reorg dropped, now that it is mined again and is no
// refund: it will not come as one.
func (ch *Changes) endAwait(refundID string) {
	r, known := ch.refund(refundID)
	if !known || r.Status != invoice.Orphaned {
		return
	}
	record := cmp.Or(r.PreparedID, r.ID)
	is, ok := invoice.InForceOf(ch.before.submissions.get(record))
	if !ok || is.TxHash != r.TxHash || ch.withdrawn[record] {
		return
	}
	is.WithdrawnBy, is.WithdrawnAt = "the block that holds it as no refund", ch.chain.now
	ch.withdrawn[record] = true
	ch.effects.withdrawn = append(ch.effects.withdrawn, is)
	ch.effects.judged = append(ch.effects.judged, r.PaymentID)
	ch.markReturned(invoice.Refund{}, r)
}

// find returns the submission with an id, or db.ErrNotFound.
func (c submissionChange) find(id string) (invoice.Submission, error) {
	i := slices.IndexFunc(c.all, func(s invoice.Submission) bool { return s.ID == id })
	if i < 0 {
		return invoice.Submission{}, db.ErrNotFound
	}
	return c.all[i], nil
}

// changeSubmissions runs change on the submissions of a prepared refund.
func (s *Service) changeSubmissions(ctx context.Context, refundID, merchantID string, change func(submissionChange) error) error {
	found, err := NewReader(s.conf.Store).RefundRecord(ctx, refundID)
	if err != nil {
		return err
	}
	return s.update(ctx, func(tx *db.Tx, out *outbox) error {
		r, err := lockRefund(ctx, tx, found)
		if err != nil {
			return err
		}
		if sees, err := NewReader(tx).SeesRefund(ctx, merchantID, r); err != nil || !sees {
			return cmp.Or(err, db.ErrNotFound)
		}
		all, err := NewReader(tx).Submissions(ctx, r.ID)
		if err != nil {
			return err
		}
		c := submissionChange{tx: tx, refund: r, all: all, audit: func(action access.Action, was any, is auditedSubmission) {
			out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
				MerchantID: r.MerchantID, Action: action, Object: r.ID, Before: was, After: is,
			}))
		}}
		if err := change(c); err != nil {
			return err
		}
		if err := refreshUses(ctx, tx, r.PaymentID); err != nil { // a transfer may be awaited no longer
			return err
		}
		return s.updateReturned(ctx, tx, out, r.ChainKey, r.PaymentID)
	})
}

// SeesRefund reports whether a merchant, or the operator if the id is empty, sees a refund, and may act on its
// submissions. Others with the same address do not see a merchant's refunds. A transfer by hand that returned a payment
// without an invoice is no merchant's: who sees the payment sees it.
func (q Reader) SeesRefund(ctx context.Context, merchantID string, r invoice.RefundRecord) (bool, error) {
	if merchantID == "" || r.MerchantID != "" {
		return merchantID == "" || r.MerchantID == merchantID, nil
	}
	p, err := q.Payment(ctx, r.PaymentID)
	if err != nil {
		return false, err
	}
	return q.SeesPayment(ctx, merchantID, p)
}

// SeesPayment reports whether a payment is a merchant's, or in its list of payments without an invoice.
func (q Reader) SeesPayment(ctx context.Context, merchantID string, p PaymentRow) (bool, error) {
	if p.Attributed() {
		return p.MerchantID == merchantID, nil
	}
	return q.HasUnattributed(ctx, merchantID, p.SeenID)
}
