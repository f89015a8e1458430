package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
)

// exporting returns a client of a service with a handler.
func exporting(t *testing.T, h http.HandlerFunc) (*client.Client, *clock) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	k := new(clock)
	c := expect.Must(client.New(server.URL, client.WithHTTPClient(server.Client()), client.WithClock(k), client.WithRandom(zeros{}), client.WithVersion("2026-11-22")))
	return c, k
}

// writeRows answers with CSV in two parts.
func writeRows(t *testing.T, w http.ResponseWriter, first, second string) {
	t.Helper()
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	w.Header().Set("Trailer", "Quittance-Rows")
	for _, part := range []string{first, second} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Error(err)
		}
		expect.NoError(t, http.NewResponseController(w).Flush())
	}
}

// TestExports exports each list, after a failed attempt.
func TestExports(t *testing.T) {
	var requests []string
	c, k := exporting(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.RequestURI())
		if r.Header.Get("Accept") != "text/csv, application/problem+json" || r.Header.Get("Quittance-Version") != "2026-11-22" {
			t.Errorf("headers %v", r.Header)
		}
		if len(requests) == 1 {
			answer(t, w, http.StatusTooManyRequests, "application/problem+json", apitypes.Problem{Status: 429, Code: apitypes.CodeRateLimited})
			return
		}
		writeRows(t, w, "id\r\n", "inv_1\r\ninv_2\r\n")
		w.Header().Set("Quittance-Rows", "2")
	})
	for _, export := range []func(io.Writer) (int64, error){
		func(w io.Writer) (int64, error) {
			return c.ExportInvoices(t.Context(), w, client.InvoiceFilter{Status: apitypes.StatusPaid, Metadata: map[string]string{"a": "b"}}, "Europe/Berlin")
		},
		func(w io.Writer) (int64, error) {
			return c.ExportPayments(t.Context(), w, client.PaymentFilter{MerchantID: "acme", IncludePending: true}, "")
		},
		func(w io.Writer) (int64, error) {
			return c.ExportRefunds(t.Context(), w, client.RefundFilter{ChainKey: "base"}, "")
		},
		func(w io.Writer) (int64, error) {
			return c.ExportCustomers(t.Context(), w, client.CustomerFilter{Query: "c-1"}, "")
		},
		func(w io.Writer) (int64, error) {
			return c.ExportPaymentLinks(t.Context(), w, client.PaymentLinkFilter{Archived: new(false)}, "UTC")
		},
		func(w io.Writer) (int64, error) {
			return c.ExportEvents(t.Context(), w, client.EventFilter{Type: "invoice.paid"}, "")
		},
	} {
		var b bytes.Buffer
		if rows, err := export(&b); err != nil || rows != 2 || b.String() != "id\r\ninv_1\r\ninv_2\r\n" {
			t.Errorf("%d rows, %v: %q", rows, err, b.String())
		}
	}
	want := []string{
		"/api/invoices?metadata%5Ba%5D=b&status=paid&timezone=Europe%2FBerlin", "/api/invoices?metadata%5Ba%5D=b&status=paid&timezone=Europe%2FBerlin",
		"/api/payments?include=pending&merchantId=acme", "/api/refunds?chainKey=base", "/api/customers?q=c-1",
		"/api/payment-links?archived=false&timezone=UTC", "/api/events?type=invoice.paid",
	}
	if diff := cmp.Diff(want, requests); diff != "" || len(k.waited) != 1 {
		t.Errorf("waited %v, requests (-want +got):\n%s", k.waited, diff)
	}
}

// TestIncompleteExports has exports that are cut off, or are not CSV.
func TestIncompleteExports(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			writeRows(t, w, "id\r\n", "inv_1\r\n")
			panic(http.ErrAbortHandler)
		},
		"without a trailer": func(w http.ResponseWriter, _ *http.Request) { writeRows(t, w, "id\r\n", "inv_1\r\n") },
		"JSON": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusOK, "application/json", apitypes.InvoiceList{})
		},
		"refused": func(w http.ResponseWriter, _ *http.Request) {
			answer(t, w, http.StatusBadRequest, "application/problem+json", apitypes.Problem{Status: 400, Code: apitypes.CodeInvalidField})
		},
	} {
		c, _ := exporting(t, h)
		if rows, err := c.ExportInvoices(t.Context(), io.Discard, client.InvoiceFilter{}, ""); err == nil || rows != 0 {
			t.Errorf("%s: %d rows, %v", name, rows, err)
		}
	}
	c, _ := exporting(t, func(w http.ResponseWriter, _ *http.Request) { writeRows(t, w, "id\r\n", "inv_1\r\n") })
	if _, err := c.ExportInvoices(t.Context(), brokenWriter{}, client.InvoiceFilter{}, ""); !errors.Is(err, errFull) {
		t.Errorf("a writer that fails: %v", err)
	}
}

var errFull = errors.New("the disk is full")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errFull }

// part is a part of a body, and the delay before it.
type part struct {
	after time.Duration
	text  string
}

// slow is a transport with a response body in parts. It counts requests.
type slow struct {
	kind     string // the type of the body
	parts    []part
	requests int
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.kind}}, Trailer: http.Header{"Quittance-Rows": {"4"}},
		Body: io.NopCloser(&slowBody{r.Context(), s.parts}),
	}, nil
}

type slowBody struct {
	context.Context
	parts []part
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.parts) == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(b.parts[0].after):
	case <-b.Done():
		return 0, b.Err()
	}
	n := copy(p, b.parts[0].text)
	b.parts = b.parts[1:]
	return n, nil
}

// slowWriter takes a minute longer for each part than a service may be silent.
type slowWriter struct{ strings.Builder }

func (w *slowWriter) Write(p []byte) (int, error) {
	<-time.After(3 * time.Minute)
	return w.Builder.Write(p)
}

// TestExportTimeouts has exports that do not begin, that stop, and that take long.
func TestExportTimeouts(t *testing.T) {
	const day = 24 * time.Hour
	for name, v := range map[string]struct {
		parts    []part
		options  []client.Option
		err      string // "" for a success
		took     time.Duration
		requests int
	}{
		"does not begin": {[]part{{day, "id"}}, nil, "deadline exceeded", client.DefaultTimeout, 3},
		"does not begin, with other timeouts": {
			[]part{{day, "id"}}, []client.Option{client.WithTimeouts(300*time.Millisecond, 100*time.Millisecond), client.WithRetries(0)}, "deadline exceeded", 100 * time.Millisecond, 1,
		},
		"does not begin, with a timeout of the call": {
			[]part{{day, "id"}}, []client.Option{client.WithTimeouts(300*time.Millisecond, 0)}, "deadline exceeded", 300 * time.Millisecond, 1,
		},
		"begins late": {[]part{{25 * time.Second, "id\r\n"}}, []client.Option{client.WithTimeouts(time.Minute, 0)}, "", 25*time.Second + 3*time.Minute, 1},
		"stops":       {[]part{{0, "id"}, {day, "\r\n"}}, nil, "nothing was received for 2m0s", 2*time.Minute + 3*time.Minute, 1},
		"takes long": {
			[]part{{time.Second, "id\r\n"}, {time.Minute, "1\r\n"}, {time.Minute, "2\r\n"}, {time.Minute, "3\r\n4\r\n"}}, nil, "", time.Second + 3*time.Minute + 4*3*time.Minute, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &slow{kind: "text/csv", parts: v.parts}
				c := client.Must(client.New("http://service.example", append(v.options, client.WithHTTPClient(&http.Client{Transport: transport}))...))
				start := time.Now()
				_, err := c.ExportEvents(t.Context(), new(slowWriter), client.EventFilter{}, "")
				if took := time.Since(start); took != v.took || transport.requests != v.requests {
					t.Errorf("it took %s and %d requests, want %s and %d", took, transport.requests, v.took, v.requests)
				}
				if (err == nil) != (v.err == "") || err != nil && (!strings.Contains(err.Error(), v.err) || !errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("the error is %v, want %q", err, v.err)
				}
			})
		})
	}
	for _, parts := range [][]part{{{day, "id"}}, {{0, "id"}, {day, "\r\n"}}} { // the caller's context ends it
		synctest.Test(t, func(t *testing.T) {
			c := client.Must(client.New("http://service.example", client.WithHTTPClient(&http.Client{Transport: &slow{kind: "text/csv", parts: parts}})))
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			start := time.Now()
			if _, err := c.ExportEvents(ctx, io.Discard, client.EventFilter{}, ""); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
				t.Errorf("after %s: %v", time.Since(start), err)
			}
		})
	}
}

// TestVersion calls with and without a version.
func TestVersion(t *testing.T) {
	for _, version := range []string{"", "2026-11-22"} {
		var got [][]string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Values("Quittance-Version"))
			answer(t, w, http.StatusNotFound, "application/problem+json", apitypes.Problem{Status: 404, Code: apitypes.CodeNotFound})
		}))
		defer server.Close()
		var options []client.Option
		var want []string
		if version != "" {
			options, want = append(options, client.WithVersion(version)), []string{version}
		}
		c := expect.Must(client.New(server.URL, options...))
		if _, err := c.Invoice(t.Context(), "inv_1"); err == nil {
			t.Error("an invoice was found")
		}
		if _, err := c.CreateInvoice(t.Context(), apitypes.CreateInvoiceRequest{}); err == nil {
			t.Error("an invoice was created")
		}
		for _, err := range c.StreamEvents(t.Context(), client.EventFilter{}, client.AfterEnd) {
			if err == nil {
				t.Error("an event came")
			}
		}
		expect.NoDiff(t, cmp.Diff([][]string{want, want, want}, got), "%q", version)
	}
}

// TestListsOfAnInvoice reads the payments and the timeline of an invoice, which have two pages each.
func TestListsOfAnInvoice(t *testing.T) {
	var requests []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.RequestURI())
		next := map[string]string{"": "c1"}[r.URL.Query().Get("cursor")]
		if strings.HasSuffix(r.URL.Path, "/timeline") {
			entries := []apitypes.TimelineEntry{{At: 1, Kind: "invoice.created"}}
			answer(t, w, http.StatusOK, "application/json", apitypes.Timeline{Entries: entries, NextCursor: next, Truncated: true})
			return
		}
		p := apitypes.Payment{
			ID: "pay_3t9f0w6k2m5xq8r1v4z7b0n3hc", InvoiceID: invoice.ID, ChainKey: "base", TxHash: "0x" + strings.Repeat("1", 64), Amount: "1", Currency: "USDC",
			From: invoice.MerchantAddress, To: invoice.MerchantAddress, Status: apitypes.PaymentPending,
		}
		answer(t, w, http.StatusOK, "application/json", apitypes.PaymentList{Payments: []apitypes.Payment{p}, NextCursor: next})
	})
	payments, err := client.Collect(c.InvoicePayments(t.Context(), invoice.ID), 9)
	expect.NoError(t, err)
	entries, err := client.Collect(c.InvoiceTimeline(t.Context(), invoice.ID), 9)
	if !errors.Is(err, client.ErrTruncated) {
		t.Errorf("the timeline ends with %v, want ErrTruncated", err)
	}
	path := "/api/invoices/" + invoice.ID
	want := []string{path + "/payments", path + "/payments?cursor=c1", path + "/timeline", path + "/timeline?cursor=c1"}
	if diff := cmp.Diff(want, requests); diff != "" || len(payments) != 2 || len(entries) != 2 || payments[0].InvoiceID != invoice.ID || entries[1].Kind != "invoice.created" {
		t.Errorf("%+v and %+v; requests (-want +got):\n%s", payments, entries, diff)
	}
	for _, id := range []string{"", ".", ".."} { // these would be other lists
		_, err1 := client.Collect(c.InvoicePayments(t.Context(), id), 9)
		_, err2 := client.Collect(c.PaymentRefunds(t.Context(), id, ""), 9)
		_, err3 := c.PingWebhook(t.Context(), id)
		for i, err := range []error{err1, err2, err3, c.RevokeKey(t.Context(), id), c.DeleteInvoice(t.Context(), id)} {
			if err == nil {
				t.Errorf("call %d with %q is no error", i, id)
			}
		}
	}
	if len(requests) != len(want) {
		t.Errorf("requested %v", requests[len(want):])
	}
}
