package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/web/checkout"
	"github.com/quittance/quittance/internal/web/webpage"
)

type (
	apiReader      = api.Reader
	checkoutReader = checkout.Reader
)

// fakeReader is the Reader of the API and of the checkout. It has every invoice, unless read fails.
type fakeReader struct {
	apiReader
	checkoutReader
	read func(context.Context) error
}

func (f fakeReader) Invoice(ctx context.Context, id string) (invoice.Invoice, error) {
	return invoice.Invoice{ID: id, ChainKey: "local"}, f.read(ctx)
}

// Cursor returns that nothing is read.
func (fakeReader) Cursor(context.Context, string) (ledger.Cursor, error) {
	return ledger.Cursor{}, nil
}

// RefundRecords returns an empty list.
func (fakeReader) RefundRecords(context.Context, ledger.RefundFilter) ([]invoice.RefundRecord, error) {
	return nil, nil
}

// noLinks has no payment links.
type noLinks struct{}

func (noLinks) Find(context.Context, string, string) (invoice.PaymentLink, error) {
	return invoice.PaymentLink{}, db.ErrNotFound
}

func (noLinks) Pay(context.Context, invoice.PaymentLink, invoice.Amount, string) (invoice.Invoice, error) {
	return invoice.Invoice{}, db.ErrNotFound
}

func (noLinks) OfInvoice(context.Context, invoice.Invoice) (invoice.PaymentLink, error) {
	return invoice.PaymentLink{}, db.ErrNotFound
}

// noFeed is a feed that no page reads.
type noFeed struct{ webpage.Feed }

// noClaims rejects every claim.
type noClaims struct{}

func (noClaims) Claim(context.Context, ledger.Claim) (ledger.ClaimResult, error) {
	return "", db.ErrNotFound
}

// testRoutes returns the routes of the API and the checkout in their
// middleware. Answers of the API are checked against openapi.yaml.
func testRoutes(t *testing.T, log io.Writer, read func(context.Context) error) http.Handler {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(log, nil))
	f := fakeReader{read: read}
	rest := api.New(api.Config{Reader: f, Now: time.Now, Logger: logger, Providers: []api.Provider{{Name: "circle", Secret: "secret"}}})
	page := checkout.New(checkout.Config{
		Reader: f, Claims: noClaims{}, Reports: noReports{}, Feed: noFeed{}, Now: time.Now, Logger: logger,
		TestWallet: func(context.Context, invoice.Invoice) (string, error) { return "", errors.New("no wallet") },
	})
	rt := newRouter(append(rest.Routes(), page.Routes()...), webpage.Doors, openToOperator, unlimited, renderers{api: rest, checkout: page})
	return apitest.Check(t, withDeadline(withRecover(rt.writeError, rt)))
}

// openToOperator is a middleware that has all requests act for the operator.
func openToOperator(r webpage.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.Handler.ServeHTTP(w, request.WithContext(access.WithPrincipal(request.Context(), access.Open())))
	})
}

// The paths of an invoice in the API and the checkout.
const (
	apiPath      = "/api/invoices/inv_01jz8x4kq2v7r9m3t5n6p8w0ya"
	checkoutPath = "/checkout/inv_01jz8x4kq2v7r9m3t5n6p8w0ya"
)

func serveTest(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wantErrorFor fails unless the answer is a problem document with the code, or a
// page for a path of the checkout. It must have the headers of every answer.
func wantErrorFor(t *testing.T, w *httptest.ResponseRecorder, path string, status int, code string) {
	t.Helper()
	mediaType, text, policy := "application/problem+json", `"code":"`+code+`"`, false
	if isPage(path) {
		mediaType, text, policy = "text/html; charset=utf-8", "<h1", true
	}
	header := w.Header()
	if w.Code != status || header.Get("Content-Type") != mediaType || !strings.Contains(w.Body.String(), text) {
		t.Errorf("%s: answered %d %s %s; want %d with %s", path, w.Code, header.Get("Content-Type"), w.Body, status, text)
	}
	if header.Get("Cache-Control") != "no-store" || (header.Get("Content-Security-Policy") != "") != policy {
		t.Errorf("%s: answered with headers %v", path, header)
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	for _, path := range []string{apiPath, checkoutPath} {
		var log bytes.Buffer
		h := testRoutes(t, &log, func(context.Context) error { panic("no route to db-7") })
		w := serveTest(h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		wantErrorFor(t, w, path, http.StatusInternalServerError, "internal")
		if strings.Contains(w.Body.String(), "db-7") {
			t.Errorf("%s: the answer shows the panic: %s", path, w.Body)
		}
		for _, want := range []string{"level=ERROR", "panic: no route to db-7", "middleware_test.go"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %q: %s", path, want, log.String())
			}
		}
	}
}

func TestAbortReachesNetHTTP(t *testing.T) {
	for _, path := range []string{apiPath, checkoutPath} {
		func() {
			defer func() {
				if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // net/http compares the panic's value too
					t.Errorf("%s: recovered %v, want http.ErrAbortHandler", path, p)
				}
			}()
			h := testRoutes(t, io.Discard, func(context.Context) error { panic(http.ErrAbortHandler) })
			serveTest(h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		}()
	}
}

func TestDeadlineIsUnavailable(t *testing.T) {
	for _, path := range []string{apiPath, checkoutPath} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			h := testRoutes(t, &log, func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			begun := time.Now()
			w := serveTest(h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if took := time.Since(begun); took != api.RequestTimeout {
				t.Errorf("%s: answered after %v, want %v", path, took, api.RequestTimeout)
			}
			wantErrorFor(t, w, path, http.StatusServiceUnavailable, "unavailable")
			if w.Header().Get("Retry-After") == "" || !strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("%s: headers %v, log %s", path, w.Header(), log.String())
			}
		})
	}
}

// A client may close its half of the connection once it has sent its request,
// as netcat does, and still gets the answer.
func TestHalfClosedConnections(t *testing.T) {
	requests := make(chan context.Context, 1)
	h := testRoutes(t, io.Discard, func(ctx context.Context) error {
		select {
		case <-(<-requests).Done(): // net/http has seen that the client sends no more
			return cmp.Or(ctx.Err(), db.ErrNotFound)
		case <-ctx.Done():
			return errors.New("net/http has not seen that the client sends no more")
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Context()
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, version := range []string{"HTTP/1.0", "HTTP/1.1"} {
		request := "GET " + apiPath + " " + version + "\r\nHost: localhost\r\n\r\n"
		if answer := halfClose(t, server.Listener.Addr().String(), request); !strings.Contains(answer, " 404 ") {
			t.Errorf("%s: answered %s", version, answer)
		}
	}
}

// halfClose sends the text on a new connection, closes its half, and returns the first line of the answer.
func halfClose(t *testing.T, address, text string) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
	expect.OK(t, err)
	_, sent := io.WriteString(conn, text)
	closed := conn.(*net.TCPConn).CloseWrite()
	answer, read := io.ReadAll(conn)
	expect.OK(t, errors.Join(sent, closed, read, conn.Close()))
	line, _, _ := strings.Cut(string(answer), "\r\n")
	return line
}

type noReports struct{ checkout.Reports }
