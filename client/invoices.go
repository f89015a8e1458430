package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// CreateInvoice creates an open invoice, or a draft. Send the customer to the response's CheckoutPage, a URL. The
// request has an idempotency key, so retries do not create a second invoice.
func (c *Client) CreateInvoice(ctx context.Context, r apitypes.CreateInvoiceRequest, options ...Option) (apitypes.CreateInvoiceResponse, error) {
	var created apitypes.CreateInvoiceResponse
	err := c.With(options...).send(ctx, request{method: http.MethodPost, url: c.path("api/invoices"), repeatable: true}, r, &created)
	return c.withCheckoutPage(created), err
}

// Invoice returns the current state of an invoice. The error's code is
// [apitypes.CodeNotFound] if the id is unknown.
func (c *Client) Invoice(ctx context.Context, id string) (apitypes.Invoice, error) {
	var answer apitypes.InvoiceResponse
	err := c.get(ctx, c.path("api/invoices", id), &answer, is("invoice", id, &answer.Invoice.ID))
	return answer.Invoice, err
}

// UpdateInvoice changes an invoice, and returns it. Absent members stay as they are, and the members in remove, such as
// "reference", are removed. The error's code is [apitypes.CodeInvoiceNotDraft] if the change affects a term of an
// issued invoice.
func (c *Client) UpdateInvoice(ctx context.Context, id string, r apitypes.UpdateInvoiceRequest, remove ...string) (apitypes.Invoice, error) {
	members, err := removing(r, remove)
	if err != nil {
		return apitypes.Invoice{}, err
	}
	var answer apitypes.InvoiceResponse
	err = c.send(ctx, request{method: http.MethodPatch, url: c.path("api/invoices", id), repeatable: true}, members, &answer, is("invoice", id, &answer.Invoice.ID))
	return answer.Invoice, err
}

// removing returns the members of a change, with null for the members to remove.
func removing(change any, remove []string) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("client: encode the request: %w", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("client: encode the request: %w", err)
	}
	for _, name := range remove {
		members[name] = json.RawMessage("null")
	}
	return members, nil
}

// DeleteInvoice deletes a draft. The error's code is [apitypes.CodeInvoiceNotDraft] if the
// invoice was issued.
func (c *Client) DeleteInvoice(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, url: c.path("api/invoices", id)}, nil)
}

// FinalizeInvoice issues a draft, which becomes open. It is idempotent.
func (c *Client) FinalizeInvoice(ctx context.Context, id string) (apitypes.CreateInvoiceResponse, error) {
	var answer apitypes.CreateInvoiceResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/invoices", id, "finalize"), repeatable: true}, &answer, is("invoice", id, &answer.ID))
	return c.withCheckoutPage(answer), err
}

// VoidInvoice cancels a draft or an open invoice. It is idempotent. The error's code is
// [apitypes.CodeInvoiceFinal] if the invoice is paid or has expired.
func (c *Client) VoidInvoice(ctx context.Context, id string) (apitypes.Invoice, error) {
	var answer apitypes.InvoiceResponse
	err := c.call(ctx, request{method: http.MethodPost, url: c.path("api/invoices", id, "void"), repeatable: true}, &answer, is("invoice", id, &answer.Invoice.ID))
	return answer.Invoice, err
}

// SendInvoice sends an invoice to the customer by e-mail. It is idempotent for an hour. The error's code is
// [apitypes.CodeInvoiceNotOpen] if the invoice cannot be paid now, [apitypes.CodeRecipientStopped] if the recipient
// wants no mails, and [apitypes.CodeMailLimit] beyond a limit.
func (c *Client) SendInvoice(ctx context.Context, id string, r apitypes.SendInvoiceRequest) error {
	return c.send(ctx, request{method: http.MethodPost, url: c.path("api/invoices", id, "mails"), repeatable: true}, r, nil)
}

// InvoiceMails returns all mails about an invoice.
func (c *Client) InvoiceMails(ctx context.Context, id string) ([]apitypes.Mail, error) {
	var answer apitypes.MailList
	err := c.get(ctx, c.path("api/invoices", id, "mails"), &answer)
	return answer.Mails, err
}

// DropReminders deletes the reminders of an invoice that are not due yet. It is idempotent.
func (c *Client) DropReminders(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodDelete, url: c.path("api/invoices", id, "mails"), repeatable: true}, nil)
}

// withCheckoutPage returns the response with CheckoutPage set.
func (c *Client) withCheckoutPage(r apitypes.CreateInvoiceResponse) apitypes.CreateInvoiceResponse {
	if r.CheckoutPage == "" && r.CheckoutURL != "" { // the service is not configured with its public URL
		r.CheckoutPage = c.URL(r.CheckoutURL)
	}
	return r
}

// invoiceWait is how long the service waits for a change of an invoice; its maximum is 60 s.
const invoiceWait = time.Minute

// awaitPause is the pause of AwaitInvoice between two requests, if the service or a proxy answers immediately.
const awaitPause = time.Second

// AwaitInvoice returns an invoice as soon as its status differs from the one that the caller knows, such as
// [apitypes.StatusOpen], or an error when ctx ends.
func (c *Client) AwaitInvoice(ctx context.Context, id string, known apitypes.InvoiceStatus) (apitypes.Invoice, error) {
	u := c.path("api/invoices", id)
	u.RawQuery = url.Values{"wait": {strconv.Itoa(int(invoiceWait / time.Second))}, "status": {string(known)}}.Encode()
	for {
		var answer apitypes.InvoiceResponse
		err := c.call(ctx, request{method: http.MethodGet, url: u, repeatable: true, wait: invoiceWait}, &answer, is("invoice", id, &answer.Invoice.ID))
		if err != nil || answer.Invoice.Status != known {
			return answer.Invoice, err
		}
		if err := c.clock.Sleep(ctx, awaitPause); err != nil {
			return apitypes.Invoice{}, err
		}
	}
}
