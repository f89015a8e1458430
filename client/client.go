// Package client calls the REST interface of Quittance.
//
//	c, err := client.New("https://pay.example.com", client.WithKey(os.Getenv("QUITTANCE_KEY")))
//	created, err := c.CreateInvoice(ctx, apitypes.CreateInvoiceRequest{…}, client.IdempotencyKey("order-10017"))
//
// Requests and responses have the types of package apitypes. An error that the
// service returns is an [*Error] with a code.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/quittance/quittance/apitypes"
)

// MaxAnswer bounds a response, in bytes.
const MaxAnswer = 64 << 20

// Client calls one service. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
	key  string
}

// Option configures a Client.
type Option func(*Client)

// WithHTTPClient makes the client use h instead of [http.DefaultClient], which has no
// timeout but that of the context.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithKey sends a key of the service with each request. The key belongs to the operator
// or to one merchant.
func WithKey(key string) Option { return func(c *Client) { c.key = key } }

// New returns a client of the service at baseURL, such as
// https://pay.example.com.
func New(baseURL string, options ...Option) (*Client, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("client: base URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("client: base URL %q must be of the form https://host or https://host/path", baseURL)
	}
	c := &Client{base: base, http: http.DefaultClient}
	for _, option := range options {
		option(c)
	}
	return c, nil
}

// CreateOption configures a request to create an invoice.
type CreateOption func(http.Header)

// IdempotencyKey makes a create safe to retry for 24 hours: the same request with the
// same key returns the same invoice. The key is 1 to 255 visible ASCII characters.
func IdempotencyKey(key string) CreateOption {
	return func(h http.Header) { h.Set("Idempotency-Key", key) }
}

// CreateInvoice creates an open invoice. Send the customer to the response's CheckoutURL,
// a path that [Client.URL] resolves.
func (c *Client) CreateInvoice(ctx context.Context, r apitypes.CreateInvoiceRequest, options ...CreateOption) (apitypes.CreateInvoiceResponse, error) {
	var created apitypes.CreateInvoiceResponse
	header := make(http.Header)
	for _, option := range options {
		option(header)
	}
	err := c.post(ctx, c.base.JoinPath("api/invoices"), header, r, &created)
	return created, err
}

// Invoice returns the current state of an invoice. The error's code is
// [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Invoice(ctx context.Context, id string) (apitypes.Invoice, error) {
	var answer apitypes.InvoiceResponse
	err := c.call(ctx, http.MethodGet, c.base.JoinPath("api/invoices", url.PathEscape(id)), nil, nil, &answer)
	return answer.Invoice, answered(err, "invoice", id, answer.Invoice.ID)
}

// Payment returns the current state of a payment, confirmed or not, attributed or not. The
// error's code is [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Payment(ctx context.Context, id string) (apitypes.Payment, error) {
	var answer apitypes.PaymentResponse
	err := c.call(ctx, http.MethodGet, c.base.JoinPath("api/payments", url.PathEscape(id)), nil, nil, &answer)
	return answer.Payment, answered(err, "payment", id, answer.Payment.ID)
}

// AttributePayment attributes an unattributed payment to an invoice, and returns the
// payment. It is idempotent. The error's code is [apitypes.CodeNotFound] if there is no
// payment with the id, [apitypes.CodeInvalidField] with the field invoiceId if the
// invoice does not match, [apitypes.CodeAlreadyAttributed] if the payment belongs to
// another invoice, [apitypes.CodePaymentOrphaned] if it is no longer on the chain, and
// [apitypes.CodePaymentUndecided] while it waits for older blocks to be indexed.
func (c *Client) AttributePayment(ctx context.Context, id string, r apitypes.AttributePaymentRequest) (apitypes.Payment, error) {
	var answer apitypes.PaymentResponse
	err := c.post(ctx, c.base.JoinPath("api/payments", url.PathEscape(id), "attribution"), make(http.Header), r, &answer)
	return answer.Payment, answered(err, "payment", id, answer.Payment.ID)
}

// answered returns err or, if that is nil, an error if the response has another id than
// requested: an id such as "" results in another path.
func answered(err error, what, id, got string) error {
	if err == nil && (id == "" || got != id) {
		return fmt.Errorf("client: asked for %s %q and was answered %q", what, id, got)
	}
	return err
}

// URL returns the absolute URL of a path of the service, such as a CheckoutURL.
func (c *Client) URL(path string) string { return c.base.JoinPath(path).String() }

// post sends a body as JSON, and decodes the response into answer.
func (c *Client) post(ctx context.Context, u *url.URL, header http.Header, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("client: encode the request: %w", err)
	}
	header.Set("Content-Type", "application/json")
	return c.call(ctx, http.MethodPost, u, header, text, answer)
}

// call sends a request and decodes the response into answer, unless that is nil.
func (c *Client) call(ctx context.Context, method string, u *url.URL, header http.Header, body []byte, answer any) (err error) {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("Accept", "application/json, application/problem+json")
	if c.key != "" {
		request.Header.Set("Authorization", "Bearer "+c.key)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode == http.StatusSwitchingProtocols {
		// The context does not close this body, which is the connection.
		return fmt.Errorf("client: %s %s was answered %s, which was not asked for", method, u, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("client: read the answer to %s %s: %w", method, u, err)
	case len(text) > MaxAnswer:
		return fmt.Errorf("client: the answer to %s %s exceeds %d bytes", method, u, MaxAnswer)
	case response.StatusCode >= http.StatusMultipleChoices:
		return parseError(response, text)
	case answer == nil:
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("client: the answer to %s %s is not the service's: %w", method, u, err)
	}
	return nil
}

// Error is an error response.
type Error struct {
	// Problem has the Status, the Code, which is empty if a proxy answered, the invalid
	// Field with [apitypes.CodeInvalidField], and a Detail for people.
	apitypes.Problem
	// RetryAfter is the seconds to wait before a retry, or 0 if the service did not
	// say.
	RetryAfter int
}

// Error returns the status, the code and the detail.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("client: answered %d %s", e.Status, e.Title)
	}
	return fmt.Sprintf("client: answered %d %s: %s", e.Status, e.Code, e.Detail)
}

func parseError(response *http.Response, text []byte) error {
	e := new(Error)
	if err := json.Unmarshal(text, &e.Problem); err != nil { // not a response of the service
		e.Problem = apitypes.Problem{Title: http.StatusText(response.StatusCode)}
	}
	e.Status = response.StatusCode
	if n, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && n > 0 {
		e.RetryAfter = n
	}
	return e
}
