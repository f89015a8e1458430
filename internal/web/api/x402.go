package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/x402"
)

// Facilitator takes payments by the x402 protocol. *x402.Service implements it and
// documents the errors.
type Facilitator interface {
	Supported() apitypes.X402Supported
	Verify(ctx context.Context, merchantID string, r x402.Request) (apitypes.X402VerifyResponse, error)
	Settle(ctx context.Context, merchantID string, r x402.Request) (apitypes.X402SettleResponse, error)
	Requirements(ctx context.Context, inv invoice.Invoice) (x402.Requirements, error)
	Pay(ctx context.Context, inv invoice.Invoice, p x402.Payment) (apitypes.X402SettleResponse, error)
	Pending(ctx context.Context, inv invoice.Invoice) (r apitypes.X402SettleResponse, ok bool, err error)
}

var _ Facilitator = (*x402.Service)(nil)

// x402Supported answers GET /x402/supported.
func (a *API) x402Supported(w http.ResponseWriter, r *http.Request) error {
	return a.writeJSON(w, r, http.StatusOK, a.conf.Facilitator.Supported(), nil)
}

// x402Verify answers POST /x402/verify.
func (a *API) x402Verify(w http.ResponseWriter, r *http.Request) error {
	merchantID, body, err := readX402(w, r)
	if err != nil {
		return err
	}
	request, err := x402.ParseRequest(body)
	var answer apitypes.X402VerifyResponse
	if invalid := (*x402.Error)(nil); errors.As(err, &invalid) {
		answer.InvalidReason, answer.InvalidMessage = string(invalid.Reason), invalid.Detail
	} else if answer, err = a.conf.Facilitator.Verify(r.Context(), merchantID, request); err != nil {
		return err
	}
	return a.writeJSON(w, r, http.StatusOK, answer, nil)
}

// x402Settle answers POST /x402/settle.
func (a *API) x402Settle(w http.ResponseWriter, r *http.Request) error {
	merchantID, body, err := readX402(w, r)
	if err != nil {
		return err
	}
	request, err := x402.ParseRequest(body)
	var keyErr error
	if request.Key, keyErr = idempotencyKey(r.Header); keyErr != nil {
		return keyErr
	}
	var answer apitypes.X402SettleResponse
	if invalid := (*x402.Error)(nil); errors.As(err, &invalid) {
		answer.ErrorReason, answer.ErrorMessage = string(invalid.Reason), invalid.Detail
	} else if answer, err = a.settle(r.Context(), merchantID, request); err != nil {
		return err
	}
	return a.writeJSON(w, r, http.StatusOK, answer, nil)
}

// settle settles a payment. It waits for a block, and so takes a slot.
func (a *API) settle(ctx context.Context, merchantID string, request x402.Request) (apitypes.X402SettleResponse, error) {
	leave, err := a.settling.enter(ctx)
	if err != nil {
		return apitypes.X402SettleResponse{}, err
	}
	defer leave()
	return a.conf.Facilitator.Settle(ctx, merchantID, request)
}

// readX402 returns the body of a facilitator's operation, and the merchant of the key.
func readX402(w http.ResponseWriter, r *http.Request) (merchantID string, body object, err error) {
	if err := wantJSON(r); err != nil {
		return "", nil, err
	}
	text, err := readBody(w, r)
	if err != nil {
		return "", nil, invalidJSON(err)
	}
	if body, err = parseObject(text); err != nil {
		return "", nil, invalidJSON(err)
	}
	p := access.FromContext(r.Context())
	if p.IsOperator() {
		return "", nil, problemf(apitypes.CodeForbidden, "Payments by x402 are those of one merchant; use a key of the merchant.")
	}
	return p.MerchantID, body, nil
}
