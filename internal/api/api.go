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
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/endpoint"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
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
	// RequestTimeout is how long a request may wait for the database in total. The
	// server sets it; the API sets it again for each part of a long list.
	RequestTimeout = 10 * time.Second
)

// Ledger is what the API changes. settle.Service is one.
type Ledger interface {
	// Create creates an invoice, or returns the one that the same request with
	// the same key created before. Errors are *invoice.FieldError,
	// settle.ErrIdempotencyMismatch and settle.ErrIdempotencyInProgress, or
	// internal ones.
	Create(ctx context.Context, r settle.CreateRequest) (invoice.Invoice, error)
	// AttributeManually gives a payment to an invoice, and returns the payment
	// then. Errors are store.ErrNotFound, *invoice.FieldError,
	// settle.ErrAttributed, settle.ErrOrphaned and settle.ErrUndecided, or
	// internal ones.
	AttributeManually(ctx context.Context, h settle.ManualAttribution) (invoice.Payment, error)
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
	EventRecord(ctx context.Context, id string) (store.EventRow, []delivery.Attempt, error)
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
	PingMerchant(ctx context.Context, merchantID string) (delivery.Attempt, error)
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

// Routes adds all routes to mux. Their errors are problem documents; what no
// route takes and panics are left to the caller, who can answer with NotFound,
// MethodNotAllowed and WriteError.
func (a *API) Routes(mux *http.ServeMux) {
	for pattern, h := range map[string]handler{
		"POST /api/invoices":                              a.createInvoice,
		"GET /api/invoices":                               a.listInvoices,
		"GET /api/invoices/{id}":                          a.getInvoice,
		"GET /api/payments":                               a.listPayments,
		"GET /api/payments/{id}":                          a.getPayment,
		"POST /api/payments/{id}/attribution":             a.attributePayment,
		"GET /api/claims":                                 a.listClaims,
		"GET /api/events":                                 a.listEvents,
		"POST /api/events/redeliver":                      a.redeliverEvents,
		"GET /api/events/{id}":                            a.getEvent,
		"POST /api/events/{id}/redeliver":                 a.redeliverEvent,
		"GET /api/merchants/{id}/webhook":                 a.getWebhook,
		"PUT /api/merchants/{id}/webhook":                 a.putWebhook,
		"POST /api/merchants/{id}/webhook/ping":           a.pingWebhook,
		"POST /api/merchants/{id}/webhook/secret":         a.stageSecret,
		"DELETE /api/merchants/{id}/webhook/secret":       a.dropSecret,
		"POST /api/merchants/{id}/webhook/secret/promote": a.promoteSecret,
		"POST /api/webhooks/{provider}":                   a.receiveNotice,
	} {
		mux.Handle(pattern, a.serve(h))
	}
}

// NotFound returns a handler that answers not_found.
func (a *API) NotFound() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return problemf(apitypes.CodeNotFound, "Nothing is at this path.")
	})
}

// MethodNotAllowed returns a handler that answers method_not_allowed; allow
// lists the methods that there are, as the header Allow does.
func (a *API) MethodNotAllowed(allow string) http.Handler {
	return a.serve(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return problemf(apitypes.CodeMethodNotAllowed, "This path has no method %.20q; it has %s.", r.Method, allow)
	})
}

// ForbiddenHost returns a handler that answers forbidden, to a request for a host
// that this service is not.
func (a *API) ForbiddenHost() http.Handler {
	return a.serve(func(_ http.ResponseWriter, r *http.Request) error {
		return problemf(apitypes.CodeForbidden, "This service does not go by the name %.80q; its operator can add it to http.hosts.", r.Host)
	})
}

// ForbiddenOrigin returns a handler that answers forbidden, to a request that a
// browser sent for a page of another origin.
func (a *API) ForbiddenOrigin() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return problemf(apitypes.CodeForbidden, "A web page of another origin may not change anything here.")
	})
}
