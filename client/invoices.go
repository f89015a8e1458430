package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// CallOption configures one call.
type CallOption func(http.Header)

// IdempotencyKey replaces the key that the client generates for the call. For 24 hours the
// same request with the same key has the same response, so a key that is derived from an
// order makes the call safe to repeat from another process. The key is 1 to 255 visible
// ASCII characters.
func IdempotencyKey(key string) CallOption {
	return func(h http.Header) { h.Set("Idempotency-Key", key) }
}

// idempotent returns headers with an idempotency key, generated unless options give one.
func (c *Client) idempotent(options []CallOption) (http.Header, error) {
	header := make(http.Header)
	for _, option := range options {
		option(header)
	}
	if header.Get("Idempotency-Key") != "" {
		return header, nil
	}
	key, err := c.newIdempotencyKey()
	header.Set("Idempotency-Key", key)
	return header, err
}

// CreateInvoice creates an open invoice. Send the customer to the response's CheckoutPage,
// a URL. The request has an idempotency key, so retries create no second invoice.
func (c *Client) CreateInvoice(ctx context.Context, r apitypes.CreateInvoiceRequest, options ...CallOption) (apitypes.CreateInvoiceResponse, error) {
	header, err := c.idempotent(options)
	if err != nil {
		return apitypes.CreateInvoiceResponse{}, err
	}
	var created apitypes.CreateInvoiceResponse
	err = c.send(ctx, request{method: http.MethodPost, url: c.path("api/invoices"), header: header, repeatable: true}, r, &created)
	if err == nil && created.CheckoutPage == "" {
		created.CheckoutPage = c.URL(created.CheckoutURL) // the service is not configured with its public URL
	}
	return created, err
}

// Invoice returns the current state of an invoice. The error's code is
// [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Invoice(ctx context.Context, id string) (apitypes.Invoice, error) {
	var answer apitypes.InvoiceResponse
	err := c.get(ctx, c.path("api/invoices", id), &answer)
	return answer.Invoice, answered(err, "invoice", id, answer.Invoice.ID)
}

// invoiceWait is how long the service waits for a change of an invoice, at most 60 s.
const invoiceWait = time.Minute

// AwaitInvoice returns an invoice as soon as its status is not the one that the caller
// knows, such as [apitypes.StatusOpen], or an error when ctx ends.
func (c *Client) AwaitInvoice(ctx context.Context, id string, known apitypes.InvoiceStatus) (apitypes.Invoice, error) {
	u := c.path("api/invoices", id)
	u.RawQuery = url.Values{"wait": {strconv.Itoa(int(invoiceWait / time.Second))}, "status": {string(known)}}.Encode()
	for {
		var answer apitypes.InvoiceResponse
		err := c.call(ctx, request{method: http.MethodGet, url: u, repeatable: true, wait: invoiceWait}, &answer)
		if err := answered(err, "invoice", id, answer.Invoice.ID); err != nil || answer.Invoice.Status != known {
			return answer.Invoice, err
		}
	}
}
