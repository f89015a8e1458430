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
// refund. A Safe that has used the number of the transaction did not transfer if that would have been recorded.
func (a *API) safeOf(ctx context.Context, refund invoice.RefundRecord, hash invoice.Hash) (chain.SafeReport, error) {
	cursor, err := a.conf.Reader.Cursor(ctx, refund.ChainKey)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return chain.SafeReport{}, fmt.Errorf("read the cursor of %s: %w", refund.ChainKey, err)
	}
	answers, err := a.conf.Nodes.SafeTransaction(ctx, refund, hash, cursor.ReadThrough())
	if err != nil {
		return chain.SafeReport{}, unanswered(err)
	}
	report := answers.Judge(true)
	if report.State != chain.SafeUsed {
		return report, nil
	}
	transferred, err := a.conf.Reader.HasTransferLike(ctx, refund, refund.CreatedAt)
	if err != nil {
		return report, fmt.Errorf("look for a transfer like refund %s: %w", refund.ID, err)
	}
	return answers.Judge(!transferred && refund.WouldBeSent()), nil
}

// replaceable returns the hash of a submission that another one may replace: one that cannot be executed any more. It is
// zero without a hash. The error describes what a contract can still do with the hash.
func (a *API) replaceable(ctx context.Context, refundID, submissionID, merchantID string, tx invoice.Hash) (invoice.Hash, error) {
	refund, s, err := a.inForce(ctx, refundID, submissionID, merchantID)
	if err != nil || s.TxHash.IsZero() || s.TxHash == tx {
		return s.TxHash, err
	}
	safe, err := a.safeOf(chain.OnBehalfOf(ctx, refund.MerchantID), refund, s.Signed())
	if err == nil && safe.State == chain.SafeUnknown {
		err = problemf(apitypes.CodeRefundSubmitted, "The account %s is a contract, and may still execute %s, which is recorded for this refund. "+
			"Another hash would hide it. Withdraw the submission first, once you know that it is not executed.", chain.Checksum(refund.From), s.Signed())
	}
	if err == nil {
		err = refuseSafe(safe, refund.From, false)
	}
	return s.TxHash, err
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

// submissionSafe returns what a contract will do with a submission, or nil if no contract sends the refund, it is sent,
// or no node answers.
func (a *API) submissionSafe(ctx context.Context, refund invoice.RefundRecord, s invoice.Submission) *apitypes.SubmissionSafe {
	if refund.Sent() || !s.InForce() {
		return nil
	}
	ctx = chain.OnBehalfOf(ctx, viewsOf(refund.MerchantID))
	safe, err := a.safeOf(ctx, refund, s.Signed())
	switch {
	case err != nil || safe.State == chain.SafeNone:
		return nil
	case safe.State != chain.SafeUnknown:
		nonce := int64(safe.Nonce)
		return &apitypes.SubmissionSafe{State: apitypes.SubmissionSafeState(safe.State), Nonce: &nonce}
	case !s.TxHash.IsZero():
		if state, err := a.conf.Nodes.RefundTransaction(ctx, refund, s.TxHash); err != nil || state == chain.Queued || state == chain.Mined {
			return nil
		}
	}
	return &apitypes.SubmissionSafe{State: apitypes.SafeUnknown}
}
