package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// answers is the one table from an error's code to its HTTP status and title.
var answers = map[apitypes.ErrorCode]struct {
	status int
	title  string
}{
	apitypes.CodeInvalidJSON:           {http.StatusBadRequest, "The body is not one JSON object"},
	apitypes.CodeInvalidField:          {http.StatusBadRequest, "A field is missing or wrong"},
	apitypes.CodeInvalidStatus:         {http.StatusBadRequest, "The status is not one of an invoice"},
	apitypes.CodeInvalidChain:          {http.StatusBadRequest, "The chain is not known"},
	apitypes.CodeInvalidPayload:        {http.StatusBadRequest, "The notice cannot be read"},
	apitypes.CodeInvalidSignature:      {http.StatusUnauthorized, "The signature is not valid"},
	apitypes.CodeForbidden:             {http.StatusForbidden, "The service is not for this request"},
	apitypes.CodeNotFound:              {http.StatusNotFound, "Not found"},
	apitypes.CodeMethodNotAllowed:      {http.StatusMethodNotAllowed, "The path does not have this method"},
	apitypes.CodeIdempotencyInProgress: {http.StatusConflict, "A request with this key is in progress"},
	apitypes.CodeAlreadyAttributed:     {http.StatusConflict, "The payment belongs to another invoice"},
	apitypes.CodePaymentOrphaned:       {http.StatusConflict, "The payment is not on the chain"},
	apitypes.CodePaymentUndecided:      {http.StatusConflict, "The payment waits for older blocks"},
	apitypes.CodeDeliveryPending:       {http.StatusConflict, "The event is being sent as it is"},
	apitypes.CodeNoDelivery:            {http.StatusConflict, "The event has no delivery"},
	apitypes.CodeConfiguredEndpoint:    {http.StatusConflict, "The endpoint stands in the configuration"},
	apitypes.CodeNoMasterKey:           {http.StatusConflict, "The service has no master key"},
	apitypes.CodeSecretStaged:          {http.StatusConflict, "A secret is staged already"},
	apitypes.CodeNoStagedSecret:        {http.StatusConflict, "No secret is staged"},
	apitypes.CodePingFailed:            {http.StatusConflict, "The endpoint did not take the ping"},
	apitypes.CodeBodyTooLarge:          {http.StatusRequestEntityTooLarge, "The body is too large"},
	apitypes.CodeUnsupportedMediaType:  {http.StatusUnsupportedMediaType, "The body's type is not supported"},
	apitypes.CodeIdempotencyMismatch:   {http.StatusUnprocessableEntity, "The key was used with another request"},
	apitypes.CodeInternal:              {http.StatusInternalServerError, "Internal error"},
	apitypes.CodeUnavailable:           {http.StatusServiceUnavailable, "The service is not available"},
}

// docs is where the codes are explained, one heading each.
const docs = "https://github.com/quittance/quittance/blob/main/docs/errors.md#"

// refusal is an error whose code and text the caller may see.
type refusal struct {
	code   apitypes.ErrorCode
	field  string // with invalid_field
	detail string
}

// Error returns the code and what was wrong.
func (e *refusal) Error() string { return string(e.code) + ": " + e.detail }

func refuse(code apitypes.ErrorCode, format string, args ...any) error {
	return &refusal{code: code, detail: fmt.Sprintf(format, args...)}
}

// wrong refuses a field: what says how it is wrong, as in "must be a string".
func wrong(field, what string, args ...any) error {
	return &invoice.FieldError{Field: field, Detail: fmt.Sprintf(what, args...)}
}

// explain returns what the caller is told of an error. Of those that are
// nobody's fault but ours, that is nothing but the fact.
func explain(err error) *refusal {
	var known *refusal
	var field *invoice.FieldError
	var ping *endpoint.PingError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &field):
		return &refusal{code: apitypes.CodeInvalidField, field: field.Field, detail: field.Error() + "."}
	case errors.Is(err, settle.ErrIdempotencyMismatch):
		return &refusal{code: apitypes.CodeIdempotencyMismatch, detail: "This Idempotency-Key was used with another request, one whose fields differ; use a new key for a new request."}
	case errors.Is(err, settle.ErrIdempotencyInProgress):
		return &refusal{code: apitypes.CodeIdempotencyInProgress, detail: "Another request with this Idempotency-Key has not ended yet; repeat it later."}
	case errors.Is(err, settle.ErrAttributed):
		return &refusal{code: apitypes.CodeAlreadyAttributed, detail: "This payment belongs to another invoice, and stays there."}
	case errors.Is(err, settle.ErrOrphaned):
		return &refusal{code: apitypes.CodePaymentOrphaned, detail: "The chain dropped this payment's block; attribute the payment when it is mined again."}
	case errors.Is(err, settle.ErrUndecided):
		return &refusal{code: apitypes.CodePaymentUndecided, detail: "This payment waits for older blocks of its chain to be read; attribute it when they are, if no rule has."}
	case errors.Is(err, store.ErrPending):
		return &refusal{code: apitypes.CodeDeliveryPending, detail: "This event is being sent as it is; wait until it is delivered, or has failed."}
	case errors.Is(err, store.ErrNoDelivery):
		return &refusal{code: apitypes.CodeNoDelivery, detail: "The merchant wanted no events when this one happened, so it has no delivery to repeat."}
	case errors.Is(err, endpoint.ErrNone):
		return &refusal{code: apitypes.CodeNotFound, detail: "There is no such merchant, or it has no webhook endpoint."}
	case errors.Is(err, endpoint.ErrConfigured):
		return &refusal{code: apitypes.CodeConfiguredEndpoint, detail: "This merchant's webhook endpoint stands in the service's configuration; change it there."}
	case errors.Is(err, endpoint.ErrNoMasterKey):
		return &refusal{code: apitypes.CodeNoMasterKey, detail: "The service has no master key to encrypt secrets under; its operator can configure one."}
	case errors.Is(err, endpoint.ErrStaged):
		return &refusal{code: apitypes.CodeSecretStaged, detail: "A secret is staged already; promote it, or drop it first."}
	case errors.Is(err, endpoint.ErrNotStaged):
		return &refusal{code: apitypes.CodeNoStagedSecret, detail: "No secret is staged."}
	case errors.As(err, &ping):
		return &refusal{code: apitypes.CodePingFailed, detail: "Nothing has changed: " + ping.Error() + "."}
	case errors.Is(err, store.ErrNotFound):
		return &refusal{code: apitypes.CodeNotFound, detail: "Nothing has this id."}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &refusal{code: apitypes.CodeUnavailable, detail: "The request took too long; repeat it later."}
	case store.Unavailable(err):
		return &refusal{code: apitypes.CodeUnavailable, detail: "The service cannot do its work right now; repeat the request later."}
	}
	return &refusal{code: apitypes.CodeInternal, detail: "The request failed inside the service; its log says why."}
}

// problem writes the refusal as problem details (RFC 9457).
func (e *refusal) problem() apitypes.Problem {
	answer := answers[e.code]
	return apitypes.Problem{
		Type:   docs + string(e.code),
		Title:  answer.title,
		Status: answer.status,
		Detail: e.detail,
		Code:   e.code,
		Field:  e.field,
	}
}
