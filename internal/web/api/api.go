// Package api serves the JSON interface of openapi.yaml: invoices, payments and events
// for merchants, and the notices of transfer providers.
//
// Handlers return errors. One table maps their codes to responses, and one function holds all routes.
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
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
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
	// RequestTimeout bounds a request. The server sets it; the API sets it again for each part of a long list.
	RequestTimeout = 10 * time.Second
)

// Ledger makes the changes of the API. *ledger.Service implements it and documents the errors.
type Ledger interface {
	Create(ctx context.Context, r ledger.CreateRequest) (invoice.Invoice, error)
	UpdateInvoice(ctx context.Context, by access.Principal, id string, c ledger.InvoiceChange) (invoice.Invoice, error)
	Finalize(ctx context.Context, by access.Principal, id string) (invoice.Invoice, error)
	Void(ctx context.Context, by access.Principal, id string) (invoice.Invoice, error)
	DeleteDraft(ctx context.Context, by access.Principal, id string) error
	AttributeManually(ctx context.Context, h ledger.ManualAttribution) (invoice.Payment, error)
	PrepareRefund(ctx context.Context, req ledger.RefundRequest) (invoice.RefundRecord, error)
	CancelRefund(ctx context.Context, id, merchantID string) (invoice.RefundRecord, error)
	ClaimToken(r invoice.RefundRecord) string
	ApproveRefund(ctx context.Context, id, merchantID string, to invoice.Address) (invoice.RefundRecord, error)
	EraseCustomer(ctx context.Context, merchantID, customer string, once ledger.Once) (ledger.Erasure, error)
	Authorize(ctx context.Context, invoiceID string, a invoice.Authorization) (ledger.Authorization, error)
	Inbox(ctx context.Context, f ledger.InboxFilter) (items []ledger.InboxItem, next string, err error)
	InboxCounts(ctx context.Context, merchantID string) ([]ledger.InboxCount, error)
	Decide(ctx context.Context, req ledger.DecisionRequest) (invoice.Decision, error)
	UndoDecision(ctx context.Context, id, merchantID string) (invoice.Decision, error)
	SubmitRefund(ctx context.Context, refundID, merchantID string, tx invoice.Hash, once ledger.Once) (invoice.Submission, error)
	RecordTransaction(ctx context.Context, refundID, submissionID, merchantID string, tx, replaced invoice.Hash) (invoice.Submission, error)
	WithdrawSubmission(ctx context.Context, req ledger.Withdrawal) (invoice.Submission, error)
	SubmissionSeen(ctx context.Context, refundID, submissionID, merchantID string, tx invoice.Hash) error
	ReceiveNotice(ctx context.Context, n invoice.Notice) error
}

// Reader reads from the database. NewReader returns one. The readers of the packages that own the tables document the
// methods.
type Reader interface {
	Approval(ctx context.Context, id string, at time.Time) (access.Approval, error)
	Approvals(ctx context.Context, f access.ApprovalFilter) ([]access.Approval, error)
	ApprovalVotes(ctx context.Context, id string) ([]access.ApprovalVote, error)
	Approvers(ctx context.Context, merchantID string, at time.Time) ([]access.Record, error)
	Customers(ctx context.Context, f ledger.CustomerFilter) ([]ledger.Customer, error)
	FindCustomers(ctx context.Context, merchantID, text string, limit int) ([]ledger.Customer, error)
	Invoice(ctx context.Context, id string) (invoice.Invoice, error)
	Invoices(ctx context.Context, f ledger.InvoiceFilter) (found []invoice.Invoice, examined string, err error)
	FindInvoices(ctx context.Context, text, merchantID string, limit int) ([]invoice.Invoice, error)
	FindPayments(ctx context.Context, text, merchantID string, limit int) ([]ledger.PaymentRow, error)
	References(ctx context.Context, invoiceIDs []string) (map[string]string, error)
	InvoiceMails(ctx context.Context, invoiceID string) ([]mailer.Mail, error)
	InvoiceHistory(ctx context.Context, id string) (ledger.InvoiceHistory, error)
	Payment(ctx context.Context, id string) (ledger.PaymentRow, error)
	SeesPayment(ctx context.Context, merchantID string, p ledger.PaymentRow) (bool, error)
	SeesRefund(ctx context.Context, merchantID string, r invoice.RefundRecord) (bool, error)
	Payments(ctx context.Context, f ledger.PaymentFilter) (found []ledger.PaymentRow, examined ledger.PaymentPosition, err error)
	AmountsRefunded(ctx context.Context, paymentIDs []string) (map[string]invoice.Amount, error)
	NearInvoices(ctx context.Context, lookups []ledger.NearLookup, merchantID string) ([][]invoice.NearInvoice, error)
	RefundRecord(ctx context.Context, id string) (invoice.RefundRecord, error)
	RefundRecords(ctx context.Context, f ledger.RefundFilter) ([]invoice.RefundRecord, error)
	TransferLike(ctx context.Context, r invoice.RefundRecord, since time.Time) (string, error)
	Cursor(ctx context.Context, chainKey string) (ledger.Cursor, error)
	Submissions(ctx context.Context, refundIDs ...string) ([]invoice.Submission, error)
	Keys(ctx context.Context, f access.KeyFilter) ([]access.Record, error)
	Authorization(ctx context.Context, id string) (ledger.Authorization, error)
	AuthorizationsOfInvoice(ctx context.Context, invoiceID string, limit int) ([]ledger.Authorization, error)
	Claims(ctx context.Context, f ledger.ClaimFilter) ([]ledger.ClaimRow, error)
	LostPayments(ctx context.Context, payments []invoice.Payment) (map[string]invoice.Hash, error)
	ClaimsOfPayments(ctx context.Context, paymentIDs []string, merchantID string, limit int) (map[string][]ledger.ClaimRow, error)
	Decisions(ctx context.Context, f ledger.DecisionFilter) ([]invoice.Decision, error)
	report.Source
	LogState(ctx context.Context, merchantID string) (webhooks.LogState, error)
	AuditEntries(ctx context.Context, f access.AuditFilter) ([]access.Entry, error)
	MerchantStorage(ctx context.Context, merchantID string) (access.Storage, error)
	Requests(ctx context.Context, f access.RequestFilter) ([]access.LoggedRequest, error)
}

// Events is the event log with the delivery schedule. webhooks.Tables and access.Reader document the methods.
type Events interface {
	Events(ctx context.Context, f webhooks.EventFilter) ([]webhooks.EventRow, error)
	EventRecord(ctx context.Context, id string) (webhooks.EventRow, []webhooks.Attempt, error)
	LastSeq(ctx context.Context) (int64, error)
	AuditHead(ctx context.Context) (access.Head, error)
	Changes(ctx context.Context, after int64, limit int) ([]access.ChangeRow, error)
	Listen(ctx context.Context, l *webhooks.Listener) error
	DeleteListener(ctx context.Context, id string) error
	Redeliver(ctx context.Context, eventID string, now time.Time) error
	RedeliverMany(ctx context.Context, f webhooks.RedeliverFilter, now time.Time, limit int) (scheduled, next int64, err error)
}

// Endpoints manages the merchants' webhook endpoints. *webhooks.Directory implements it and documents the errors.
type Endpoints interface {
	View(ctx context.Context, merchantID string) (webhooks.View, error)
	Put(ctx context.Context, merchantID string, set webhooks.Settings) (v webhooks.View, secret string, err error)
	PingMerchant(ctx context.Context, merchantID string) (webhooks.Attempt, error)
	Stage(ctx context.Context, merchantID string) (v webhooks.View, secret string, err error)
	Promote(ctx context.Context, merchantID string) (webhooks.View, error)
	Unstage(ctx context.Context, merchantID string) error
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

// Config is the configuration of an API. All fields but Authenticator, Mails, Providers and PublicURL are required.
type Config struct {
	Ledger    Ledger
	Reader    Reader
	Events    Events
	Endpoints Endpoints
	Merchants *access.MerchantManager
	// Mails sends invoices. It is nil without a mail server.
	Mails *mailer.Mailer
	Links *ledger.PaymentLinkManager
	Keys  *access.KeyManager
	// SignInLinks is required for POST /api/sign-in-links.
	SignInLinks *access.SessionManager
	// Approvals is required for merchants with a policy of approvals.
	Approvals *access.SessionManager
	Nodes     Nodes
	Feed      *webhooks.Feed
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
	// OnProblem, when set, is called for each request that is refused or fails, with the answer.
	OnProblem func(ctx context.Context, p apitypes.Problem)
}

// API serves the JSON interface.
type API struct {
	conf          Config
	chains        map[string]chain.Chain
	providers     map[string]Provider
	pages         *slots          // of lists
	waiting       *slots          // of event streams and requests with wait
	waitingPayers *slots          // of payers' requests with wait, by invoice
	submitted     *limits.Divided // authorizations
	reports       *slots
	pings         *slots
	redelivering  *slots
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
		submitted: limits.NewDivided(limits.Quota{Name: "authorizations", All: AllAuthorizations, OfObject: AuthorizationsOfInvoice, OfClient: AuthorizationsOfClient}, c.Now),
		reports:   slotsOf("reports", MaxOwnReports, MaxReports), exports: slotsOf("exports", MaxOwnExports, MaxExports),
		pings: slotsOf("pings", MaxOwnPings, MaxPings), settling: slotsOf("settling", MaxOwnSettling, MaxSettling),
		redelivering: slotsOf("redelivering", MaxOwnRedelivering, MaxRedelivering),
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

// MethodNotAllowed returns a handler that answers method_not_allowed with allow as the header Allow.
func (a *API) MethodNotAllowed(allow string) http.Handler {
	return a.serve(func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Allow", allow)
		return problemf(apitypes.CodeMethodNotAllowed, "This path has no method %.20q; it has %s.", r.Method, allow)
	})
}

// ForbiddenHost returns a handler that answers forbidden to a request for a foreign host.
func (a *API) ForbiddenHost() http.Handler {
	return a.serve(func(_ http.ResponseWriter, r *http.Request) error {
		return problemf(apitypes.CodeForbidden, "This service does not go by the name %.80q; its operator can add it to http.hosts.", r.Host)
	})
}

// ForbiddenOrigin returns a handler that answers forbidden to a request from a foreign origin.
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

// reader implements Reader by the tables of several packages.
type reader struct {
	ledger.Reader
	reports
	events
	audit
	mails
}

type (
	reports struct{ report.Reader }
	events  struct{ webhooks.Reader }
	audit   struct{ access.Reader }
	mails   struct{ mailer.Reader }
)

// NewReader returns a Reader of a database. It implements SummaryReader, too.
func NewReader(q db.Querier) interface {
	Reader
	SummaryReader
} {
	return reader{ledger.NewReader(q), reports{report.NewReader(q)}, events{webhooks.NewReader(q)}, audit{access.NewReader(q)}, mails{mailer.NewReader(q)}}
}
