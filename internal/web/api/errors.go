package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/webhooks"
	"github.com/quittance/quittance/internal/x402"
)

// answers maps error codes to HTTP statuses and titles.
var answers = map[apitypes.ErrorCode]struct {
	status int
	title  string
}{
	apitypes.CodeInvalidJSON:           {http.StatusBadRequest, "The body is not one JSON object"},
	apitypes.CodeInvalidField:          {http.StatusBadRequest, "A field is missing or wrong"},
	apitypes.CodeInvalidStatus:         {http.StatusBadRequest, "The status is not known"},
	apitypes.CodeInvalidChain:          {http.StatusBadRequest, "The chain is not known"},
	apitypes.CodeInvalidPayload:        {http.StatusBadRequest, "The notice cannot be read"},
	apitypes.CodeInvalidSignature:      {http.StatusUnauthorized, "The signature is not valid"},
	apitypes.CodeUnauthorized:          {http.StatusUnauthorized, "The key is missing or not accepted"},
	apitypes.CodeForbidden:             {http.StatusForbidden, "The request is not allowed"},
	apitypes.CodeApprovalRequired:      {http.StatusForbidden, "Several people must approve this"},
	apitypes.CodeNotFound:              {http.StatusNotFound, "Not found"},
	apitypes.CodeMethodNotAllowed:      {http.StatusMethodNotAllowed, "The path does not have this method"},
	apitypes.CodeIdempotencyInProgress: {http.StatusConflict, "A request with this key is in progress"},
	apitypes.CodeAlreadyAttributed:     {http.StatusConflict, "The payment belongs to another invoice"},
	apitypes.CodeAlreadyDecided:        {http.StatusConflict, "Somebody has decided this"},
	apitypes.CodeItemChanged:           {http.StatusConflict, "The item has changed"},
	apitypes.CodePaymentOrphaned:       {http.StatusConflict, "The payment is not on the chain"},
	apitypes.CodePaymentUndecided:      {http.StatusConflict, "The payment waits for older blocks"},
	apitypes.CodePaymentPending:        {http.StatusConflict, "The payment is not final"},
	apitypes.CodePaymentInUse:          {http.StatusConflict, "The payment is used for something else"},
	apitypes.CodeRefundExceedsPayment:  {http.StatusConflict, "The refund is more than is left of the payment"},
	apitypes.CodeRefundNotOpen:         {http.StatusConflict, "The refund is in another state"},
	apitypes.CodeRefundSubmitted:       {http.StatusConflict, "Somebody is sending the refund"},
	apitypes.CodeTooManyRefunds:        {http.StatusConflict, "There are too many refunds"},
	apitypes.CodeDeliveryPending:       {http.StatusConflict, "The event is being sent as it is"},
	apitypes.CodeNoDelivery:            {http.StatusConflict, "The event has no delivery"},
	apitypes.CodeConfiguredEndpoint:    {http.StatusConflict, "The endpoint is set in the configuration"},
	apitypes.CodeConfiguredMerchant:    {http.StatusConflict, "The merchant is set in the configuration"},
	apitypes.CodeMerchantExists:        {http.StatusConflict, "The merchant exists"},
	apitypes.CodeNoMasterKey:           {http.StatusConflict, "The service has no master key"},
	apitypes.CodeTooManyKeys:           {http.StatusConflict, "There are too many keys"},
	apitypes.CodeKeyNotActive:          {http.StatusConflict, "The key is not active"},
	apitypes.CodeInvoiceNotDraft:       {http.StatusConflict, "The invoice is not a draft"},
	apitypes.CodeInvoiceFinal:          {http.StatusConflict, "The state of the invoice is final"},
	apitypes.CodeInvoiceNotOpen:        {http.StatusConflict, "The invoice cannot be paid now"},
	apitypes.CodeRecipientStopped:      {http.StatusConflict, "The recipient wants no mails"},
	apitypes.CodeMailLimit:             {http.StatusConflict, "A limit of mails is reached"},
	apitypes.CodeNoMailServer:          {http.StatusConflict, "The service sends no mails"},
	apitypes.CodePaymentSeen:           {http.StatusConflict, "A payment covers the invoice"},
	apitypes.CodeChainBehind:           {http.StatusConflict, "Blocks are not read yet"},
	apitypes.CodeDraftDeleted:          {http.StatusConflict, "The draft was deleted"},
	apitypes.CodeReferenceTaken:        {http.StatusConflict, "Another invoice has the reference"},
	apitypes.CodeSlugTaken:             {http.StatusConflict, "Another link has the slug"},
	apitypes.CodeLinkArchived:          {http.StatusConflict, "The link is archived"},
	apitypes.CodeSecretStaged:          {http.StatusConflict, "A secret is staged already"},
	apitypes.CodeNoStagedSecret:        {http.StatusConflict, "No secret is staged"},
	apitypes.CodePingFailed:            {http.StatusConflict, "The endpoint did not take the ping"},
	apitypes.CodeCursorGone:            {http.StatusGone, "The log does not continue from the cursor"},
	apitypes.CodeBodyTooLarge:          {http.StatusRequestEntityTooLarge, "The body is too large"},
	apitypes.CodeUnsupportedMediaType:  {http.StatusUnsupportedMediaType, "The body's type is not supported"},
	apitypes.CodeAuthorizationRefused:  {http.StatusUnprocessableEntity, "The authorization does not pay the invoice"},
	apitypes.CodeIdempotencyMismatch:   {http.StatusUnprocessableEntity, "The key was used with another request"},
	apitypes.CodeRateLimited:           {http.StatusTooManyRequests, "Too many requests"},
	apitypes.CodeInternal:              {http.StatusInternalServerError, "Internal error"},
	apitypes.CodeUnavailable:           {http.StatusServiceUnavailable, "The service is not available"},
}

// docs is the URL of the page that documents the codes, one heading each.
const docs = "https://github.com/quittance/quittance/blob/main/docs/errors.md#"

// problemError is an error that is shown to the client.
type problemError struct {
	code   apitypes.ErrorCode
	field  string // with invalid_field
	detail string
	// invoiceID is another invoice, with reference_taken and draft_deleted.
	invoiceID  string
	approvalID string // with approval_required
	reason     string // with authorization_refused and cursor_gone
	after      string // the cursor from which to continue, with cursor_gone
}

// Error returns the code and the detail.
func (e *problemError) Error() string { return string(e.code) + ": " + e.detail }

// problemf returns a problemError with the code and the formatted detail.
func problemf(code apitypes.ErrorCode, format string, args ...any) error {
	return &problemError{code: code, detail: fmt.Sprintf(format, args...)}
}

// sentence ends a text with a full stop, unless it is a question.
func sentence(text string) string {
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// invalidField returns an *invoice.FieldError. what continues the field's name, as in "must be a string".
func invalidField(field, what string, args ...any) error {
	return &invoice.FieldError{Field: field, Detail: fmt.Sprintf(what, args...)}
}

// problems maps errors to problems. The first match applies.
var problems = []struct {
	err    error
	code   apitypes.ErrorCode
	detail string
}{
	{ledger.ErrIdempotencyMismatch, apitypes.CodeIdempotencyMismatch, "This Idempotency-Key was used with another request, one whose fields differ; use a new key for a new request."},
	{ledger.ErrIdempotencyInProgress, apitypes.CodeIdempotencyInProgress, "Another request with this Idempotency-Key has not ended yet; repeat it later."},
	{ledger.ErrNotDraft, apitypes.CodeInvoiceNotDraft, "This invoice is not a draft, so it is not deleted, and its terms stay as they are; its metadata and other details can be changed."},
	{ledger.ErrVoid, apitypes.CodeInvoiceFinal, "This invoice is void, and stays so; create another."},
	{invoice.ErrFinal, apitypes.CodeInvoiceFinal, "This invoice is paid or expired, and stays so."},
	{invoice.ErrCovered, apitypes.CodePaymentSeen, "Payments that arrived in time cover this invoice; it becomes paid once they are final. It can be voided if a reorg takes them back."},
	{mailer.ErrUnwanted, apitypes.CodeInvoiceNotOpen, "Only an open invoice is sent: this one is a draft, paid, expired or void."},
	{mailer.ErrLater, apitypes.CodeInvoiceNotOpen, "A payment of this invoice is not final, or blocks that may hold one are not read; send it later, if it is not paid then."},
	{mailer.ErrStopped, apitypes.CodeRecipientStopped, "The recipient stopped your mails, by the link in one. Only the recipient can allow them again, by the same link."},
	{mailer.ErrTooMany, apitypes.CodeMailLimit, fmt.Sprintf("An invoice is sent at most %d times. A merchant sends at most %d mails in 24 hours, %d of them to one address.", mailer.MaxOfInvoice, mailer.MaxOfMerchant, mailer.MaxToMailbox)},
	{mailer.ErrBusy, apitypes.CodeUnavailable, "Too many mails wait to be sent; repeat it later."},
	{ledger.ErrUnread, apitypes.CodeChainBehind, "Blocks of the chain that could hold a payment of this invoice are not read yet; repeat the request later."},
	{ledger.ErrNotStarted, apitypes.CodeChainBehind, "No block of the chain was read yet; repeat the request when it is."},
	{ledger.ErrAttributed, apitypes.CodeAlreadyAttributed, "This payment belongs to another invoice, and stays there."},
	{ledger.ErrItemChanged, apitypes.CodeItemChanged, "This is not as you saw it: it was dealt with, or more has arrived since. Read it again."},
	{ledger.ErrOrphaned, apitypes.CodePaymentOrphaned, "The chain dropped this payment's block; attribute the payment when it is mined again."},
	{ledger.ErrUndecided, apitypes.CodePaymentUndecided, "This payment waits for older blocks of its chain to be read, and a rule may attribute it then. Repeat the request when they are."},
	{ledger.ErrRejected, apitypes.CodePaymentInUse, "The operator rejected this payment after its screening, so it pays no invoice; it can be refunded."},
	{ledger.ErrOperatorDecides, apitypes.CodeForbidden, "Only the operator decides about a quarantined payment."},
	{ledger.ErrScreened, apitypes.CodeAlreadyDecided, "The payment was released or rejected, and that cannot be undone. A rejected payment can be refunded."},
	{ledger.ErrIsRefund, apitypes.CodePaymentInUse, "This transfer is a refund that was prepared, and pays no invoice."},
	{ledger.ErrOutcomeUnknown, apitypes.CodePaymentPending, "A payment of this invoice is being made, and its outcome is not known. It is within an hour; void the invoice then."},
	{ledger.ErrPaymentPending, apitypes.CodePaymentPending, "This payment is not final, and a reorg could still drop it; refund it when its status is confirmed."},
	{ledger.ErrRefundExceeds, apitypes.CodeRefundExceedsPayment, "This is more than the other refunds of the payment leave of it."},
	{ledger.ErrTooManyRefunds, apitypes.CodeTooManyRefunds, fmt.Sprintf("%d refunds were prepared for this payment, and no more can be.", invoice.MaxPreparedRefunds)},
	{ledger.ErrTooManySubmissions, apitypes.CodeTooManyRefunds, fmt.Sprintf("%d submissions of this refund were withdrawn, and no more can be made. Cancel it and prepare another.", invoice.MaxSubmissions)},
	{ledger.ErrSubmissionSent, apitypes.CodeRefundSubmitted, "Another transaction was recorded meanwhile, which may send this refund."},
	{ledger.ErrRefundNotOpen, apitypes.CodeRefundNotOpen, "The state of this refund does not allow that."},
	{ledger.ErrSlugTaken, apitypes.CodeSlugTaken, "Another link of the merchant that is not archived has this slug; archive it, or choose another slug."},
	{ledger.ErrArchived, apitypes.CodeLinkArchived, "This link is archived, and stays as it is; create another, which may have its slug."},
	{webhooks.ErrPending, apitypes.CodeDeliveryPending, "This event is being sent as it is, or waits for an endpoint; wait until it is delivered, or has failed. To have it at once, run quittance listen, and repeat the request."},
	{webhooks.ErrNoDelivery, apitypes.CodeNoDelivery, "The merchant wanted no events when this one happened, so it has no delivery to repeat, and no terminal listens to its events. Run quittance listen, and repeat the request."},
	{webhooks.ErrNone, apitypes.CodeNotFound, "There is no such merchant, or it has no webhook endpoint."},
	{webhooks.ErrConfigured, apitypes.CodeConfiguredEndpoint, "This merchant's webhook endpoint is set in the service's configuration; change it there."},
	{access.ErrNotFound, apitypes.CodeNotFound, "There is no such merchant."},
	{access.ErrNotHeld, apitypes.CodeNotFound, "The merchant does not hold this address."},
	{access.ErrConfigured, apitypes.CodeConfiguredMerchant, "This merchant is set in the service's configuration; change it there."},
	{access.ErrExists, apitypes.CodeMerchantExists, "A merchant with this id exists; PATCH changes it."},
	{access.ErrLeft, apitypes.CodeMerchantExists, "The service's configuration had a merchant with this id, and the request names no address that it held. If this is the same company, the operator runs quittance merchant resume; otherwise choose another id."},
	{access.ErrRetired, apitypes.CodeMerchantExists, "The merchant with this id was retired, and the id is not used again; choose another one."},
	{access.ErrForbidden, apitypes.CodeForbidden, "Only the operator may do this. A merchant's own key may change its allowedAddresses, with the delay."},
	{webhooks.ErrNoMasterKey, apitypes.CodeNoMasterKey, "The service has no master key to encrypt secrets under; its operator can configure one."},
	{webhooks.ErrStaged, apitypes.CodeSecretStaged, "A secret is staged already; promote it, or drop it first."},
	{webhooks.ErrNotStaged, apitypes.CodeNoStagedSecret, "No secret is staged."},
	{access.ErrTooManyApprovals, apitypes.CodeApprovalRequired, fmt.Sprintf("Several people must approve this, but %d requests for approval are open, or %d by one person or key; decide some of them first.", access.MaxApprovals, access.MaxApprovalsOf)},
	{access.ErrApprovalEnded, apitypes.CodeApprovalRequired, "The merchant's rules of approvals have just changed; repeat the request."},
	{access.ErrTooManyLinks, apitypes.CodeForbidden, "You signed in by links that keys made for each other; sign in with a key to make a link for another one."},
	{access.ErrTooMany, apitypes.CodeTooManyKeys, fmt.Sprintf("The owner has %d active keys; revoke one first.", access.MaxKeys)},
	{access.ErrPersonal, apitypes.CodeKeyNotActive, "This key belongs to a person, and has no secret; invite the person again to change the role."},
	{access.ErrNotActive, apitypes.CodeKeyNotActive, "This key was revoked, has expired or was rotated; create another."},
	{ledger.ErrCreatesWait, apitypes.CodeUnavailable, "The database is behind with creating invoices, and this request created none; repeat it later, with the same Idempotency-Key if it has one."},
	{db.ErrBusy, apitypes.CodeUnavailable, "Too many requests use the database at the same time; repeat it later."},
	{limits.ErrBusy, apitypes.CodeUnavailable, "Too many requests are being served at the same time; repeat it later."},
	{x402.ErrUnavailable, apitypes.CodeUnavailable, "The chain's nodes do not answer, so the authorization could not be checked. Nothing was sent; submit it again."},
	{ledger.ErrUnverified, apitypes.CodeUnavailable, "No node of the chain has confirmed the code of its deposit factory since the service was started, so no deposit address is given out; repeat the request later."},
	{db.ErrNotFound, apitypes.CodeNotFound, "Nothing has this id."},
	{context.DeadlineExceeded, apitypes.CodeUnavailable, "The request took too long; repeat it later."},
	{context.Canceled, apitypes.CodeUnavailable, "The request took too long; repeat it later."},
}

// problemOfInvoice returns the problem for an error of a create that names another invoice, or for an
// error that explains why the service refuses work now, or nil.
func problemOfInvoice(err error) *problemError {
	var taken *ledger.ReferenceTakenError
	var deleted *ledger.DraftDeletedError
	var down interface{ Unavailable() string }
	var required *access.ApprovalRequiredError
	switch {
	case errors.As(err, &required):
		return &problemError{
			code: apitypes.CodeApprovalRequired, approvalID: required.Request.ID,
			detail: fmt.Sprintf("%d people must approve this on the dashboard; then repeat the same request.", required.Request.Needed),
		}
	case errors.As(err, &down):
		return &problemError{code: apitypes.CodeUnavailable, detail: down.Unavailable()}
	case errors.As(err, &taken):
		return &problemError{
			code: apitypes.CodeReferenceTaken, invoiceID: taken.InvoiceID,
			detail: "Another draft or open invoice of the merchant has this reference; invoiceId names it.",
		}
	case errors.As(err, &deleted):
		return &problemError{
			code: apitypes.CodeDraftDeleted, invoiceID: deleted.InvoiceID,
			detail: "This request created a draft, which invoiceId names and which was deleted; use a new Idempotency-Key for a new one.",
		}
	}
	return nil
}

// problemFor returns the problem of an error. It hides the text of internal errors.
func problemFor(err error) *problemError {
	var known *problemError
	var field *invoice.FieldError
	var ping *webhooks.PingError
	var refusal *invoice.RefusalError
	var exceeded *limits.ExceededError
	var decided *ledger.DecidedError
	var submitted *ledger.SubmittedError
	var attributed *ledger.AttributedError
	var used *ledger.UsedError
	switch {
	case errors.As(err, &used):
		return &problemError{code: apitypes.CodePaymentInUse, detail: usedDetail(used)}
	case errors.As(err, &decided), errors.As(err, &attributed):
		return conflictOf(decided, attributed)
	case errors.As(err, &submitted):
		return &problemError{code: apitypes.CodeRefundSubmitted, detail: submittedDetail(submitted.Submission)}
	case errors.As(err, &exceeded): // the first, because refusals of guesses are to be cheap
		return &problemError{code: apitypes.CodeRateLimited, detail: "These were too many requests for the limit \"" + exceeded.Limit + "\"; repeat it after " + exceeded.RetryAfter + " seconds."}
	case errors.As(err, &known):
		return known
	case errors.As(err, &field):
		return &problemError{code: apitypes.CodeInvalidField, field: field.Field, detail: sentence(field.Error())}
	case errors.As(err, &refusal):
		return &problemError{code: apitypes.CodeAuthorizationRefused, reason: string(refusal.Reason), detail: refusal.Detail}
	case errors.As(err, &ping):
		return &problemError{code: apitypes.CodePingFailed, detail: "Nothing has changed: " + ping.Error() + "."}
	}
	if p := problemOfInvoice(err); p != nil {
		return p
	}
	for _, p := range problems {
		if errors.Is(err, p.err) {
			return &problemError{code: p.code, detail: p.detail}
		}
	}
	if p := keyProblem(err); p != nil {
		return p
	}
	if detail := unauthorizedDetail(err); detail != "" {
		return &problemError{code: apitypes.CodeUnauthorized, detail: detail}
	}
	if db.Unavailable(err) {
		return &problemError{code: apitypes.CodeUnavailable, detail: "The service cannot do its work right now; repeat the request later."}
	}
	return &problemError{code: apitypes.CodeInternal, detail: "The request failed inside the service; its log says why."}
}

// document returns the problem details (RFC 9457) of the error.
func (e *problemError) document() apitypes.Problem {
	answer := answers[e.code]
	return apitypes.Problem{
		Type:       docs + string(e.code),
		Title:      answer.title,
		Status:     answer.status,
		Detail:     e.detail,
		Code:       e.code,
		Field:      e.field,
		InvoiceID:  e.invoiceID,
		ApprovalID: e.approvalID,
		Reason:     e.reason,
		After:      e.after,
	}
}
