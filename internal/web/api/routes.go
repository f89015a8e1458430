package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/web/webpage"
	"github.com/quittance/quittance/internal/webhooks"
)

// Names of parameters that many lists take: of pages, and of CSV.
const (
	ofPage = " limit cursor"
	ofCSV  = " timezone bom separator decimal"
)

// Routes returns all routes. The caller handles panics and requests without a route, with
// NotFound, MethodNotAllowed and WriteError.
func (a *API) Routes() []webpage.Route {
	return slices.Concat(a.moneyRoutes(), a.merchantRoutes(), a.operatorRoutes(), a.payerRoutes())
}

// payerRoutes returns the routes of transfer providers, of payers' programs, and of the merchants that
// charge them by x402.
func (a *API) payerRoutes() []webpage.Route {
	return []webpage.Route{
		a.route("HEAD /api/webhooks/{provider}", "", a.probeNotices, webpage.Signed),
		a.route("POST /api/webhooks/{provider}", "", a.receiveNotice, webpage.Signed),
		a.route("POST /checkout/{id}/authorization", "", a.submitAuthorization, webpage.Public, webpage.CallsNodes,
			webpage.LongIf(waits), webpage.Takes("wait")),
		a.route("GET /checkout/{id}/authorization", "", a.getAuthorization, webpage.Public, webpage.LongIf(waits),
			webpage.Takes("authorization wait")),
		a.route("GET /x402/invoices/{id}", "", a.payInvoice, webpage.Public, webpage.CallsNodes),
		a.route("GET /x402/supported", access.InvoicesRead, a.x402Supported),
		a.route("POST /x402/verify", access.InvoicesRead, a.x402Verify, webpage.CallsNodes),
		a.route("POST /x402/settle", access.InvoicesWrite, a.x402Settle, webpage.Idempotent, webpage.CallsNodes),
	}
}

// moneyRoutes returns the routes for invoices, payments and refunds.
func (a *API) moneyRoutes() []webpage.Route {
	return []webpage.Route{
		a.route("POST /api/invoices", access.InvoicesWrite, takingOnce[apitypes.CreateInvoiceRequest](a.createInvoice), webpage.Idempotent),
		a.route("GET /api/invoices", access.InvoicesRead, a.listInvoices, webpage.Standby, webpage.LongIf(wantsCSV),
			webpage.Takes("q merchantId status customer reference metadata[key] exception amount to createdAfter createdBefore"+ofPage+ofCSV)),
		a.route("GET /api/invoices/{id}", access.InvoicesRead, a.getInvoice, webpage.LongIf(waits),
			webpage.Takes("wait status")),
		a.route("PATCH /api/invoices/{id}", access.InvoicesWrite, taking[updatedInvoice](a.updateInvoice)),
		a.route("DELETE /api/invoices/{id}", access.InvoicesWrite, a.deleteInvoice),
		a.route("POST /api/invoices/{id}/finalize", access.InvoicesWrite, a.finalizeInvoice),
		a.route("POST /api/invoices/{id}/void", access.InvoicesWrite, a.voidInvoice),
		a.route("GET /api/invoices/{id}/mails", access.InvoicesRead, a.listMails, webpage.Standby),
		a.route("POST /api/invoices/{id}/mails", access.InvoicesWrite, taking[apitypes.SendInvoiceRequest](a.sendInvoice)),
		a.route("DELETE /api/invoices/{id}/mails", access.InvoicesWrite, a.dropReminders),
		a.route("GET /api/invoices/{id}/payments", access.PaymentsRead, a.listInvoicePayments, webpage.Standby,
			webpage.Takes(ofPage+ofCSV)),
		a.route("GET /api/invoices/{id}/timeline", access.InvoicesRead, a.listTimeline, webpage.Standby,
			webpage.Takes(ofPage)),
		a.route("GET /api/payments", access.PaymentsRead, a.listPayments, webpage.Standby, webpage.LongIf(wantsCSV),
			webpage.Takes("q merchantId chainKey invoiceId txHash from to amount confirmedAfter confirmedBefore include candidates"+ofPage+ofCSV)),
		a.route("GET /api/payments/{id}", access.PaymentsRead, a.getPayment),
		a.route("POST /api/payments/{id}/attribution", access.AttributionWrite, taking[apitypes.AttributePaymentRequest](a.attributePayment)),
		a.route("POST /api/payments/{id}/refunds", access.InvoicesWrite, takingOnce[apitypes.PrepareRefundRequest](a.prepareRefund), webpage.Idempotent,
			webpage.CallsNodes),
		a.route("GET /api/payments/{id}/refunds", access.PaymentsRead, a.listPaymentRefunds, webpage.Standby,
			webpage.LongIf(wantsCSV), webpage.Takes("status"+ofPage+ofCSV)),
		a.route("GET /api/refunds", access.PaymentsRead, a.listRefunds, webpage.Standby, webpage.LongIf(wantsCSV),
			webpage.Takes("merchantId paymentId invoiceId txHash status chainKey"+ofPage+ofCSV)),
		a.route("GET /api/refunds/{id}", access.PaymentsRead, a.getRefund, webpage.Takes("include"), webpage.CallsNodes),
		a.route("POST /api/refunds/{id}/cancel", access.InvoicesWrite, a.cancelRefund),
		a.route("POST /api/refunds/{id}/approve", access.InvoicesWrite, taking[apitypes.ApproveRefundRequest](a.approveRefund)),
		a.route("POST /api/refunds/{id}/submissions", access.InvoicesWrite, takingOnce[apitypes.SubmitRefundRequest](a.submitRefund), webpage.Idempotent),
		a.route("PUT /api/refunds/{id}/submissions/{submissionId}", access.InvoicesWrite, taking[apitypes.RecordTransactionRequest](a.recordTransaction), webpage.CallsNodes),
		a.route("POST /api/refunds/{id}/submissions/{submissionId}/withdraw", access.InvoicesWrite,
			a.withdrawSubmission, webpage.Takes("checkedInWallet"), webpage.CallsNodes),
		a.route("GET /api/claims", access.PaymentsRead, a.listClaims, webpage.Standby,
			webpage.Takes("merchantId paymentId"+ofPage)),
		a.route("GET /api/inbox", access.PaymentsRead, a.listInbox, webpage.Takes("merchantId kind objectId"+ofPage)),
		a.route("GET /api/inbox/counts", access.PaymentsRead, a.countInbox, webpage.Takes("merchantId")),
		a.route("GET /api/inbox/decisions", access.PaymentsRead, a.listDecisions,
			webpage.Takes("merchantId objectId"+ofPage)),
		a.route("POST /api/inbox/decisions", access.AttributionWrite, taking[apitypes.DecideRequest](a.decide)),
		a.route("POST /api/inbox/decisions/{id}/undo", access.AttributionWrite, a.undoDecision),
		a.route("POST /api/payment-links", access.InvoicesWrite, takingOnce[apitypes.CreatePaymentLinkRequest](a.createPaymentLink), webpage.Idempotent),
		a.route("GET /api/payment-links", access.InvoicesRead, a.listPaymentLinks, webpage.LongIf(wantsCSV),
			webpage.Takes("merchantId slug archived"+ofPage+ofCSV)),
		a.route("GET /api/payment-links/{id}", access.InvoicesRead, a.getPaymentLink),
		a.route("PATCH /api/payment-links/{id}", access.InvoicesWrite, taking[updatedLink](a.updatePaymentLink)),
		a.route("GET /api/customers", access.InvoicesRead, a.listCustomers, webpage.Standby, webpage.LongIf(wantsCSV),
			webpage.Takes("q merchantId"+ofPage+ofCSV)),
		a.route("POST /api/customers/erase", access.InvoicesWrite, takingOnce[apitypes.EraseCustomerRequest](a.eraseCustomer), webpage.Idempotent),
	}
}

// merchantRoutes returns the other routes of merchants and the operator.
func (a *API) merchantRoutes() []webpage.Route {
	return []webpage.Route{
		a.route("GET /api/events", access.EventsRead, a.listEvents, webpage.LongIf(wantsCSV),
			webpage.Takes("merchantId type invoiceId delivery createdAfter createdBefore after"+ofPage+ofCSV)),
		a.route("POST /api/events/redeliver", access.EventsRedeliver, taking[apitypes.RedeliverEventsRequest](a.redeliverEvents)),
		a.route("GET /api/events/stream", access.EventsRead, a.streamEvents, webpage.Long,
			webpage.Takes("merchantId type invoiceId after include")),
		a.route("GET /api/events/{id}", access.EventsRead, a.getEvent),
		a.route("POST /api/events/{id}/redeliver", access.EventsRedeliver, a.redeliverEvent),
		a.route("GET /api/reports/summary", access.PaymentsRead, a.summary, webpage.Standby,
			webpage.Takes("merchantId from timezone")),
		a.route("GET /api/reports/invoices", access.InvoicesRead, a.invoiceReport, webpage.Standby,
			webpage.Takes("merchantId status customer reference metadata[key] exception amount to createdAfter createdBefore")),
		a.route("GET /api/reports/statement", access.PaymentsRead, a.statement, webpage.Standby,
			webpage.Takes("merchantId month timezone table bom separator decimal")),
		a.route("GET /api/reports/settlement", access.PaymentsRead, a.settlementReport, webpage.Standby, webpage.Long,
			webpage.Takes("merchantId from to groupBy timezone table bom separator decimal")),
		a.route("POST /api/keys", access.KeysWrite, taking[apitypes.CreateKeyRequest](a.createKey)),
		a.route("GET /api/keys", access.KeysWrite, a.listKeys, webpage.Takes("merchantId"+ofPage)),
		a.route("POST /api/keys/{id}/rotate", access.KeysWrite, taking[apitypes.RotateKeyRequest](a.rotateKey)),
		a.route("DELETE /api/keys/{id}", access.KeysWrite, a.revokeKey, webpage.OwnKey),
		a.route("POST /api/sign-in-links", access.InvoicesRead, taking[apitypes.CreateSignInLinkRequest](a.createSignInLink)),
		a.route("GET /api/approvals", access.EventsRead, a.listApprovals, webpage.Takes("merchantId state"+ofPage)),
		a.route("GET /api/approvals/{id}", access.EventsRead, a.getApproval),
		a.route("GET /api/audit", access.EventsRead, a.listAudit, webpage.Takes("merchantId action since"+ofPage)),
		a.route("GET /api/requests", access.EventsRead, a.listRequests,
			webpage.Takes("merchantId keyId status"+ofPage)),
		a.route("GET /api/merchants", access.InvoicesRead, a.listMerchants, webpage.Takes(ofPage)),
		a.route("POST /api/merchants", access.KeysWrite, taking[apitypes.CreateMerchantRequest](a.createMerchant)),
		a.route("GET /api/merchants/{id}", access.InvoicesRead, a.getMerchant),
		a.route("PATCH /api/merchants/{id}", access.KeysWrite, taking[updatedMerchant](a.updateMerchant)),
		a.route("GET /api/merchants/{id}/logo", access.InvoicesRead, a.getLogo),
		a.route("PUT /api/merchants/{id}/logo", access.KeysWrite, a.putLogo, webpage.BodyUpTo(access.MaxLogoBytes, 0)),
		a.route("DELETE /api/merchants/{id}/logo", access.KeysWrite, a.deleteLogo),
		a.route("DELETE /api/merchants/{id}/addresses/{address}", access.KeysWrite, a.releaseAddress),
		a.route("GET /api/merchants/{id}/webhook", access.EventsRead, a.getWebhook),
		a.route("PUT /api/merchants/{id}/webhook", access.WebhooksWrite, taking[apitypes.PutWebhookRequest](a.putWebhook)),
		a.route("POST /api/merchants/{id}/webhook/ping", access.WebhooksWrite, a.pingWebhook),
		a.route("POST /api/merchants/{id}/webhook/secret", access.WebhooksWrite, a.stageSecret),
		a.route("DELETE /api/merchants/{id}/webhook/secret", access.WebhooksWrite, a.dropSecret),
		a.route("POST /api/merchants/{id}/webhook/secret/promote", access.WebhooksWrite, a.promoteSecret),
	}
}

// route returns a route. It needs a key with the scope, unless an option changes that.
func (a *API) route(pattern string, scope access.Scope, h handler, options ...webpage.RouteOption) webpage.Route {
	r := webpage.Route{Pattern: pattern, Door: webpage.APIDoor, Credential: webpage.KeyCredential, Scope: scope}.With(options...)
	for _, c := range pathChecks {
		if _, path, _ := strings.Cut(pattern, " "); strings.HasPrefix(path, c.path) {
			h = checked(c.check, h)
		}
	}
	if r.Credential != webpage.SignatureCredential { // a provider chose the URL of its notices
		h = checked(func(of *http.Request) error { return checkParameters(of, r.Parameters) }, h)
	}
	if r.Standby {
		h = onStandby(h)
	}
	r.Handler = a.serve(h)
	return r
}

// pathChecks check the id in the paths of routes, because not every text is valid in a database. A malformed one is not
// found.
var pathChecks = []pathCheck{
	{"/api/invoices/{id}", idWith(invoice.PrefixInvoice)}, {"/api/payments/{id}", idWith(invoice.PrefixPayment)},
	{"/api/refunds/{id}", idWith(invoice.PrefixRefund)}, {"/api/events/{id}", idWith(invoice.PrefixEvent)},
	{"/api/payment-links/{id}", idWith(invoice.PrefixPaymentLink)}, {"/api/inbox/decisions/{id}", idWith(invoice.PrefixDecision)},
	{"/api/keys/{id}", idWith(access.PrefixKey)}, {"/api/approvals/{id}", idWith(access.PrefixApproval)},
	{"/checkout/{id}", idWith(invoice.PrefixInvoice)}, {"/x402/invoices/{id}", idWith(invoice.PrefixInvoice)},
	{"/api/merchants/{id}/webhook", seesMerchant},
}

// pathCheck checks the id in the paths that begin like one.
type pathCheck struct {
	path  string
	check func(r *http.Request) error
}

// idWith returns a check of an id with a prefix.
func idWith(prefix string) func(r *http.Request) error {
	return func(r *http.Request) error {
		if id := r.PathValue("id"); !strings.HasPrefix(id, prefix) || len(id) > maxObjectID || !isVisibleASCII(id) {
			return fmt.Errorf("%.80q: %w", id, db.ErrNotFound)
		}
		return nil
	}
}

// seesMerchant checks that the principal may see the merchant.
func seesMerchant(r *http.Request) error {
	if id := r.PathValue("id"); !invoice.ValidMerchantID(id) || !access.FromContext(r.Context()).Sees(id) {
		return fmt.Errorf("merchant %q: %w", id, webhooks.ErrNone)
	}
	return nil
}

// checked returns h for requests that pass a check.
func checked(check func(r *http.Request) error, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if err := check(r); err != nil {
			return err
		}
		return h(w, r)
	}
}

// waits reports whether a request waits for a change.
func waits(r *http.Request) bool { return r.URL.Query().Has("wait") }

// onStandby makes a standby of the database serve a handler's reads, if there is one.
func onStandby(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return h(w, r.WithContext(db.OnStandby(r.Context())))
	}
}
