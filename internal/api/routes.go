package api

import (
	"net/http"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// Route is a route of the interface.
type Route struct {
	// Pattern is the method and path, as http.ServeMux takes it.
	Pattern string
	// Scope is what a caller's key must have. It is empty for a route that needs no key.
	Scope access.Scope
	// Public routes have no scope and need no signature.
	Public bool
	// Parameters are the names of the query's parameters. A request with others is refused.
	Parameters []string
	Handler    http.Handler
	long       func(*http.Request) bool // see IsLong; nil if no request is
}

// longRoutes are the routes with long requests, and a function that reports whether a request is long.
var longRoutes = map[string]func(*http.Request) bool{
	"GET /api/events/stream": func(*http.Request) bool { return true },
	"GET /api/invoices":      wantsCSV, "GET /api/payments": wantsCSV, "GET /api/events": wantsCSV, "GET /api/refunds": wantsCSV, "GET /api/payments/{id}/refunds": wantsCSV,
	"GET /api/customers": wantsCSV, "GET /api/payment-links": wantsCSV,
	patternVerifyAudit:                  func(*http.Request) bool { return true },
	"GET /api/reports/settlement":       func(*http.Request) bool { return true },
	"GET /api/invoices/{id}":            func(r *http.Request) bool { return r.URL.Query().Has("wait") },
	"POST /checkout/{id}/authorization": func(r *http.Request) bool { return r.URL.Query().Has("wait") },
	"GET /checkout/{id}/authorization":  func(r *http.Request) bool { return r.URL.Query().Has("wait") },
}

// standbyRoutes are the routes with lists and sums that a standby of the database may serve.
//
// A single object costs the primary as much as reading the position that the standby must have. Events
// and audit entries are followed by cursor: a standby may have an entry that a failover loses. The
// others are about access, or decide which action follows.
var standbyRoutes = map[string]bool{
	"GET /api/invoices": true, "GET /api/invoices/{id}/payments": true, "GET /api/invoices/{id}/timeline": true,
	"GET /api/payments": true, "GET /api/payments/{id}/refunds": true, "GET /api/refunds": true, "GET /api/claims": true,
	"GET /api/customers":       true,
	"GET /api/reports/summary": true, "GET /api/reports/invoices": true, "GET /api/reports/statement": true, "GET /api/reports/settlement": true,
}

// publicRoutes are the routes for payers' programs, which need neither a key nor a
// signature.
var publicRoutes = map[string]bool{"POST /checkout/{id}/authorization": true, "GET /checkout/{id}/authorization": true, patternPayInvoice: true}

// Routes returns all routes. The caller handles panics and requests without a route, with
// NotFound, MethodNotAllowed and WriteError.
func (a *API) Routes() []Route {
	var routes []Route
	for _, r := range a.table() {
		routes = append(routes, a.route(r.pattern, r.scope, r.handler))
	}
	return routes
}

// entry is a route with its scope.
type entry struct {
	pattern string
	scope   access.Scope
	handler handler
}

// table returns all routes.
func (a *API) table() []entry {
	return slices.Concat(a.moneyTable(), a.merchantTable(), a.operatorTable(), a.payerTable())
}

// payerTable returns the routes of transfer providers, of payers' programs, and of the merchants that
// charge them by x402.
func (a *API) payerTable() []entry {
	return []entry{
		{"HEAD /api/webhooks/{provider}", "", a.probeNotices},
		{"POST /api/webhooks/{provider}", "", a.receiveNotice}, // the provider signs its notices
		{"POST /checkout/{id}/authorization", "", a.submitAuthorization},
		{"GET /checkout/{id}/authorization", "", a.getAuthorization},
		{patternPayInvoice, "", a.payInvoice},
		{"GET /x402/supported", access.InvoicesRead, a.x402Supported},
		{"POST /x402/verify", access.InvoicesRead, a.x402Verify},
		{"POST /x402/settle", access.InvoicesWrite, a.x402Settle},
	}
}

// moneyTable returns the routes for invoices, payments and refunds.
func (a *API) moneyTable() []entry {
	return []entry{
		{"POST /api/invoices", access.InvoicesWrite, a.createInvoice},
		{"GET /api/invoices", access.InvoicesRead, a.listInvoices},
		{"GET /api/invoices/{id}", access.InvoicesRead, a.getInvoice},
		{"PATCH /api/invoices/{id}", access.InvoicesWrite, a.updateInvoice},
		{"DELETE /api/invoices/{id}", access.InvoicesWrite, a.deleteInvoice},
		{"POST /api/invoices/{id}/finalize", access.InvoicesWrite, a.finalizeInvoice},
		{"POST /api/invoices/{id}/void", access.InvoicesWrite, a.voidInvoice},
		{"GET /api/invoices/{id}/payments", access.PaymentsRead, a.listInvoicePayments},
		{"GET /api/invoices/{id}/timeline", access.InvoicesRead, a.listTimeline},
		{"GET /api/payments", access.PaymentsRead, a.listPayments},
		{"GET /api/payments/{id}", access.PaymentsRead, a.getPayment},
		{"POST /api/payments/{id}/attribution", access.AttributionWrite, a.attributePayment},
		{"POST /api/payments/{id}/refunds", access.InvoicesWrite, a.prepareRefund},
		{"GET /api/payments/{id}/refunds", access.PaymentsRead, a.listPaymentRefunds},
		{"GET /api/refunds", access.PaymentsRead, a.listRefunds},
		{"GET /api/refunds/{id}", access.PaymentsRead, a.getRefund},
		{"POST /api/refunds/{id}/cancel", access.InvoicesWrite, a.cancelRefund},
		{"POST /api/refunds/{id}/approve", access.InvoicesWrite, a.approveRefund},
		{"POST /api/refunds/{id}/submissions", access.InvoicesWrite, a.submitRefund},
		{"PUT /api/refunds/{id}/submissions/{submissionId}", access.InvoicesWrite, a.recordTransaction},
		{"POST /api/refunds/{id}/submissions/{submissionId}/withdraw", access.InvoicesWrite, a.withdrawSubmission},
		{"GET /api/claims", access.PaymentsRead, a.listClaims},
		{"GET /api/inbox", access.PaymentsRead, a.listInbox},
		{"GET /api/inbox/counts", access.PaymentsRead, a.countInbox},
		{"GET /api/inbox/decisions", access.PaymentsRead, a.listDecisions},
		{"POST /api/inbox/decisions", access.AttributionWrite, a.decide},
		{"POST /api/inbox/decisions/{id}/undo", access.AttributionWrite, a.undoDecision},
		{"POST /api/payment-links", access.InvoicesWrite, a.createPaymentLink},
		{"GET /api/payment-links", access.InvoicesRead, a.listPaymentLinks},
		{"GET /api/payment-links/{id}", access.InvoicesRead, a.getPaymentLink},
		{"PATCH /api/payment-links/{id}", access.InvoicesWrite, a.updatePaymentLink},
		{"GET /api/customers", access.InvoicesRead, a.listCustomers},
		{"POST /api/customers/erase", access.InvoicesWrite, a.eraseCustomer},
	}
}

// merchantTable returns the other routes of merchants and the operator.
func (a *API) merchantTable() []entry {
	return []entry{
		{"GET /api/events", access.EventsRead, a.listEvents},
		{"POST /api/events/redeliver", access.EventsRedeliver, a.redeliverEvents},
		{"GET /api/events/stream", access.EventsRead, a.streamEvents},
		{"GET /api/events/{id}", access.EventsRead, a.getEvent},
		{"POST /api/events/{id}/redeliver", access.EventsRedeliver, a.redeliverEvent},
		{"GET /api/reports/summary", access.PaymentsRead, a.summary},
		{"GET /api/reports/invoices", access.InvoicesRead, a.invoiceReport},
		{"GET /api/reports/statement", access.PaymentsRead, a.statement},
		{"GET /api/reports/settlement", access.PaymentsRead, a.settlementReport},
		{"POST /api/keys", access.KeysWrite, a.createKey},
		{"GET /api/keys", access.KeysWrite, a.listKeys},
		{"POST /api/keys/{id}/rotate", access.KeysWrite, a.rotateKey},
		{patternRevokeKey, access.KeysWrite, a.revokeKey},
		{"POST /api/sign-in-links", access.InvoicesRead, a.createSignInLink},
		{"GET /api/audit", access.EventsRead, a.listAudit},
		{"GET /api/requests", access.EventsRead, a.listRequests},
		{"GET /api/merchants", access.InvoicesRead, a.listMerchants},
		{"POST /api/merchants", access.KeysWrite, a.createMerchant},
		{"GET /api/merchants/{id}", access.InvoicesRead, a.getMerchant},
		{"PATCH /api/merchants/{id}", access.KeysWrite, a.updateMerchant},
		{"GET /api/merchants/{id}/logo", access.InvoicesRead, a.getLogo},
		{"PUT /api/merchants/{id}/logo", access.KeysWrite, a.putLogo},
		{"DELETE /api/merchants/{id}/logo", access.KeysWrite, a.deleteLogo},
		{"DELETE /api/merchants/{id}/addresses/{address}", access.KeysWrite, a.releaseAddress},
		{"GET /api/merchants/{id}/webhook", access.EventsRead, a.getWebhook},
		{"PUT /api/merchants/{id}/webhook", access.WebhooksWrite, a.putWebhook},
		{"POST /api/merchants/{id}/webhook/ping", access.WebhooksWrite, a.pingWebhook},
		{"POST /api/merchants/{id}/webhook/secret", access.WebhooksWrite, a.stageSecret},
		{"DELETE /api/merchants/{id}/webhook/secret", access.WebhooksWrite, a.dropSecret},
		{"POST /api/merchants/{id}/webhook/secret/promote", access.WebhooksWrite, a.promoteSecret},
	}
}

// route returns the route of a pattern.
func (a *API) route(pattern string, scope access.Scope, h handler) Route {
	r := Route{Pattern: pattern, Scope: scope, Parameters: parameters[pattern], Public: publicRoutes[pattern], long: longRoutes[pattern]}
	if scope != "" || r.Public { // a provider chose the URL of its notices
		h = checked(r.Parameters, h)
	}
	if standbyRoutes[pattern] {
		h = onStandby(h)
	}
	r.Handler = a.serve(h)
	return r
}

// onStandby makes a standby of the database serve a handler's reads, if there is one.
func onStandby(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return h(w, r.WithContext(db.OnStandby(r.Context())))
	}
}
