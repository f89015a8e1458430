package dashboard_test

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
)

// TestPayments lists, filters and exports payments.
func TestPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	paid := w.paid(nil)
	odd := w.payment("123456789")
	maria := w.person("acme", access.Support)
	maria.get("/dashboard/payments").want(t, http.StatusOK, "4.90", "123.456789 USDC", "Confirmed", "No invoice")
	for query, want := range map[string]string{
		"q=" + paid.SettledTxHash:              "4.900",
		"q=" + url.QueryEscape(paid.ID):        "4.900",
		"q=123.456789":                         "123.456789",
		"q=123,456789":                         "123.456789",
		"q=" + payer.String():                  "123.456789",
		"show=counted":                         "4.900",
		"after=1970-01-01&before=2100-01-01":   "4.900",
		"after=2100-01-01":                     "Nothing was found.",
		"q=5":                                  "Nothing was found.",
		"invoiceId=" + url.QueryEscape("none"): "Nothing was found.",
	} {
		maria.get("/dashboard/payments?"+query).want(t, http.StatusOK, want)
	}
	for query, want := range map[string]string{"q=lots": "Amount must", "after=yesterday": "Confirmed after must", "chainKey=moon": "Chain key must"} {
		maria.get("/dashboard/payments?"+query).want(t, http.StatusBadRequest, want)
	}
	if got := maria.get("/dashboard/payments?q=" + odd.ID); got.path != "/dashboard/payments/"+odd.ID {
		t.Errorf("the id of a payment leads to %s", got.path)
	}
	file := maria.get("/dashboard/payments.csv?q=123.456789")
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	if err != nil || len(rows) != 2 || rows[1][0] != odd.ID || !strings.HasPrefix(file.header.Get("Content-Type"), "text/csv") {
		t.Errorf("the export is %s, %v, %v", file.body, err, file.header)
	}
	stranger := w.person("globex", access.Admin)
	stranger.get("/dashboard/payments").want(t, http.StatusOK, "Nothing was found.")
	stranger.get("/dashboard/payments/"+odd.ID).want(t, http.StatusNotFound)
}

// TestAttribute attributes a payment to a suggested invoice, and shows why another attribution is refused.
func TestAttribute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", nil)
	short := w.payment("4700000")
	support, finance := w.person("acme", access.Support), w.person("acme", access.Finance)
	path := "/dashboard/payments/" + short.ID
	seen := support.get(path).want(t, http.StatusOK, "0.20 USDC too little.")
	if actions := strings.Join(seen.actions(), " "); strings.Contains(actions, "/attribute") || strings.Contains(actions, "/refund") {
		t.Errorf("support may %s", actions)
	}
	finance.get(path).want(t, http.StatusOK, "The invoice stays open for the rest.")
	finance.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, "Attribute a payment", "belong to no invoice", "4.70 USDC", "Copy link")
	finance.get(path+"/attribute?invoiceId=inv_none").want(t, http.StatusNotFound, "No invoice has this id.")
	support.get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusForbidden)
	page := finance.get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusOK, "Attribute this payment?", "4.70 USDC", "4.90 USDC", "The invoice stays open for the rest. You can undo it for a minute.")
	decide := url.Values{"decision": {"attributed"}, "reason": {"a <b>call</b>"}}
	done := finance.submit(page, "/dashboard/inbox/decide", decide).want(t, http.StatusOK, "Attribution inv_", "· maria", "a <b>call</b>", "Takes effect in", "Undo")
	if done.path != path || strings.Contains(strings.Join(done.actions(), " "), "/attribute") || strings.Contains(done.body, `/refund"`) {
		t.Errorf("the attribution leads to %s, with %v", done.path, done.actions())
	}
	w.person("acme", access.Admin).submit(page, "/dashboard/inbox/decide", decide).want(t, http.StatusConflict, "maria has attributed this")
	undo := "/dashboard/inbox/decisions/" + w.decided(short.ID) + "/undo"
	shown := finance.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, "Attribution inv_", "Takes effect in", "Attribution decided")
	finance.submit(shown, undo, nil).want(t, http.StatusOK, "Decision undone · maria", "Attribute a payment", "4.70 USDC")
	finance.submit(page, "/dashboard/inbox/decide", decide).want(t, http.StatusOK, "Takes effect in")
	w.forward(time.Minute)
	w.await("attribution", func() bool { return strings.Contains(finance.get(path).body, "by hand") })
	finance.get(path).want(t, http.StatusOK, "by hand · maria", "Note a <b>call</b>")
	finance.post("/dashboard/inbox/decisions/"+w.decided(short.ID)+"/undo", nil).want(t, http.StatusConflict, "belongs to the invoice "+made.ID)
	finance.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, "by hand · maria", "a <b>call</b>", "Payment attributed · maria", "Attribute a payment None.")
	if got := finance.get(path + "/attribute?invoiceId=" + made.ID); got.path != path {
		t.Errorf("an attributed payment leads to %s", got.path)
	}
	w.person("globex", access.Admin).get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusNotFound)
}

// TestRefunds prepares a refund once, cancels it, and approves the address that a payer named.
func TestRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	paid := w.paid(nil)
	finance, support := w.person("acme", access.Finance), w.person("acme", access.Support)
	var payments apitypes.PaymentList
	w.operator.api("GET", "/api/payments?invoiceId="+paid.ID, nil, &payments)
	path := "/dashboard/payments/" + payments.Payments[0].ID
	form := finance.get(path+"/refund?amount=1500000").want(t, http.StatusOK, "No money moves until you sign.")
	if !strings.Contains(form.body, `value="1.50"`) {
		t.Error("the form does not suggest the amount")
	}
	finance.submit(form, path+"/refund", url.Values{"amount": {"lots"}}).want(t, http.StatusConflict, "Amount must")
	finance.submit(form, path+"/refund", url.Values{"amount": {"100"}}).want(t, http.StatusConflict, "more than what is left")
	first := finance.submit(form, path+"/refund", url.Values{"reason": {"<b>Bun</b>"}}).want(t, http.StatusOK, "1.50 USDC", "Pending", "<b>Bun</b>", "Sign with the account")
	again := finance.submit(form, path+"/refund", url.Values{"reason": {"<b>Bun</b>"}}).want(t, http.StatusOK)
	if first.path != again.path {
		t.Errorf("sent twice, the form leads to %s and %s", first.path, again.path)
	}
	safe := finance.get(first.path + "/safe.json")
	if !strings.Contains(safe.header.Get("Content-Disposition"), ".json") || !strings.Contains(safe.body, `"transactions"`) {
		t.Errorf("the file is %s", safe.body)
	}
	support.get("/dashboard/refunds?status=pending").want(t, http.StatusOK, "1.50 USDC", "<b>Bun</b>")
	support.get("/dashboard/refunds?q="+paid.ID).want(t, http.StatusOK, "1.50 USDC")
	support.get("/dashboard/refunds?status=confirmed").want(t, http.StatusOK, "Nothing was found.")
	support.get("/dashboard/refunds?status=lost").want(t, http.StatusBadRequest, "Status must")
	if file := support.get("/dashboard/refunds.csv?status=pending"); !strings.Contains(file.body, "1.50") {
		t.Errorf("the export is %s", file.body)
	}
	if actions := support.get(first.path).actions(); strings.Contains(strings.Join(actions, " "), "/cancel") {
		t.Errorf("support may %v", actions)
	}
	support.post(first.path+"/cancel", nil).want(t, http.StatusForbidden)
	finance.submit(first, first.path+"/cancel", nil).want(t, http.StatusOK, "Canceled")
	finance.get(first.path+"/safe.json").want(t, http.StatusNotFound)

	asked := finance.submit(finance.get(path+"/refund"), path+"/refund", url.Values{"ask": {"1"}}).want(t, http.StatusOK, "Awaits the payer’s address", "/refunds/")
	finance.post(asked.path+"/approve", url.Values{"to": {invoice.Address{1}.String()}}).want(t, http.StatusConflict, "state of this refund")
	w.person("globex", access.Admin).get(asked.path).want(t, http.StatusNotFound)

	w.forgetConfirmations()
	finance.post(asked.path+"/cancel", nil).want(t, http.StatusOK, "Canceled")
	elsewhere := url.Values{"to": {invoice.Address{1}.String()}, "amount": {"0.10"}}
	refused := finance.submit(finance.get(path+"/refund"), path+"/refund", elsewhere).want(t, http.StatusForbidden, "Answer the question in a new tab")
	if question := refused.linkTo(t, "Is it still you?"); !strings.Contains(refused.body, elsewhere.Get("to")) || !strings.HasPrefix(question, "/dashboard/confirm?") {
		t.Errorf("the form lost its values, or leads to %s", question)
	}
	finance.submit(finance.get(path+"/refund"), path+"/refund", url.Values{"to": {strings.ToLower(payments.Payments[0].From)}, "amount": {"0.10"}}).want(t, http.StatusOK, "Pending")
	finance.post("/dashboard/confirm", url.Values{"key": {finance.key}}).want(t, http.StatusOK)
	finance.submit(refused, path+"/refund", nil).want(t, http.StatusOK, "0.10 USDC", "Pending")
}
