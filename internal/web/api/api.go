// Package api serves the JSON interface of openapi.yaml: invoices, payments and events
// for merchants, and the notices of transfer providers.
//
// Handlers return errors. One table maps their codes to responses, and one function
// holds all routes.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/webhooks"
)

// Limits of the interface. Package invoice has the limits of an invoice.
const (
	// MaxBody bounds a request body, in bytes.
	MaxBody = 64 << 10
	// MaxDepth bounds the nesting of a body's objects and arrays.
	MaxDepth = apiconv.MaxDepth
	// MaxPage bounds the elements of a page.
	MaxPage = 200
	// DefaultPage is the default of a list's limit.
	DefaultPage = 50
	// MaxMetadataFilters bounds the pairs of metadata that a list of invoices is filtered by.
	MaxMetadataFilters = 5
	// MaxCursor bounds a cursor, in bytes.
	MaxCursor = 200
	// MaxIdempotencyKey bounds an Idempotency-Key, in characters.
	MaxIdempotencyKey = 255
	// MaxNoticeText bounds a stored text of a notice, in bytes.
	MaxNoticeText = 255
	// RedeliverBatch bounds the events that one transaction reschedules.
	RedeliverBatch = 500
	// RedeliverTime is how long a request starts further transactions.
	RedeliverTime = 3 * time.Second
	// RequestTimeout bounds a request. The server sets it; the API sets it again for
	// each part of a long list.
	RequestTimeout = 10 * time.Second
)

// Ledger makes the changes of the API. *ledger.Service implements it.
type Ledger interface {
	// Create creates an invoice, or returns the one that the same request with the
	// same key created before. Errors are *invoice.FieldError,
	// ledger.ErrIdempotencyMismatch, ledger.ErrIdempotencyInProgress and internal ones.
	Create(ctx context.Context, r ledger.CreateRequest) (invoice.Invoice, error)
	// UpdateInvoice, Finalize, Void and DeleteDraft change an invoice that the principal
	// sees. *ledger.Service documents the errors.
	UpdateInvoice(ctx context.Context, by access.Principal, id string, c ledger.InvoiceChange) (invoice.Invoice, error)
	Finalize(ctx context.Context, by access.Principal, id string) (invoice.Invoice, error)
	Void(ctx context.Context, by access.Principal, id string) (invoice.Invoice, error)
	DeleteDraft(ctx context.Context, by access.Principal, id string) error
	// AttributeManually attributes a payment to an invoice, and returns the updated
	// payment. Errors are db.ErrNotFound, *invoice.FieldError, ledger.ErrAttributed,
	// ledger.ErrOrphaned, ledger.ErrUndecided and internal ones.
	AttributeManually(ctx context.Context, h ledger.ManualAttribution) (invoice.Payment, error)
	// PrepareRefund, CancelRefund and ApproveRefund return the refund in its new state.
	// ledger.Service documents the errors.
	PrepareRefund(ctx context.Context, req ledger.RefundRequest) (invoice.RefundRecord, error)
	CancelRefund(ctx context.Context, id, merchantID string) (invoice.RefundRecord, error)
	// ClaimToken returns the token of the refund's page for the payer, or "" if it is not known.
	ClaimToken(r invoice.RefundRecord) string
	ApproveRefund(ctx context.Context, id, merchantID string, to invoice.Address) (invoice.RefundRecord, error)
	// EraseCustomer erases the personal data of a merchant's customer. ledger.Service documents the errors.
	EraseCustomer(ctx context.Context, merchantID, customer string, once ledger.Once) (ledger.Erasure, error)
	Authorizations
	Inbox
	Submissions
	// ReceiveNotice stores a notice unless it is stored already.
	ReceiveNotice(ctx context.Context, n invoice.Notice) error
}

// Reader reads from the database. NewReader returns one.
type Reader interface {
	ApprovalReader
	CustomerReader
	// Invoice returns an invoice, or db.ErrNotFound.
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	// Invoices returns the matching invoices, newest first. If it examined db.MaxExamined without
	// finding enough, it also returns where it stopped.
	Invoices(ctx context.Context, f ledger.InvoiceFilter) (found []invoice.Invoice, examined string, err error)
	// FindInvoices returns the newest invoices that a text names.
	FindInvoices(ctx context.Context, text, merchantID string, limit int) ([]invoice.Invoice, error)
	// FindPayments returns payments that a text names, also those that are not confirmed or not attributed.
	FindPayments(ctx context.Context, text, merchantID string, limit int) ([]ledger.PaymentRow, error)
	// References returns the references of invoices that have one, by invoice id.
	References(ctx context.Context, invoiceIDs []string) (map[string]string, error)
	// AttributionNote returns the note of a payment's manual attribution, or "".
	AttributionNote(ctx context.Context, paymentID string) (string, error)
	// InvoiceMails returns the mails of an invoice.
	InvoiceMails(ctx context.Context, invoiceID string) ([]mailer.Mail, error)
	// InvoiceHistory returns the history of an invoice.
	InvoiceHistory(ctx context.Context, id string) (ledger.InvoiceHistory, error)
	// Payment returns a payment, or db.ErrNotFound.
	Payment(ctx context.Context, id string) (ledger.PaymentRow, error)
	// HasUnattributed reports whether a payment without an invoice, by its SeenID, was
	// received by an address of the merchant.
	HasUnattributed(ctx context.Context, merchantID, seenID string) (bool, error)
	// Payments returns the matching payments, last observed or confirmed first. If it examined
	// db.MaxExamined without finding enough, it also returns where it stopped.
	Payments(ctx context.Context, f ledger.PaymentFilter) (found []ledger.PaymentRow, examined ledger.PaymentPosition, err error)
	// AmountsRefunded returns the refunded amounts of payments, by payment id.
	AmountsRefunded(ctx context.Context, paymentIDs []string) (map[string]invoice.Amount, error)
	// NearInvoices returns the invoices that unattributed payments may be meant for. If merchantID is set,
	// it returns only invoices of that merchant.
	NearInvoices(ctx context.Context, lookups []ledger.NearLookup, merchantID string) ([][]invoice.NearInvoice, error)
	// RefundRecord returns the refund with the id, or the refund that the transfer with the id made, or
	// db.ErrNotFound.
	RefundRecord(ctx context.Context, id string) (invoice.RefundRecord, error)
	// RefundRecords returns the matching refunds, newest first.
	RefundRecords(ctx context.Context, f ledger.RefundFilter) ([]invoice.RefundRecord, error)
	// TransferLike returns the id of a transfer like that of a refund that became final since a time, or "".
	TransferLike(ctx context.Context, r invoice.RefundRecord, since time.Time) (string, error)
	// Cursor returns how far a chain is read, or db.ErrNotFound.
	Cursor(ctx context.Context, chainKey string) (ledger.Cursor, error)
	// Submissions returns the submissions of a refund, newest first.
	Submissions(ctx context.Context, refundIDs ...string) ([]invoice.Submission, error)
	// Keys returns the matching keys, newest first.
	Keys(ctx context.Context, f access.KeyFilter) ([]access.Record, error)
	// Authorization returns an authorization, or db.ErrNotFound.
	Authorization(ctx context.Context, id string) (ledger.Authorization, error)
	// AuthorizationsOfInvoice returns the newest authorizations of an invoice.
	AuthorizationsOfInvoice(ctx context.Context, invoiceID string, limit int) ([]ledger.Authorization, error)
	// Claims returns the matching claims, newest first.
	Claims(ctx context.Context, f ledger.ClaimFilter) ([]ledger.ClaimRow, error)
	// LostPayments returns the commitments of lost invoices, by the ids of the payments without an invoice
	// that were made for them.
	LostPayments(ctx context.Context, payments []invoice.Payment) (map[string]invoice.Hash, error)
	// ClaimsOfPayments returns the first claims to each payment.
	ClaimsOfPayments(ctx context.Context, paymentIDs []string, merchantID string, limit int) (map[string][]ledger.ClaimRow, error)
	// Decisions returns the matching decisions, newest first.
	Decisions(ctx context.Context, f ledger.DecisionFilter) ([]invoice.Decision, error)
	report.Source
	// LogState returns the state that decides which positions in the logs a reader of a merchant's events,
	// or of all, can continue from.
	LogState(ctx context.Context, merchantID string) (webhooks.LogState, error)
	// AuditEntries returns the matching entries of the audit log, newest first.
	AuditEntries(ctx context.Context, f access.AuditFilter) ([]access.Entry, error)
	// MerchantStorage returns what a merchant has stored, and its quotas.
	MerchantStorage(ctx context.Context, merchantID string) (access.Storage, error)
	// Requests returns the matching requests of the log, last ended first.
	Requests(ctx context.Context, f access.RequestFilter) ([]access.LoggedRequest, error)
}

// Events is the event log with the delivery schedule.
type Events interface {
	// Events returns the matching events, in the filter's order.
	Events(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error)
	// EventRecord returns an event with its attempts, or db.ErrNotFound.
	EventRecord(ctx context.Context, id string) (webhooks.EventRow, []webhooks.Attempt, error)
	// LastSeq returns the sequence number of the newest event, or 0.
	LastSeq(ctx context.Context) (int64, error)
	// AuditHead returns the newest entry's number and hash of the audit log.
	AuditHead(ctx context.Context) (access.Head, error)
	// Changes returns the objects of the entries of the audit log with numbers above after.
	Changes(ctx context.Context, after int64, limit int) ([]access.ChangeRow, error)
	// Listen records for a while that redelivered events reach the listener, unless it did so shortly
	// before. DeleteListener ends that.
	Listen(ctx context.Context, l *webhooks.Listener) error
	DeleteListener(ctx context.Context, id string) error
	// Redeliver reschedules an event's delivery, and passes the event to its listeners.
	// Errors are db.ErrNotFound, webhooks.ErrPending and webhooks.ErrNoDelivery, both without a
	// listener, and internal ones.
	Redeliver(ctx context.Context, eventID string, now time.Time) error
	// RedeliverMany reschedules up to limit deliveries. It returns their number, and the position to
	// continue at, or 0 at the end.
	RedeliverMany(ctx context.Context, f webhooks.RedeliverFilter, now time.Time, limit int) (scheduled, next int64, err error)
}

// Endpoints manages the merchants' webhook endpoints. *webhooks.Directory implements it
// and documents the errors.
type Endpoints interface {
	View(ctx context.Context, merchantID string) (webhooks.View, error)
	Put(ctx context.Context, merchantID string, set webhooks.Settings) (v webhooks.View, secret string, err error)
	PingMerchant(ctx context.Context, merchantID string) (webhooks.Attempt, error)
	Stage(ctx context.Context, merchantID string) (v webhooks.View, secret string, err error)
	Promote(ctx context.Context, merchantID string) (webhooks.View, error)
	Unstage(ctx context.Context, merchantID string) error
}

// Merchants manages the merchants. *access.MerchantManager implements it and documents the
// errors.
type Merchants interface {
	Get(ctx context.Context, by access.Principal, id string) (invoice.Merchant, error)
	List(ctx context.Context, by access.Principal, after string, limit int) ([]invoice.Merchant, error)
	Create(ctx context.Context, by access.Principal, id string, c invoice.MerchantChange) (invoice.Merchant, error)
	Update(ctx context.Context, by access.Principal, id string, c invoice.MerchantChange) (invoice.Merchant, error)
	SetLogo(ctx context.Context, by access.Principal, id string, image []byte) (invoice.Merchant, error)
	Logo(ctx context.Context, by access.Principal, id string) ([]byte, error)
	DropLogo(ctx context.Context, by access.Principal, id string) error
	Release(ctx context.Context, by access.Principal, id string, address invoice.Address) error
}

// Provider is a transfer provider that sends notices.
type Provider struct {
	Name   string // last segment of the path
	Secret string // key of its signatures
	// OtherSecret is a second key for signatures while one replaces the other, or empty.
	OtherSecret string
	Chains      map[string]string // provider's chain name → chainKey
	Currencies  map[string]string // provider's currency code → ours
}

// Config is the configuration of an API. All fields but Authenticator, Mails, Providers and
// PublicURL are required.
type Config struct {
	Ledger    Ledger
	Reader    Reader
	Events    Events
	Endpoints Endpoints
	Merchants Merchants
	// Mails sends invoices. It is nil without a mail server.
	Mails Mails
	Links Links
	Keys  Keys
	// SignInLinks is required for POST /api/sign-in-links.
	SignInLinks SignInLinks
	// Approvals is required for merchants with a policy of approvals.
	Approvals Approvals
	Nodes     Nodes
	Feed      Feed
	// Summarized is required for summaries and statements.
	Summarized SummaryReader
	// Operations is required for the routes of the operator.
	Operations Operations
	// Facilitator is required for the routes below /x402/.
	Facilitator Facilitator
	// Stopping ends when the service stops. Long requests end with it; nil means never.
	Stopping context.Context
	// Authenticator is required for WithPrincipal.
	Authenticator Authenticator
	Chains        []chain.Chain // configured chains
	Providers     []Provider
	PublicURL     string // of checkout pages, without a trailing slash; empty if it is not known
	Now           func() time.Time
	// RefundNow is the clock that decides whether a refund has expired. nil is Now.
	RefundNow func() time.Time
	// SignatureNow is the clock for checking signatures of notices. nil is Now.
	SignatureNow func() time.Time
	// Closed returns why the service sends nothing out, or "". While it is closed, no refund is offered.
	// Nil means never.
	Closed func() string
	Logger *slog.Logger
	// Refused, when set, is called for each stream, waiting request, report and export that
	// a limit refuses, with the limit's name.
	Refused func(limit string)
	// OnProblem, when set, is called for each request that is refused or fails, with the
	// answer.
	OnProblem func(ctx context.Context, p apitypes.Problem)
}

// API serves the JSON interface.
type API struct {
	conf          Config
	chains        map[string]chain.Chain
	providers     map[string]Provider
	pages         *slots       // of lists
	waiting       *slots       // of event streams and requests with wait
	waitingPayers *slots       // of payers' requests with wait, by invoice
	submitted     submitLimits // authorizations
	reports       *slots
	pings         *slots
	settling      *slots
	exports       *slots // of CSV
}

// New returns an API. It panics without a clock or a Logger.
func New(c Config) *API {
	if c.Now == nil || c.Logger == nil {
		panic("api: Config.Now and Config.Logger are required")
	}
	if c.SignatureNow == nil {
		c.SignatureNow = c.Now
	}
	if c.Stopping == nil {
		c.Stopping = context.Background()
	}
	if c.Closed == nil {
		c.Closed = func() string { return "" }
	}
	if c.RefundNow == nil {
		c.RefundNow = c.Now
	}
	if c.Refused == nil {
		c.Refused = func(string) {}
	}
	if c.OnProblem == nil {
		c.OnProblem = func(context.Context, apitypes.Problem) {}
	}
	slotsOf := func(name string, mostOwn, mostAll int64) *slots { return newSlots(name, mostOwn, mostAll, c.Refused) }
	a := &API{
		conf:      c,
		chains:    make(map[string]chain.Chain, len(c.Chains)),
		providers: make(map[string]Provider, len(c.Providers)),
		pages:     slotsOf("lists", 0, MaxPages),
		waiting:   slotsOf("waiting", MaxOwnWaiting, MaxWaiting), waitingPayers: slotsOf("waiting_payers", MaxWaitingForInvoice, MaxWaitingPayers),
		submitted: newSubmitted(c.Now),
		reports:   slotsOf("reports", MaxOwnReports, MaxReports), exports: slotsOf("exports", MaxOwnExports, MaxExports),
		pings: slotsOf("pings", MaxOwnPings, MaxPings), settling: slotsOf("settling", MaxOwnSettling, MaxSettling),
	}
	for _, ch := range c.Chains {
		a.chains[ch.Key] = ch
	}
	for _, p := range c.Providers {
		a.providers[p.Name] = p
	}
	return a
}

// NotFound returns a handler that answers not_found.
func (a *API) NotFound() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return problemf(apitypes.CodeNotFound, "Nothing is at this path.")
	})
}

// MethodNotAllowed returns a handler that answers method_not_allowed with allow as the
// header Allow.
func (a *API) MethodNotAllowed(allow string) http.Handler {
	return a.serve(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return problemf(apitypes.CodeMethodNotAllowed, "This path has no method %.20q; it has %s.", r.Method, allow)
	})
}

// ForbiddenHost returns a handler that answers forbidden to a request for a foreign
// host.
func (a *API) ForbiddenHost() http.Handler {
	return a.serve(func(_ http.ResponseWriter, r *http.Request) error {
		return problemf(apitypes.CodeForbidden, "This service does not go by the name %.80q; its operator can add it to http.hosts.", r.Host)
	})
}

// ForbiddenOrigin returns a handler that answers forbidden to a request from a foreign
// origin.
func (a *API) ForbiddenOrigin() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return problemf(apitypes.CodeForbidden, "A web page of another origin may not change anything here.")
	})
}

// ForbiddenInCopy returns a handler that answers forbidden to a request that would change an isolated copy.
func (a *API) ForbiddenInCopy() http.Handler {
	return a.serve(func(http.ResponseWriter, *http.Request) error {
		return problemf(apitypes.CodeForbidden, "This is an isolated copy of the service, which can be read and not changed; send this request to the live service.")
	})
}
