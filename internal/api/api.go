// Package api serves the JSON interface that openapi.yaml describes: invoices
// and payments for merchants, and the notices of transfer providers.
//
// Handlers return errors. One table turns their codes into answers, and one
// function holds all routes.
package api

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/endpoint"
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
	// RedeliverBatch is how many events one transaction schedules again.
	RedeliverBatch = 500
	// RedeliverTime is after how long a request begins no further one.
	RedeliverTime = 3 * time.Second
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
	// AttributeByHand gives a payment to an invoice, and returns the payment
	// then. Errors are store.ErrNotFound, *invoice.FieldError,
	// settle.ErrAttributed, settle.ErrOrphaned and settle.ErrUndecided, or
	// internal ones.
	AttributeByHand(ctx context.Context, h settle.HandAttribution) (invoice.Payment, error)
	// ReceiveNotice stores a notice once.
	ReceiveNotice(ctx context.Context, n settle.Notice) error
}

// Reader is what the API reads. store.Store is one.
type Reader interface {
	// Invoice returns one invoice, or store.ErrNotFound.
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	// Invoices returns those that fit, newest first.
	Invoices(ctx context.Context, f store.InvoiceFilter) ([]invoice.Invoice, error)
	// Payment returns one payment, or store.ErrNotFound.
	Payment(ctx context.Context, id string) (store.PaymentRow, error)
	// Payments returns those that fit, the latest seen first.
	Payments(ctx context.Context, f store.PaymentFilter) ([]store.PaymentRow, error)
	// AmountsRefunded returns what was paid back of payments, by their ids.
	AmountsRefunded(ctx context.Context, paymentIDs []string) (map[string]invoice.Amount, error)
	// NearInvoices returns those that a payment without an invoice could be
	// meant for, of a merchant unless that is empty.
	NearInvoices(ctx context.Context, t invoice.Transfer, merchantID string, createdBefore int64) ([]invoice.NearInvoice, error)
	// Claims returns those that fit, the newest first.
	Claims(ctx context.Context, f store.ClaimFilter) ([]store.Claim, error)
	// ClaimsOfPayments returns the first claims to each of the payments.
	ClaimsOfPayments(ctx context.Context, paymentIDs []string, merchantID string, limit int) (map[string][]store.Claim, error)
}

// Events is the log of events and the schedule of their deliveries.
type Events interface {
	// Events returns those that fit, in the order that the filter says.
	Events(ctx context.Context, f store.EventFilter) ([]store.EventRow, error)
	// EventRecord returns one event with its attempts, or store.ErrNotFound.
	EventRecord(ctx context.Context, id string) (store.EventRow, []store.Attempt, error)
	// LastSeq returns the number of the newest event, 0 when there is none.
	LastSeq(ctx context.Context) (int64, error)
	// Redeliver schedules an event's delivery again. Errors are
	// store.ErrNotFound, store.ErrPending and store.ErrNoDelivery, or internal
	// ones.
	Redeliver(ctx context.Context, eventID string, nowMS int64) error
	// RedeliverMany schedules at most so many again. It returns how many, and
	// where to go on; 0 when nothing is left.
	RedeliverMany(ctx context.Context, f store.RedeliverFilter, nowMS int64, limit int) (scheduled, next int64, err error)
}

// Endpoints are the merchants' webhook endpoints. endpoint.Directory is one; it
// says what the errors are.
type Endpoints interface {
	View(ctx context.Context, merchantID string) (endpoint.View, error)
	Put(ctx context.Context, merchantID, url string, optional []invoice.EventType) (v endpoint.View, secret string, err error)
	PingMerchant(ctx context.Context, merchantID string) (store.Attempt, error)
	Stage(ctx context.Context, merchantID string) (v endpoint.View, secret string, err error)
	Promote(ctx context.Context, merchantID string) (endpoint.View, error)
	Unstage(ctx context.Context, merchantID string) error
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
	Events    Events
	Endpoints Endpoints
	Chains    []chain.Chain // those that the service is configured with
	Providers []Provider
	Now       func() time.Time
	Logger    *slog.Logger
}

// API answers the requests of the JSON interface.
type API struct {
	ledger    Ledger
	reader    Reader
	events    Events
	endpoints Endpoints
	chains    map[string]chain.Chain
	providers map[string]Provider
	now       func() time.Time
	logger    *slog.Logger
	pages     pages
}

// New returns an API.
func New(c Config) *API {
	a := &API{
		ledger: c.Ledger, reader: c.Reader, events: c.Events, endpoints: c.Endpoints, now: c.Now, logger: c.Logger, pages: newPages(),
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
	paths := make(map[string]map[string]http.Handler)
	for _, route := range []struct {
		method, path string
		handle       guard.Handler
	}{
		{http.MethodPost, "/api/invoices", a.createInvoice},
		{http.MethodGet, "/api/invoices", a.listInvoices},
		{http.MethodGet, "/api/invoices/{id}", a.getInvoice},
		{http.MethodGet, "/api/payments", a.listPayments},
		{http.MethodGet, "/api/payments/{id}", a.getPayment},
		{http.MethodPost, "/api/payments/{id}/attribution", a.attributePayment},
		{http.MethodGet, "/api/claims", a.listClaims},
		{http.MethodGet, "/api/events", a.listEvents},
		{http.MethodPost, "/api/events/redeliver", a.redeliverEvents},
		{http.MethodGet, "/api/events/{id}", a.getEvent},
		{http.MethodPost, "/api/events/{id}/redeliver", a.redeliverEvent},
		{http.MethodGet, "/api/merchants/{id}/webhook", a.getWebhook},
		{http.MethodPut, "/api/merchants/{id}/webhook", a.putWebhook},
		{http.MethodPost, "/api/merchants/{id}/webhook/ping", a.pingWebhook},
		{http.MethodPost, "/api/merchants/{id}/webhook/secret", a.stageSecret},
		{http.MethodDelete, "/api/merchants/{id}/webhook/secret", a.dropSecret},
		{http.MethodPost, "/api/merchants/{id}/webhook/secret/promote", a.promoteSecret},
		{http.MethodPost, "/api/webhooks/{provider}", a.receiveNotice},
	} {
		if paths[route.path] == nil {
			paths[route.path] = make(map[string]http.Handler)
		}
		paths[route.path][route.method] = a.serve(route.handle)
		if route.method == http.MethodGet {
			paths[route.path][http.MethodHead] = a.serve(route.handle)
		}
	}
	for path, methods := range paths {
		other := a.MethodNotAllowed(strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
		// A pattern of ServeMux with a method would be at odds with one of a
		// wider path, such as /api/events/{id}, that has another method.
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if h, ok := methods[r.Method]; ok {
				h.ServeHTTP(w, r)
				return
			}
			other.ServeHTTP(w, r)
		})
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
		return refuse(wire.CodeForbidden, "This service does not go by the name %.80q; its operator can add it to http.hosts.", r.Host)
	})
}

// StrangeOrigin returns a handler that answers forbidden, to a request that a
// browser sent for a page of another origin.
func (a *API) StrangeOrigin() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return refuse(wire.CodeForbidden, "A web page of another origin may not change anything here.")
	})
}
