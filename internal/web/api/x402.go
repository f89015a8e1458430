package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/x402"
)

// Facilitator takes payments by the x402 protocol. *x402.Service implements it and documents the errors.
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
	if body, err = readJSON(w, r); err != nil {
		return "", nil, err
	}
	p := access.FromContext(r.Context())
	if p.IsOperator() {
		return "", nil, problemf(apitypes.CodeForbidden, "Payments by x402 are those of one merchant; use a key of the merchant.")
	}
	return p.MerchantID, body, nil
}

// PayInvoice answers a request for an invoice as GET /x402/invoices/{id} does.
func (a *API) PayInvoice() http.Handler {
	return a.serve(checked(idWith(invoice.PrefixInvoice), a.payInvoice))
}

// payInvoice answers GET /x402/invoices/{id}: 200 with the invoice if it is paid or the request pays
// it, and else 402 with the payment requirements.
func (a *API) payInvoice(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	inv, err := a.publicInvoice(r.Context(), id)
	if err != nil {
		return err
	}
	var answer apitypes.X402SettleResponse
	switch offered := r.Header.Values(x402.HeaderSignature); len(offered) {
	case 0:
		if isSettled(inv) {
			break
		}
		pending, ok, err := a.conf.Facilitator.Pending(r.Context(), inv)
		if err != nil {
			return err
		}
		if !ok || pending.ErrorReason != "" && pending.ErrorReason != string(x402.Pending) {
			return a.requirePayment(w, r, inv, x402.HeaderSignature+" header is required")
		}
		answer = pending
	case 1:
		p, err := x402.ParseSignatureHeader(offered[0])
		if err != nil {
			return invalidField(x402.HeaderSignature, "%v", err)
		}
		if err := a.submitted.Take(r.Context(), inv.MerchantID, id); err != nil {
			return err
		}
		if answer, err = a.conf.Facilitator.Pay(r.Context(), inv, p); err != nil && !errors.Is(err, x402.ErrNotTaken) {
			return err
		}
	default:
		return invalidField(x402.HeaderSignature, "must be given once")
	}
	return a.answerPayment(w, r, inv.ID, answer)
}

// answerPayment answers with the invoice if it is settled, and else with the reason why the payment
// failed or is still open.
func (a *API) answerPayment(w http.ResponseWriter, r *http.Request, id string, answer apitypes.X402SettleResponse) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), RequestTimeout) // the payment may have taken long
	defer cancel()
	inv, err := a.publicInvoice(ctx, id)
	if err != nil {
		return err
	}
	if answer.Success || answer.ErrorReason != "" && !isSettled(inv) {
		value, err := x402.EncodeHeader(answer)
		if err != nil {
			return fmt.Errorf("encode the settlement: %w", err)
		}
		w.Header().Set(x402.HeaderResponse, value)
	}
	switch {
	case answer.Success || isSettled(inv):
		return a.writeJSON(w, r, http.StatusOK, apitypes.InvoiceResponse{Invoice: apiconv.PublicInvoice(inv)}, nil)
	case answer.ErrorReason == string(x402.Pending) && r.Header.Get(x402.HeaderSignature) == "":
		w.Header().Set("Retry-After", "1")
		return problemf(apitypes.CodePaymentPending, "A payment of this invoice is being made; do not sign another, and ask again.")
	case answer.ErrorReason == string(x402.Pending):
		w.Header().Set("Retry-After", "1")
		return a.writeJSON(w, r, http.StatusPaymentRequired, answer, nil)
	}
	return a.requirePayment(w, r.WithContext(ctx), inv, answer.ErrorReason)
}

// requirePayment answers 402 with the payment requirements of the invoice.
func (a *API) requirePayment(w http.ResponseWriter, r *http.Request, inv invoice.Invoice, reason string) error {
	want, err := a.conf.Facilitator.Requirements(r.Context(), inv)
	switch {
	case errors.Is(err, x402.ErrNotPayable):
		return problemf(apitypes.CodeInvoiceFinal, "This invoice can no longer be paid.")
	case errors.Is(err, x402.ErrNotTaken):
		return problemf(apitypes.CodeNotFound, "This service takes no payments by x402 on the chain of the invoice.")
	case err != nil:
		return err
	}
	description := inv.Details.Description
	if description == "" {
		description = "Invoice " + inv.ID
	}
	required := x402.PaymentRequired{
		Version: x402.Version, Error: reason, Accepts: []apitypes.X402PaymentRequirements{want.JSON()},
		Resource: apitypes.X402Resource{URL: a.urlOf(r) + "/x402/invoices/" + inv.ID, Description: description, MimeType: "application/json"},
	}
	value, err := x402.EncodeHeader(required)
	if err != nil {
		return fmt.Errorf("encode the requirements: %w", err)
	}
	w.Header().Set(x402.HeaderRequired, value)
	return a.writeJSON(w, r, http.StatusPaymentRequired, required, nil)
}

// urlOf returns the URL of the service, without a trailing slash: the configured one, or the request's.
func (a *API) urlOf(r *http.Request) string {
	return cmp.Or(a.conf.PublicURL, limits.BaseURL(r))
}

// publicInvoice returns an invoice that payers may see, or db.ErrNotFound.
func (a *API) publicInvoice(ctx context.Context, id string) (invoice.Invoice, error) {
	inv, err := a.conf.Reader.Invoice(ctx, id)
	if err == nil && inv.Status == invoice.Drafted {
		err = db.ErrNotFound
	}
	if err != nil {
		return invoice.Invoice{}, fmt.Errorf("read invoice: %w", err)
	}
	return inv, nil
}

// isSettled reports whether payments in blocks cover the invoice, final or not.
func isSettled(inv invoice.Invoice) bool {
	return inv.Status == invoice.Paid || inv.Status == invoice.Open && inv.Covered()
}
