// Package api serves the JSON interface that openapi.yaml describes: invoices
// and payments for merchants, and the notices of transfer providers.
//
// Handlers return errors. One table turns their codes into answers, and one
// function holds all routes.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/guard"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wire"
)

// Limits of the interface. Those of an invoice stand in package invoice.
const (
	// MaxBody is the size of the largest body that is read, in bytes.
	MaxBody = 64 << 10
	// MaxDepth is how deep a body's objects and arrays may be nested.
	MaxDepth = 32
	// MaxPage is the largest number of elements in a list's answer.
	MaxPage = 200
	// DefaultPage is the number of elements when a list's limit is not given.
	DefaultPage = 50
	// MaxCursor is the length of the longest cursor that is read, in bytes.
	MaxCursor = 200
	// MaxIdempotencyKey is the length of the longest Idempotency-Key, in characters.
	MaxIdempotencyKey = 255
	// MaxNoticeText is the length of the longest text in a notice that is kept, in bytes.
	MaxNoticeText = 255
	// RequestTimeout is how long a request may wait for the database, all in all.
	RequestTimeout = 10 * time.Second
)

// Ledger is what the API changes. settle.Service is one.
type Ledger interface {
	// Create creates an invoice, or returns the one that the same request with
	// the same key created before. Errors are *invoice.FieldError,
	// settle.ErrIdempotencyMismatch and settle.ErrIdempotencyInProgress, or
	// internal ones.
	Create(ctx context.Context, r settle.CreateRequest) (invoice.Invoice, error)
	// ReceiveNotice stores a notice once.
	ReceiveNotice(ctx context.Context, n settle.Notice) error
}

// Reader is what the API reads. store.Store is one.
type Reader interface {
	// Invoice returns one invoice, or store.ErrNotFound.
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	// Invoices returns those that fit, newest first.
	Invoices(ctx context.Context, f store.InvoiceFilter) ([]invoice.Invoice, error)
	// Payments returns those that fit, the latest seen first.
	Payments(ctx context.Context, f store.PaymentFilter) ([]store.PaymentRow, error)
}

// Provider is a transfer provider whose notices are accepted.
type Provider struct {
	Name       string            // the path's last segment
	Secret     string            // key of its signatures
	Chains     map[string]string // its name of a chain → our chainKey
	Currencies map[string]string // its code of a currency → ours
}

// Config is what an API is made of. All of it must be set, but Providers may
// be empty.
type Config struct {
	Ledger    Ledger
	Reader    Reader
	Chains    []chain.Chain // those that the service is configured with
	Providers []Provider
	Now       func() time.Time
	Logger    *slog.Logger
}

// API answers the requests of the JSON interface.
type API struct {
	ledger    Ledger
	reader    Reader
	chains    map[string]chain.Chain
	providers map[string]Provider
	now       func() time.Time
	logger    *slog.Logger
}

// New returns an API.
func New(c Config) *API {
	a := &API{
		ledger: c.Ledger, reader: c.Reader, now: c.Now, logger: c.Logger,
		chains:    make(map[string]chain.Chain, len(c.Chains)),
		providers: make(map[string]Provider, len(c.Providers)),
	}
	for _, ch := range c.Chains {
		a.chains[ch.Key] = ch
	}
	for _, p := range c.Providers {
		a.providers[p.Name] = p
	}
	return a
}

// Routes adds all routes to mux. Below /api/, a path that is none of them
// answers not_found, and a method that a path lacks method_not_allowed.
func (a *API) Routes(mux *http.ServeMux) {
	allow := make(map[string][]string)
	for _, route := range []struct {
		method, path string
		handle       guard.Handler
	}{
		{http.MethodPost, "/api/invoices", a.createInvoice},
		{http.MethodGet, "/api/invoices", a.listInvoices},
		{http.MethodGet, "/api/invoices/{id}", a.getInvoice},
		{http.MethodGet, "/api/payments", a.listPayments},
		{http.MethodPost, "/api/webhooks/{provider}", a.receiveNotice},
	} {
		mux.Handle(route.method+" "+route.path, a.serve(route.handle))
		allow[route.path] = append(allow[route.path], route.method)
		if route.method == http.MethodGet { // a pattern of ServeMux for GET takes HEAD too
			allow[route.path] = append(allow[route.path], http.MethodHead)
		}
	}
	for path, methods := range allow {
		slices.Sort(methods)
		mux.Handle(path, a.MethodNotAllowed(strings.Join(methods, ", ")))
	}
	mux.Handle("/api/", a.NotFound())
}

// Handler returns the routes as one handler, which answers not_found on every
// other path.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	a.Routes(mux)
	mux.Handle("/", a.NotFound())
	return mux
}

// NotFound returns a handler that answers not_found.
func (a *API) NotFound() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return refuse(wire.CodeNotFound, "Nothing is at this path.")
	})
}

// MethodNotAllowed returns a handler that answers method_not_allowed; allow
// lists the methods that there are, as the header Allow does.
func (a *API) MethodNotAllowed(allow string) http.Handler {
	return a.serve(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return refuse(wire.CodeMethodNotAllowed, "This path has no method %.20q; it has %s.", r.Method, allow)
	})
}

// StrangeHost returns a handler that answers forbidden, to a request for a host
// that this service is not.
func (a *API) StrangeHost() http.Handler {
	return a.serve(func(_ http.ResponseWriter, r *http.Request) error {
		return refuse(wire.CodeForbidden, "This service answers to localhost and loopback addresses alone, not to %.80q.", r.Host)
	})
}
