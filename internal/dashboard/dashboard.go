// Package dashboard serves the pages on which people see the payments of a merchant and make
// decisions, and on which the operator sees the service.
//
// A page calls the REST interface in this process, on behalf of the person's key. The dashboard can do
// only what the interface permits.
package dashboard

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
)

// Config is the configuration of a Dashboard. All fields are required, but PublicURL may
// be empty, Player nil, and Secure and Open false.
type Config struct {
	// API answers the requests of the REST interface that carry their principal in the
	// context.
	API      http.Handler
	Sessions *access.SessionManager
	Chains   []chain.Chain
	// PublicURL is the base of the addresses of payers' pages, without a trailing slash. If it is empty,
	// the base is the address at which the person reached the dashboard.
	PublicURL string
	// Open allows a person to sign in without a key, at a development service.
	Open bool
	// Player plays scenarios at a development service. It is nil elsewhere.
	Player Player
	// Secure is set if browsers reach the dashboard only by HTTPS.
	Secure bool
	// Feed wakes open pages. Without it, they do not change after they were loaded. Run must be called
	// with it.
	Feed   Feed
	Now    func() time.Time
	Logger *slog.Logger
}

// Dashboard serves the pages.
type Dashboard struct {
	cfg     Config
	playing sync.Mutex // held while a scenario is played
	service service
	chains  map[string]chain.Chain
	live    *liveStreams // nil without a feed
}

// New returns a Dashboard. It panics if a required field is missing.
func New(c Config) *Dashboard {
	if c.API == nil || c.Sessions == nil || c.Now == nil || c.Logger == nil {
		panic("dashboard: Config.API, Sessions, Now and Logger are required")
	}
	d := &Dashboard{cfg: c, service: service{c.API}, chains: make(map[string]chain.Chain, len(c.Chains))}
	if c.Feed != nil {
		d.live = newLiveStreams(c.Feed, c.Now)
	}
	for _, ch := range c.Chains {
		d.chains[ch.Key] = ch
	}
	return d
}

// Route is a route of the dashboard.
type Route struct {
	Pattern string // method and path, as http.ServeMux takes it
	Access  Access
	Scope   access.Scope // the person's key must have it, with Person
	Handler http.Handler
	Long    bool // requests may take longer than others
}

// Access is the kind of person that may use a route.
type Access string

// Who may use a route.
const (
	Anybody  Access = "none"     // without a session
	Person   Access = "session"  // signed in with a key that has the route's scope, if any
	Operator Access = "operator" // signed in with a key of the operator
)

// Routes returns all routes. Unless a route is for Anybody, the caller wraps it in WithSession, which
// finds the session, and then in Allow, which checks it.
func (d *Dashboard) Routes() []Route {
	routes := []Route{
		{Pattern: "GET /dashboard", Access: Person, Handler: d.serve(d.home)},
		{Pattern: "GET /dashboard/sign-in", Access: Anybody, Handler: d.serve(d.signInPage)},
		{Pattern: "POST /dashboard/sign-in", Access: Anybody, Handler: d.serve(d.signIn)},
		{Pattern: "POST /dashboard/sign-out", Access: Person, Handler: d.serve(d.signOut)},
		{Pattern: "GET /dashboard/confirm", Access: Person, Handler: d.serve(d.confirmPage)},
		{Pattern: "POST /dashboard/confirm", Access: Person, Handler: d.serve(d.confirm)},
		{Pattern: "POST /dashboard/language", Access: Person, Handler: d.serve(d.setLanguage)},
		{Pattern: "GET " + pathLive, Access: Person, Handler: d.serve(d.changes), Long: true},
		{Pattern: "GET /dashboard/sessions", Access: Person, Handler: d.serve(d.sessions)},
		{Pattern: "POST /dashboard/sessions/{id}/end", Access: Person, Handler: d.serve(d.endSession)},
	}
	routes = append(routes, d.invoiceRoutes()...)
	routes = append(routes, d.filterRoutes()...)
	routes = append(routes, d.inboxRoutes()...)
	routes = append(routes, d.transferRoutes()...)
	routes = append(routes, d.moneyRoutes()...)
	routes = append(routes, d.submissionRoutes()...)
	routes = append(routes, d.linkRoutes()...)
	routes = append(routes, d.developerRoutes()...)
	routes = append(routes, d.operatorRoutes()...)
	routes = append(routes, d.scenarioRoutes()...)
	for _, f := range files {
		routes = append(routes, Route{Pattern: "GET " + f.Path, Access: Anybody, Handler: d.file(f)})
	}
	return routes
}

// invoiceRoutes returns the routes of invoices.
func (d *Dashboard) invoiceRoutes() []Route {
	return []Route{
		{Pattern: "GET /dashboard/invoices", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(invoiceList.show(d))},
		{Pattern: "GET /dashboard/invoices.csv", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(invoiceList.export(d)), Long: true},
		{Pattern: "GET /dashboard/search", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(d.search)},
		{Pattern: "GET /dashboard/search/suggestions", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(d.suggest)},
		{Pattern: "GET /dashboard/invoices/new", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.newInvoice)},
		{Pattern: "POST /dashboard/invoices/new", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.createInvoice)},
		{Pattern: "GET /dashboard/invoices/{id}/edit", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.editInvoice)},
		{Pattern: "POST /dashboard/invoices/{id}/edit", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.changeInvoice)},
		{Pattern: "GET /dashboard/invoices/{id}", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(d.invoice)},
		{Pattern: "GET /dashboard/invoices/{id}/json", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(d.invoiceJSON)},
		{Pattern: "POST /dashboard/invoices/{id}/finalize", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.finalizeInvoice)},
		{Pattern: "POST /dashboard/invoices/{id}/void", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.voidInvoice)},
		{Pattern: "POST /dashboard/invoices/{id}/delete", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.deleteInvoice)},
	}
}

// moneyRoutes returns the routes of customers and statements.
func (d *Dashboard) moneyRoutes() []Route {
	return []Route{
		{Pattern: "GET /dashboard/customers", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(customerList.show(d))},
		{Pattern: "POST /dashboard/customers/erase", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.confirmed(d.eraseCustomer, func(r *http.Request) string {
			v := visitOf(r)
			return v.CustomerPage(v.merchant, r.FormValue("customer"))
		}))},
		{Pattern: "GET /dashboard/customers.csv", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(customerList.export(d)), Long: true},
		{Pattern: "GET /dashboard/customers/customer", Access: Person, Scope: access.InvoicesRead, Handler: d.serve(d.customer)},
		{Pattern: "GET /dashboard/statement", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(d.statement), Long: true},
		{Pattern: "GET /dashboard/statement.csv", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(d.exportStatement), Long: true},
	}
}

// transferRoutes returns the routes of payments and refunds.
func (d *Dashboard) transferRoutes() []Route {
	return []Route{
		{Pattern: "GET /dashboard/payments", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(paymentList.show(d))},
		{Pattern: "GET /dashboard/payments.csv", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(paymentList.export(d)), Long: true},
		{Pattern: "GET /dashboard/payments/{id}", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(d.payment)},
		{Pattern: "POST /dashboard/payments/{id}/attribute", Access: Person, Scope: access.AttributionWrite, Handler: d.serve(d.attribute)},
		{Pattern: "GET /dashboard/payments/{id}/refund", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.prepareRefundPage)},
		{Pattern: "POST /dashboard/payments/{id}/refund", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.prepareRefund)},
		{Pattern: "GET /dashboard/refunds", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(refundList.show(d))},
		{Pattern: "GET /dashboard/refunds.csv", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(refundList.export(d)), Long: true},
		{Pattern: "GET /dashboard/refunds/{id}", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(d.refund)},
		{Pattern: "GET /dashboard/refunds/{id}/safe.json", Access: Person, Scope: access.PaymentsRead, Handler: d.serve(d.safeFile)},
		{Pattern: "POST /dashboard/refunds/{id}/cancel", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.changeRefund("cancel"))},
		{Pattern: "POST /dashboard/refunds/{id}/approve", Access: Person, Scope: access.InvoicesWrite, Handler: d.serve(d.changeRefund("approve"))},
	}
}
