package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
)

// submitRefund answers POST /api/refunds/{id}/submissions.
func (a *API) submitRefund(w http.ResponseWriter, r *http.Request, o object, once ledger.Once) error {
	var tx invoice.Hash
	if err := optional(o, "txHash", func(name string) error { return text(o, "", name, &tx, invoice.ParseHash) }); err != nil {
		return err
	}
	s, err := a.conf.Ledger.SubmitRefund(r.Context(), r.PathValue("id"), access.FromContext(r.Context()).MerchantID, tx, once)
	return a.created(w, r, once, "/api/refunds/"+s.RefundID, apitypes.SubmissionResponse{Submission: Submission(s)}, db.During("submit refund", err))
}

// recordTransaction answers PUT /api/refunds/{id}/submissions/{submissionId}.
func (a *API) recordTransaction(w http.ResponseWriter, r *http.Request, o object) error {
	var tx invoice.Hash
	if err := text(o, "", "txHash", &tx, invoice.ParseHash); err != nil {
		return err
	}
	if tx.IsZero() {
		return invalidField("txHash", "must not be zero")
	}
	id := r.PathValue("id")
	submission, merchant := r.PathValue("submissionId"), access.FromContext(r.Context()).MerchantID
	replaced, err := a.replaceable(r.Context(), id, submission, merchant, tx)
	if err != nil {
		return err
	}
	s, err := a.conf.Ledger.RecordTransaction(r.Context(), id, submission, merchant, tx, replaced)
	return a.writeJSON(w, r, http.StatusOK, apitypes.SubmissionResponse{Submission: Submission(s)}, db.During("record transaction", err))
}

// withdrawSubmission answers POST /api/refunds/{id}/submissions/{submissionId}/withdraw.
func (a *API) withdrawSubmission(w http.ResponseWriter, r *http.Request) error {
	asked := ledger.Withdrawal{RefundID: r.PathValue("id"), SubmissionID: r.PathValue("submissionId"), MerchantID: access.FromContext(r.Context()).MerchantID}
	q := parseQuery(r)
	asked.CheckedInWallet, _ = q.flag("checkedInWallet")
	if q.err != nil {
		return q.err
	}
	if err := a.askNodes(r.Context(), &asked); err != nil {
		return err
	}
	s, err := a.conf.Ledger.WithdrawSubmission(r.Context(), asked)
	return a.writeJSON(w, r, http.StatusOK, apitypes.SubmissionResponse{Submission: Submission(s)}, db.During("withdraw submission", err))
}

// askNodes asks the chain's nodes whether the submission to be withdrawn has sent a transaction, or can still send one.
// A person may answer for a contract that the nodes know too little about. The error describes what they found, or that
// no node answers.
func (a *API) askNodes(ctx context.Context, asked *ledger.Withdrawal) error {
	refund, submission, err := a.inForce(ctx, asked.RefundID, asked.SubmissionID, asked.MerchantID)
	if err != nil || submission.ID == "" {
		return err
	}
	ctx = chain.OnBehalfOf(ctx, refund.MerchantID)
	asked.Gone = submission.TxHash
	safe, _, err := a.safeOf(ctx, refund, submission.Signed())
	if err != nil {
		return err
	}
	asked.Failed = safe.State == chain.SafeUsed
	var settled bool
	switch {
	case asked.Gone.IsZero():
		err = a.checkNoneWaits(ctx, refund)
	case safe.MayBeTransaction() || submission.Signed() != asked.Gone:
		settled, err = a.isSettled(ctx, *asked, refund.ChainKey)
	}
	declared := asked.CheckedInWallet && safe.State == chain.SafeUnknown // instead of nodes that do not answer
	if err != nil && !(declared && errors.Is(err, chain.ErrIncomplete)) {
		return unanswered(err)
	}
	asked.Failed = asked.Failed || settled && safe.State == chain.SafeNone // a contract can repeat it
	return refuseSafe(safe, refund.From, asked.CheckedInWallet)
}

// inForce returns a refund and its submission with an id. The submission is zero unless it is in force, and the refund is
// the merchant's if merchantID is set; the ledger refuses such requests.
func (a *API) inForce(ctx context.Context, refundID, submissionID, merchantID string) (refund invoice.RefundRecord, s invoice.Submission, err error) {
	refund, err = a.conf.Reader.RefundRecord(ctx, refundID)
	if err != nil {
		return refund, s, fmt.Errorf("read refund: %w", err)
	}
	if sees, err := a.conf.Reader.SeesRefund(ctx, merchantID, refund); err != nil || !sees {
		return refund, s, err
	}
	all, err := a.conf.Reader.Submissions(ctx, refund.ID)
	if err != nil {
		return refund, s, fmt.Errorf("read submissions: %w", err)
	}
	if i := slices.IndexFunc(all, func(s invoice.Submission) bool { return s.ID == submissionID && s.InForce() }); i >= 0 {
		s = all[i]
	}
	return refund, s, nil
}

// checkNoneWaits returns an error if a transaction of a refund's sender waits to be mined, or too few nodes answer.
func (a *API) checkNoneWaits(ctx context.Context, refund invoice.RefundRecord) error {
	waits, err := a.conf.Nodes.HasWaiting(ctx, refund.ChainKey, refund.From)
	if err == nil && waits {
		return problemf(apitypes.CodeRefundSubmitted, "A transaction of the account %s waits to be mined, which may send this refund. Repeat the request when it is mined, or record its hash.", chain.Checksum(refund.From))
	}
	return err
}

// isSettled reports whether the submission's transaction is in a final block that is read, so that the ledger knows
// whether it sent the refund. The error describes that a node has it otherwise, or that too few nodes answer.
func (a *API) isSettled(ctx context.Context, asked ledger.Withdrawal, chainKey string) (bool, error) {
	state, err := a.refundTransaction(ctx, chainKey, asked.Gone)
	if err != nil || state != chain.Queued && state != chain.Mined {
		return state == chain.Settled, err
	}
	if err := a.conf.Ledger.SubmissionSeen(ctx, asked.RefundID, asked.SubmissionID, asked.MerchantID, asked.Gone); err != nil {
		return false, fmt.Errorf("record that a transaction was seen: %w", err)
	}
	if state == chain.Mined {
		return false, problemf(apitypes.CodeRefundSubmitted, "The transaction %s was mined, in a block that is not final or not read yet. Repeat the request later.", asked.Gone)
	}
	return false, problemf(apitypes.CodeRefundSubmitted, "The network has the transaction %s, which sends this refund.", asked.Gone)
}

// refundTransaction returns what the nodes of a chain report about a transaction that was to send a refund.
func (a *API) refundTransaction(ctx context.Context, chainKey string, tx invoice.Hash) (chain.TransactionState, error) {
	through, err := a.readThrough(ctx, chainKey)
	if err != nil {
		return "", err
	}
	return a.conf.Nodes.RefundTransaction(ctx, chainKey, tx, through.Number)
}

// unanswered returns the problem if too few nodes answer, and other errors as they are.
func unanswered(err error) error {
	exceeded := (*limits.ExceededError)(nil)
	if errors.As(err, &exceeded) || !errors.Is(err, chain.ErrUnavailable) && !errors.Is(err, chain.ErrIncomplete) {
		return err
	}
	return problemf(apitypes.CodeUnavailable, "Too few nodes of the chain answer, so whether something was sent is not known; repeat the request later.")
}

// submittedDetail describes who sends a refund.
func submittedDetail(s invoice.Submission) string {
	detail := fmt.Sprintf("%s has been sending this refund since %s", s.By, clock.Format(s.StartedAt, time.UTC, time.RFC3339))
	if s.TxHash.IsZero() {
		return fmt.Sprintf("%s, and the wallet has not answered. For %d minutes, only %s can withdraw that.", detail, int(invoice.SubmissionPatience.Minutes()), s.By)
	}
	return fmt.Sprintf("%s, with the transaction %s. If no node has that, it can be withdrawn after %d minutes.", detail, s.TxHash, int(invoice.SubmissionPatience.Minutes()))
}

// Submission converts a submission of a refund.
func Submission(s invoice.Submission) apitypes.Submission {
	w := apitypes.Submission{ID: s.ID, RefundID: s.RefundID, By: s.By, StartedAt: invoice.UnixSeconds(s.StartedAt), WithdrawnBy: s.WithdrawnBy}
	if !s.TxHash.IsZero() {
		w.TxHash = s.TxHash.String()
	}
	if !s.InForce() {
		w.WithdrawnAt = invoice.UnixSeconds(s.WithdrawnAt)
	}
	return w
}

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

// maySend reports whether nodes know the transaction of a recorded hash, or do not answer.
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
