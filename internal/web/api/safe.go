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

// safeOf returns the state of a submission without a transaction on the chain, if a contract such as a Safe sends the
// refund. A Safe that has used the number of the transaction did not transfer, unless a transfer like the refund's is
// known as another refund.
func (a *API) safeOf(ctx context.Context, refund invoice.RefundRecord, s invoice.Submission) (chain.SafeReport, error) {
	cursor, err := a.conf.Reader.Cursor(ctx, refund.ChainKey)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return chain.SafeReport{}, fmt.Errorf("read the cursor of %s: %w", refund.ChainKey, err)
	}
	report, err := a.conf.Nodes.SafeTransaction(ctx, refund, s.TxHash, cursor.ReadThrough())
	if err != nil {
		return report, unanswered(err)
	}
	if report.State != chain.SafeUsed {
		return report, nil
	}
	transferred, err := a.conf.Reader.HasTransferLike(ctx, refund, s.StartedAt)
	if err != nil {
		return report, fmt.Errorf("look for a transfer like refund %s: %w", refund.ID, err)
	}
	if transferred {
		report.State = chain.SafeUnknown
	}
	return report, nil
}

// refuseSafe returns why a submission cannot be withdrawn while a contract is in a state, or nil.
func refuseSafe(safe chain.SafeReport, from invoice.Address, checkedInWallet bool) error {
	switch safe.State {
	case chain.SafeWaiting:
		return problemf(apitypes.CodeRefundSubmitted, "The Safe %s can still execute this refund, as its transaction number %d. "+
			"Reject that number in the Safe, or execute it. Repeat the request when the rejection is final.", chain.Checksum(from), safe.Nonce)
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

// submissionSafe returns what a contract will do with a submission, or nil if no contract sends the refund, it is sent,
// or no node answers.
func (a *API) submissionSafe(ctx context.Context, refund invoice.RefundRecord, s invoice.Submission) *apitypes.SubmissionSafe {
	if refund.Sent() || !s.InForce() {
		return nil
	}
	ctx = chain.OnBehalfOf(ctx, refund.MerchantID)
	safe, err := a.safeOf(ctx, refund, s)
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
