package api

import (
	"context"
	"errors"
	"fmt"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// safeOf returns the state of a hash that was recorded for a refund, or of none, if a contract such as a Safe sends the
// refund. A Safe that has used the number of the transaction did not transfer if that would have been recorded. like is
// the id of a transfer that it may have made then, as another refund, or empty.
func (a *API) safeOf(ctx context.Context, refund invoice.RefundRecord, hash invoice.Hash) (report chain.SafeReport, like string, err error) {
	through, err := a.readThrough(ctx, refund.ChainKey)
	if err != nil {
		return report, "", err
	}
	answers, err := a.conf.Nodes.SafeTransaction(ctx, refund, hash, through)
	if err != nil {
		return report, "", unanswered(err)
	}
	if report = answers.Judge(true); report.State != chain.SafeUsed && !report.Spent {
		return report, "", nil
	}
	if like, err = a.conf.Reader.TransferLike(ctx, refund, refund.CreatedAt); err != nil {
		return report, "", fmt.Errorf("look for a transfer like refund %s: %w", refund.ID, err)
	}
	return answers.Judge(like == "" && refund.WouldBeSent()), like, nil
}

// readThrough returns the last final block up to which a chain is read, zero without one.
func (a *API) readThrough(ctx context.Context, chainKey string) (invoice.Header, error) {
	cursor, err := a.conf.Reader.Cursor(ctx, chainKey)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return invoice.Header{}, fmt.Errorf("read the cursor of %s: %w", chainKey, err)
	}
	return cursor.ReadThrough(), nil
}

// replaceable returns the hash of a submission that another one may replace: one that cannot be executed any more. It
// is zero without a hash. The error describes what a contract can still do with the hash, or that the transaction was
// mined in a block that is not final: with another hash, the refund could be withdrawn and sent again. A wallet may
// replace one that waits.
func (a *API) replaceable(ctx context.Context, refundID, submissionID, merchantID string, tx invoice.Hash) (invoice.Hash, error) {
	refund, s, err := a.inForce(ctx, refundID, submissionID, merchantID)
	if err != nil || s.TxHash.IsZero() || s.TxHash == tx {
		return s.TxHash, err
	}
	safe, _, err := a.safeOf(chain.OnBehalfOf(ctx, refund.MerchantID), refund, s.Signed())
	if err == nil && safe.State == chain.SafeUnknown {
		err = problemf(apitypes.CodeRefundSubmitted, "The account %s is a contract, and may still execute %s, which is recorded for this refund. "+
			"Another hash would hide it. Withdraw the submission first, once you know that it is not executed.", chain.Checksum(refund.From), s.Signed())
	}
	if err == nil {
		err = refuseSafe(safe, refund.From, false)
	}
	if err != nil || safe.State != chain.SafeNone {
		return s.TxHash, err
	}
	state, err := a.refundTransaction(ctx, refund.ChainKey, s.TxHash)
	switch {
	case state == chain.Mined:
		err = problemf(apitypes.CodeRefundSubmitted, "The transaction %s, which is recorded for this refund, was mined, in a block that is not final or not read yet. "+
			"Another hash would hide it. Repeat the request later.", s.TxHash)
	case errors.Is(err, chain.ErrIncomplete):
		err = nil // a node that answers does not have it
	}
	return s.TxHash, unanswered(err)
}

// refuseSafe returns why a submission cannot be withdrawn while a contract is in a state, or nil.
func refuseSafe(safe chain.SafeReport, from invoice.Address, checkedInWallet bool) error {
	switch safe.State {
	case chain.SafeWaiting:
		return problemf(apitypes.CodeRefundSubmitted, "The Safe %s can still execute this refund, as its transaction number %d. "+
			"Execute it, or reject that number in the Safe, once earlier numbers are used. Repeat the request when the rejection is final.", chain.Checksum(from), safe.Nonce)
	case chain.SafeSettling:
		return problemf(apitypes.CodeRefundSubmitted, "The Safe %s has used its transaction number %d, in a block that is not final or not read yet. "+
			"Repeat the request later.", chain.Checksum(from), safe.Nonce)
	case chain.SafeUnknown:
		if !checkedInWallet {
			return problemf(apitypes.CodeRefundSubmitted, "The account %s is a contract, and its owners may have signed a transaction that is still executed, "+
				"or was. Then the refund would be paid twice. Check in the wallet that this cannot happen, and confirm that with the withdrawal (checkedInWallet=true).",
				chain.Checksum(from))
		}
	case chain.SafeNone, chain.SafeUsed:
	}
	return nil
}

// viewsOf returns the owner of the calls of nodes that show a merchant's refunds. A withdrawal needs the merchant's own
// budget, and no merchant has such an id.
func viewsOf(merchantID string) string { return "views of " + merchantID }

// submissionSafe returns what a contract will do with a submission, or nil if no contract sends the refund or no node
// answers. Of a refund that is sent it returns only that the contract can send it again.
func (a *API) submissionSafe(ctx context.Context, refund invoice.RefundRecord, s invoice.Submission) *apitypes.SubmissionSafe {
	paid := refund.Status == invoice.RefundConfirmed && !s.TxHash.IsZero() && s.TxHash != refund.Transfer.TxHash
	if !s.InForce() || refund.Sent() && !paid {
		return nil
	}
	ctx = chain.OnBehalfOf(ctx, viewsOf(refund.MerchantID))
	safe, like, err := a.safeOf(ctx, refund, s.Signed())
	nonce := int64(safe.Nonce)
	switch {
	case err != nil || safe.State == chain.SafeNone || refund.Sent() && safe.State != chain.SafeWaiting:
		return nil
	case safe.State != chain.SafeUnknown:
		return &apitypes.SubmissionSafe{State: apitypes.SubmissionSafeState(safe.State), Nonce: &nonce}
	case !s.TxHash.IsZero() && a.maySend(ctx, refund, s.TxHash):
		return nil
	}
	shown := &apitypes.SubmissionSafe{State: apitypes.SafeUnknown, RefundID: a.ownRefund(ctx, refund.MerchantID, like)}
	if safe.Spent {
		shown.Nonce = &nonce
	}
	return shown
}

// maySend reports whether a recorded hash is that of a transaction that nodes know, or whether they do not answer.
func (a *API) maySend(ctx context.Context, refund invoice.RefundRecord, hash invoice.Hash) bool {
	state, err := a.refundTransaction(ctx, refund.ChainKey, hash)
	return err != nil && !errors.Is(err, chain.ErrIncomplete) || state == chain.Queued || state == chain.Mined
}

// ownRefund returns the id of a refund if it is the merchant's, else "": merchants may share an address.
func (a *API) ownRefund(ctx context.Context, merchantID, id string) string {
	if id == "" {
		return ""
	}
	r, err := a.conf.Reader.RefundRecord(ctx, id)
	if err != nil || r.MerchantID != merchantID {
		return ""
	}
	return r.ID
}
