package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// exportIdle is the longest silence of an export. The service pauses between its reads.
const exportIdle = 2 * time.Minute

var errSilent = fmt.Errorf("nothing was received for %s", exportIdle)

// ExportInvoices writes the invoices that a filter selects to w as CSV, all of them, and
// returns their number. Times are in timezone, a name such as Europe/Berlin; "" is UTC. After
// an error w may have a part of the export. f.Query and f.PageSize must not be set.
func (c *Client) ExportInvoices(ctx context.Context, w io.Writer, f InvoiceFilter, timezone string) (rows int64, err error) {
	return c.export(ctx, w, "api/invoices", f.query(), timezone)
}

// ExportPayments is like ExportInvoices for payments.
func (c *Client) ExportPayments(ctx context.Context, w io.Writer, f PaymentFilter, timezone string) (rows int64, err error) {
	return c.export(ctx, w, "api/payments", f.query(), timezone)
}

// ExportRefunds is like ExportInvoices for refunds.
func (c *Client) ExportRefunds(ctx context.Context, w io.Writer, f RefundFilter, timezone string) (rows int64, err error) {
	return c.export(ctx, w, "api/refunds", f.query(), timezone)
}

// ExportCustomers is like ExportInvoices for customers.
func (c *Client) ExportCustomers(ctx context.Context, w io.Writer, f CustomerFilter, timezone string) (rows int64, err error) {
	return c.export(ctx, w, "api/customers", f.query(), timezone)
}

// ExportPaymentLinks is like ExportInvoices for payment links.
func (c *Client) ExportPaymentLinks(ctx context.Context, w io.Writer, f PaymentLinkFilter, timezone string) (rows int64, err error) {
	return c.export(ctx, w, "api/payment-links", f.query(), timezone)
}

// ExportEvents is like ExportInvoices for events.
func (c *Client) ExportEvents(ctx context.Context, w io.Writer, f EventFilter, timezone string) (rows int64, err error) {
	return c.export(ctx, w, "api/events", f.query(), timezone)
}

// export copies the CSV of a list to w. Attempts are repeated until one is answered; a copy
// that breaks off is not continued.
func (c *Client) export(ctx context.Context, w io.Writer, path string, query url.Values, timezone string) (rows int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(exportIdle, func() { cancel(errSilent) })
	defer idle.Stop()
	set(query, "timezone", timezone)
	u := c.path(path)
	u.RawQuery = query.Encode()
	r := request{method: http.MethodGet, url: u, header: http.Header{"Accept": {"text/csv, application/problem+json"}}, repeatable: true}
	var response *http.Response
	attempts := 0
	err = c.repeat(ctx, r, func(n int) (err error) {
		attempts = n
		response, err = c.open(ctx, r, n) //nolint:bodyclose // it is closed below
		return err
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if _, err := io.Copy(w, heard{response.Body, idle}); err != nil {
		return 0, failed(r, attempts, &ConnectionError{Err: fmt.Errorf("the export broke off: %w", cmp.Or(context.Cause(ctx), err))})
	}
	rows, err = strconv.ParseInt(response.Trailer.Get("Quittance-Rows"), 10, 64)
	if err != nil {
		return 0, failed(r, attempts, &ConnectionError{Err: fmt.Errorf("the export is incomplete: %w", io.ErrUnexpectedEOF)})
	}
	return rows, nil
}

// heard is a body that restarts a timer with each read.
type heard struct {
	io.Reader
	idle *time.Timer
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	h.idle.Reset(exportIdle)
	return n, err
}
