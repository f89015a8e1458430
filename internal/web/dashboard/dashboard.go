// Package dashboard serves the pages on which people see the payments of a merchant and make
// decisions, and on which the operator sees the service.
//
// A page calls the REST interface in this process, on behalf of the person's key. The dashboard can do
// only what the interface permits.
package dashboard

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/identity"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/web/webpage"
)

// Config is the configuration of a Dashboard. All fields are required, but PublicURL may
// be empty, Player nil, and Secure, MailsInvoices and Open false.
type Config struct {
	// API answers the requests of the REST interface that carry their principal in the context.
	API      http.Handler
	Sessions *access.SessionManager
	Chains   []chain.Chain
	// PublicURL is the base of the addresses of payers' pages, without a trailing slash. If it is empty,
	// the base is the address at which the person reached the dashboard.
	PublicURL string
	// Open allows a person to sign in without a key, at a development service.
	Open bool
	// MailsInvoices is set if the service can send invoices.
	MailsInvoices bool
	// Player plays scenarios at a development service. It is nil elsewhere.
	Player Player
	// AddressDelay is the delay of a change of a merchant's addresses.
	AddressDelay time.Duration
	// Mail sends links that sign in to addresses below URL. It is nil without an SMTP server.
	Mail *mailer.Direct
	// Provider signs people in by OpenID Connect. It is nil without one.
	Provider *identity.Provider
	// URL is the base of the addresses of the dashboard, without a trailing slash; empty if it is not known.
	URL string
	// Secure is set if browsers reach the dashboard only by HTTPS.
	Secure bool
	// Feed wakes open pages. Without it, they do not change after they were loaded. Run must be called with it.
	Feed   webpage.Feed
	Now    func() time.Time
	Logger *slog.Logger
}

// Dashboard serves the pages.
type Dashboard struct {
	*webpage.Pages

	cfg     Config
	playing sync.Mutex // held while a scenario is played
	service service
	mails   mailLimits
	chains  map[string]chain.Chain
	live    *liveStreams // nil without a feed
}

// New returns a Dashboard. It panics if a required field is missing.
func New(c Config) *Dashboard {
	if c.API == nil || c.Sessions == nil || c.Now == nil || c.Logger == nil {
		panic("dashboard: Config.API, Sessions, Now and Logger are required")
	}
	d := &Dashboard{cfg: c, service: service{c.API}, mails: newMailLimits(c.Now), chains: make(map[string]chain.Chain, len(c.Chains))}
	d.Pages = newPages(d)
	if c.Feed != nil {
		d.live = newLiveStreams(c.Feed, c.Now)
	}
	for _, ch := range c.Chains {
		d.chains[ch.Key] = ch
	}
	return d
}

// Routes returns all routes. If a route needs a session, the caller wraps it in WithSession, which finds
// the session, and then in Allow, which checks it.
func (d *Dashboard) Routes() []webpage.Route {
	routes := []webpage.Route{
		d.route("GET /dashboard", "", d.home),
		d.route("GET /dashboard/sign-in", "", d.signInPage, webpage.Open),
		d.route("POST /dashboard/sign-in", "", d.signIn, webpage.Open, webpage.Isolated),
		d.route("POST /dashboard/sign-out", "", d.signOut, webpage.Isolated),
		d.route("GET /dashboard/confirm", "", d.confirmPage),
		d.route("POST /dashboard/confirm", "", d.confirm, webpage.Isolated),
		d.route("POST /dashboard/language", "", d.setLanguage, webpage.Isolated),
		d.route("GET "+pathLive, "", d.changes, webpage.Long),
		d.route("GET /dashboard/sessions", "", d.sessions),
		d.route("POST /dashboard/sessions/{id}/end", "", d.endSession),
	}
	routes = slices.Concat(routes, d.peopleRoutes(), d.passkeyRoutes(), d.providerRoutes(), d.invoiceRoutes(), d.filterRoutes(), d.inboxRoutes(), d.transferRoutes(), d.moneyRoutes(),
		d.submissionRoutes(), d.linkRoutes(), d.developerRoutes(), d.approvalRoutes(), d.operatorRoutes(), d.scenarioRoutes())
	return append(routes, d.route("GET /dashboard/static/{hash}/{file}", "", d.file, webpage.Open))
}

// file answers with a file that pages load.
func (d *Dashboard) file(w http.ResponseWriter, r *http.Request) error {
	return d.SendFile(w, r, files)
}

// route returns a route. It needs a session of a person with the scope, unless an option changes that.
func (d *Dashboard) route(pattern string, scope access.Scope, h handler, options ...webpage.RouteOption) webpage.Route {
	r := webpage.Route{Pattern: pattern, Door: webpage.APIDoor, Credential: webpage.SessionCredential, Scope: scope, Handler: d.serve(h)}
	return r.With(options...)
}

// here returns the function for confirmed that leads back to the page of a form, which is posted to an
// address that ends with a suffix.
func here(suffix string) func(r *http.Request) string {
	return func(r *http.Request) string { return visitOf(r).Link(strings.TrimSuffix(r.URL.Path, suffix)) }
}

// forOperator is for routes that need a session of the operator.
func forOperator(r *webpage.Route) { r.Credential = webpage.OperatorSession }

// invoiceRoutes returns the routes of invoices.
func (d *Dashboard) invoiceRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("GET /dashboard/invoices", access.InvoicesRead, invoiceList.show(d)),
		d.route("GET /dashboard/invoices.csv", access.InvoicesRead, invoiceList.export(d), webpage.Long),
		d.route("GET /dashboard/search", access.InvoicesRead, d.search),
		d.route("GET /dashboard/search/suggestions", access.InvoicesRead, d.suggest),
		d.route("GET /dashboard/invoices/new", access.InvoicesWrite, d.newInvoice),
		d.route("POST /dashboard/invoices/new", access.InvoicesWrite, d.saveInvoice),
		d.route("GET /dashboard/invoices/{id}/edit", access.InvoicesWrite, d.editInvoice),
		d.route("POST /dashboard/invoices/{id}/edit", access.InvoicesWrite, d.saveInvoice),
		d.route("GET /dashboard/invoices/{id}", access.InvoicesRead, showing(d.showInvoice)),
		d.route("GET /dashboard/invoices/{id}/json", access.InvoicesRead, d.object("/api/invoices")),
		d.route("POST /dashboard/invoices/{id}/finalize", access.InvoicesWrite, d.act(http.MethodPost, "/finalize")),
		d.route("POST /dashboard/invoices/{id}/void", access.InvoicesWrite, d.act(http.MethodPost, "/void")),
		d.route("POST /dashboard/invoices/{id}/send", access.InvoicesWrite, d.sendInvoice),
		d.route("POST /dashboard/invoices/{id}/reminders/drop", access.InvoicesWrite, d.act(http.MethodDelete, "/mails")), // that are not due yet
		d.route("POST /dashboard/invoices/{id}/delete", access.InvoicesWrite, d.act(http.MethodDelete, "")),
	}
}

// moneyRoutes returns the routes of customers and statements.
func (d *Dashboard) moneyRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("GET /dashboard/customers", access.InvoicesRead, customerList.show(d)),
		d.route("POST /dashboard/customers/erase", access.InvoicesWrite, d.confirmed(d.eraseCustomer, func(r *http.Request) string {
			v := visitOf(r)
			return v.CustomerPage(v.merchant, r.FormValue("customer"))
		})),
		d.route("GET /dashboard/customers.csv", access.InvoicesRead, customerList.export(d), webpage.Long),
		d.route("GET /dashboard/customers/customer", access.InvoicesRead, ofMerchant(d.customer)),
		d.route("GET /dashboard/statement", access.PaymentsRead, d.statement, webpage.Long),
		d.route("GET /dashboard/statement.csv", access.PaymentsRead, d.exportStatement, webpage.Long),
	}
}

// transferRoutes returns the routes of payments and refunds.
func (d *Dashboard) transferRoutes() []webpage.Route {
	return []webpage.Route{
		d.route("GET /dashboard/payments", access.PaymentsRead, paymentList.show(d)),
		d.route("GET /dashboard/payments.csv", access.PaymentsRead, paymentList.export(d), webpage.Long),
		d.route("GET /dashboard/payments/{id}", access.PaymentsRead, showing(d.showPayment)),
		d.route("GET /dashboard/payments/{id}/attribute", access.AttributionWrite, d.confirmAttribution),
		d.route("GET /dashboard/payments/{id}/refund", access.InvoicesWrite, d.prepareRefundPage),
		d.route("POST /dashboard/payments/{id}/refund", access.InvoicesWrite, d.prepareRefund, webpage.CallsNodes),
		d.route("GET /dashboard/refunds", access.PaymentsRead, refundList.show(d)),
		d.route("GET /dashboard/refunds.csv", access.PaymentsRead, refundList.export(d), webpage.Long),
		d.route("GET /dashboard/refunds/{id}", access.PaymentsRead, d.refund, webpage.CallsNodes),
		d.route("GET /dashboard/refunds/{id}/safe.json", access.PaymentsRead, d.safeFile),
		d.route("POST /dashboard/refunds/{id}/cancel", access.InvoicesWrite, d.changeRefund("cancel")),
		d.route("POST /dashboard/refunds/{id}/approve", access.InvoicesWrite, d.confirmed(d.changeRefund("approve"), here("/approve"))),
	}
}

// developerRoutes returns the routes of the merchant, people, keys, the webhook endpoint, requests and events.
func (d *Dashboard) developerRoutes() []webpage.Route {
	// dangerous wraps actions that grant or revoke access, and leads back to a page.
	dangerous := func(pattern string, scope access.Scope, page string, h handler) webpage.Route {
		back := func(r *http.Request) string { return visitOf(r).Link(page) }
		return d.route(pattern, scope, d.confirmed(h, back))
	}
	return []webpage.Route{
		d.route("GET /dashboard/keys", access.KeysWrite, d.keys),
		d.route("GET /dashboard/keys/new", access.KeysWrite, d.confirmed(d.newKey, func(r *http.Request) string {
			return visitOf(r).Link("/dashboard/keys/new", "for", r.FormValue("for"))
		})),
		dangerous("POST /dashboard/keys", access.KeysWrite, "/dashboard/keys", d.createKey),
		d.route("GET /dashboard/keys/{id}", access.KeysWrite, showing(d.showKey)),
		dangerous("POST /dashboard/keys/{id}/rotate", access.KeysWrite, "/dashboard/keys", d.rotateKey),
		dangerous("POST /dashboard/keys/{id}/revoke", access.KeysWrite, "/dashboard/keys", d.revokeKey),
		dangerous("POST /dashboard/keys/{id}/link", access.KeysWrite, "/dashboard/keys", d.linkKey),
		d.route("GET /dashboard/settings", access.InvoicesRead, d.settings),
		d.route("POST /dashboard/settings", access.KeysWrite, ofMerchant(d.setProfile)),
		dangerous("POST /dashboard/settings/rules", access.KeysWrite, "/dashboard/settings", ofMerchant(d.setRules)),
		dangerous("POST /dashboard/settings/defaults", access.KeysWrite, "/dashboard/settings", ofMerchant(d.setDefaults)),
		d.route("GET /dashboard/settings/logo", access.InvoicesRead, ofMerchant(d.logo)),
		d.route("POST /dashboard/settings/logo", access.KeysWrite, ofMerchant(d.setLogo), webpage.BodyUpTo(LogoFormBytes, MaxLogoForm)),
		d.route("POST /dashboard/settings/logo/remove", access.KeysWrite, ofMerchant(d.removeLogo)),
		dangerous("POST /dashboard/settings/addresses", access.KeysWrite, "/dashboard/settings", ofMerchant(d.setAddresses)),
		d.route("GET /dashboard/webhook", access.EventsRead, showing(d.showWebhook)),
		dangerous("POST /dashboard/webhook", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.setWebhook)),
		d.route("POST /dashboard/webhook/ping", access.WebhooksWrite, ofMerchant(d.pingWebhook)),
		dangerous("POST /dashboard/webhook/secret", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.stageSecret)),
		dangerous("POST /dashboard/webhook/secret/promote", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.promoteSecret)),
		dangerous("POST /dashboard/webhook/secret/drop", access.WebhooksWrite, "/dashboard/webhook", ofMerchant(d.dropSecret)),
		d.route("GET /dashboard/requests", access.EventsRead, d.requests),
		d.route("GET /dashboard/events", access.EventsRead, d.events),
		d.route("GET /dashboard/events/redeliver", access.EventsRedeliver, d.redeliverPage),
		d.route("POST /dashboard/events/redeliver", access.EventsRedeliver, d.redeliverFailed),
		d.route("GET /dashboard/events/{id}", access.EventsRead, showing(d.showEvent)),
		d.route("GET /dashboard/events/{id}/json", access.EventsRead, d.object("/api/events")),
		d.route("POST /dashboard/events/{id}/redeliver", access.EventsRedeliver, d.redeliverEvent),
	}
}

// merchantChoice is a page on which the operator chooses the merchant for another page.
type merchantChoice struct {
	Path      string   // of the other page
	Merchants []string // the first ones, as suggestions
}

// chooseMerchant has the operator choose a merchant.
func (d *Dashboard) chooseMerchant(w http.ResponseWriter, r *http.Request, title string) error {
	list := get[apitypes.MerchantList](d, r, "/api/merchants", limited(nil))
	choice := merchantChoice{visitOf(r).here, db.Each(list.Merchants, func(m apitypes.Merchant) string { return m.ID })}
	return d.render(w, r, http.StatusOK, "choosemerchant.html", title, choice)
}
