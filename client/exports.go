package client

import (
	"bufio"
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

// exportIdle is the longest silence of an export that has begun. The service pauses between its reads.
const exportIdle = 2 * time.Minute

var errSilent = fmt.Errorf("nothing was received for %s: %w", exportIdle, context.DeadlineExceeded)

// ExportInvoices writes all invoices that a filter selects to w as CSV, and returns their number. Times are in
// timezone, a name such as Europe/Berlin; "" is UTC. After an error w may have received part of the export. f.Query and
// f.PageSize must not be set.
//
// The timeouts of the client bound the wait for the first byte. After it, an export takes as long as it needs. It ends
// with ctx, or if the service sends no byte for two minutes, not counting the time that w takes.
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

// export copies the CSV of a list to w. Attempts are repeated until one receives the first byte of a body; a broken
// copy is not continued.
func (c *Client) export(ctx context.Context, w io.Writer, path string, query url.Values, timezone string) (rows int64, err error) {
	set(query, "timezone", timezone)
	u := c.path(path)
	u.RawQuery = query.Encode()
	r := request{method: http.MethodGet, url: u, header: http.Header{"Accept": {"text/csv, application/problem+json"}}, repeatable: true}
	call, end := bounded(ctx, c.timeout, 0)
	defer end()
	var from *download
	attempts := 0
	err = c.repeat(call, r, func(n int) (err error) {
		attempts = n
		from, err = c.download(ctx, call, r, n)
		return err
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := io.Copy(w, from); err != nil {
		return 0, failed(r, attempts, &ConnectionError{Err: fmt.Errorf("the export broke off: %w", err)})
	}
	rows, err = strconv.ParseInt(from.response.Trailer.Get("Quittance-Rows"), 10, 64)
	if err != nil {
		return 0, failed(r, attempts, &ConnectionError{Err: fmt.Errorf("the export is incomplete: %w", io.ErrUnexpectedEOF)})
	}
	return rows, nil
}

// download is the body of a response that has begun. It ends with its caller's context, and when the service is silent
// for too long, but not with its call.
type download struct {
	response *http.Response
	body     *bufio.Reader
	cancel   context.CancelCauseFunc
	cause    func() error // why the request was cancelled
}

// download makes one attempt, the nth of a call, and waits for the first byte of the body. The
// attempt ends with the contexts of the caller and of the call.
func (c *Client) download(ctx, call context.Context, r request, n int) (d *download, err error) {
	reading, cancel := context.WithCancelCause(ctx)
	attempt, end := bounded(call, c.attemptTimeout, 0)
	defer end()
	begun := context.AfterFunc(attempt, func() { cancel(context.Cause(attempt)) })
	response, err := c.open(reading, r, n) //nolint:bodyclose // the download closes the body
	if err == nil {
		d = &download{response, bufio.NewReader(response.Body), cancel, func() error { return context.Cause(reading) }}
		if _, err = d.body.Peek(1); errors.Is(err, io.EOF) { // the body has no rows, and no header
			err = nil
		} else if err != nil {
			err = broken(err)
		}
	}
	if !begun() { // the timeout was reached
		err = broken(context.Cause(attempt))
	}
	if err != nil {
		cancel(err)
		if d != nil {
			err = errors.Join(err, d.Close())
		}
		return nil, err
	}
	return d, nil
}

// Read reads from the response. The caller's time between two reads does not count.
func (d *download) Read(p []byte) (int, error) {
	idle := time.AfterFunc(exportIdle, func() { d.cancel(errSilent) })
	defer idle.Stop()
	n, err := d.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = cmp.Or(d.cause(), err)
	}
	return n, err
}

// Close closes the connection unless the whole body was read.
func (d *download) Close() error {
	defer d.cancel(nil)
	return d.response.Body.Close()
}
