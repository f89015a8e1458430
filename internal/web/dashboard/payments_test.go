package dashboard_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/txmgr"
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
	for query, want := range map[string]string{"q=lots": "Enter an amount such as 4.90.", "after=yesterday": "Confirmed after must", "chainKey=moon": "Chain key must"} {
		maria.get("/dashboard/payments?"+query).want(t, http.StatusBadRequest, want)
	}
	if got := maria.get("/dashboard/payments?q=" + odd.ID); got.path != "/dashboard/payments/"+odd.ID {
		t.Errorf("the id of a payment leads to %s", got.path)
	}
	maria.get("/dashboard/payments.csv?chainKey=moon").want(t, http.StatusBadRequest, "This was refused", "Chain key must")
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
	if actions := strings.Join(seen.Actions(), " "); strings.Contains(actions, "/attribute") || strings.Contains(actions, "/refund") {
		t.Errorf("support may %s", actions)
	}
	finance.get(path).want(t, http.StatusOK, "The invoice stays open for the rest.")
	finance.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, "Attribute a payment", "belong to no invoice", "4.70 USDC", "Copy link")
	finance.get(path+"/attribute?invoiceId=inv_none").want(t, http.StatusNotFound, "No invoice has this id.")
	support.get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusForbidden)
	page := finance.get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusOK, "Attribute this payment?", "4.70 USDC", "4.90 USDC", "The invoice stays open for the rest. You can undo it for a minute.")
	decide := url.Values{"decision": {"attributed"}, "reason": {"a <b>call</b>"}}
	done := finance.submit(page, "/dashboard/inbox/decide", decide).want(t, http.StatusOK, "Attribution inv_", "· maria", "a <b>call</b>", "Takes effect in", "Undo")
	if done.path != path || strings.Contains(strings.Join(done.Actions(), " "), "/attribute") || strings.Contains(done.body, `/refund"`) {
		t.Errorf("the attribution leads to %s, with %v", done.path, done.Actions())
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
	finance.submit(form, path+"/refund", url.Values{"amount": {"lots"}}).want(t, http.StatusConflict, "Enter an amount such as 4.90.")
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
	if actions := support.get(first.path).Actions(); strings.Contains(strings.Join(actions, " "), "/cancel") {
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

// TestSavedFilters saves a filter, uses it, and removes it. Others do not see it.
func TestSavedFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria, other := w.person("acme", access.Finance), w.person("acme", access.Finance)
	page := maria.get("/dashboard/invoices?status=open&reference=a%26b").want(t, http.StatusOK, "Keep this filter")
	kept := maria.submit(page, "/dashboard/filters/save", url.Values{"name": {" Mine <b> "}}).want(t, http.StatusOK, "Remove “Mine <b>”")
	expect.Equal(t, kept.path, "/dashboard/invoices?reference=a%26b&status=open", "the filter leads to")
	page = maria.get("/dashboard/invoices").want(t, http.StatusOK, "Mine <b>")
	if links := strings.Join(page.Links(), " "); !strings.Contains(links, kept.path) {
		t.Errorf("the list has the links %s", links)
	}
	if words := maria.get("/dashboard/payments").Words() + other.get("/dashboard/invoices").Words(); strings.Contains(words, "Mine") {
		t.Error("another list or person has the filter")
	}
	other.post("/dashboard/filters/remove", url.Values{"list": {"/dashboard/invoices"}, "name": {"Mine <b>"}})
	kept = maria.get(kept.path).want(t, http.StatusOK, "Remove “Mine <b>”")
	if page := maria.submit(kept, "/dashboard/filters/remove", nil).want(t, http.StatusOK); strings.Contains(page.Words(), "Mine") {
		t.Error("the filter was not removed")
	}
	maria.submit(maria.get("/dashboard/customers?q=ada"), "/dashboard/filters/save", url.Values{"name": {"Ada"}}).want(t, http.StatusOK, "Remove “Ada”")
	operator := w.operator.get("/dashboard/payments?merchantId=acme&show=counted")
	if got := w.operator.submit(operator, "/dashboard/filters/save?merchantId=acme", url.Values{"name": {"Counted"}}).want(t, http.StatusOK); got.path != "/dashboard/payments?merchantId=acme&show=counted" {
		t.Errorf("the operator's filter leads to %s", got.path)
	}
}

// TestRefusedFilters tries to save filters without a name, of an unknown list, without parameters, and more than
// permitted.
func TestRefusedFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	const list = "/dashboard/invoices"
	save := func(list, name, query string) answer {
		return maria.post("/dashboard/filters/save", url.Values{"list": {list}, "name": {name}, "query": {query}})
	}
	save(list, "  ", "status=open").want(t, http.StatusBadRequest, "A name has 1 to 60 characters.")
	save(list, strings.Repeat("é", 61), "status=open").want(t, http.StatusBadRequest, "A name has 1 to 60 characters.")
	save(list, "none", "").want(t, http.StatusBadRequest, "Choose a filter first.")
	save("/api/keys", "keys", "status=open").want(t, http.StatusBadRequest)
	if got := save(list, "x", "status=open"); got.path != list+"?status=open" {
		t.Errorf("the filter leads to %s", got.path)
	}
	for i := range access.MaxSavedFilters - 1 {
		save(list, fmt.Sprint(i), "status=open").want(t, http.StatusOK)
	}
	save(list, "x", "status=paid").want(t, http.StatusOK, "Remove “x”")
	save(list, "one more", "status=open").want(t, http.StatusConflict, "You have 20 filters")
	save("/dashboard/refunds", "of another list", "status=seen")
}

// TestStatement compares the statement of a month with the exports, to the minor unit.
func TestStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	w.paid(nil)
	w.invoice("acme", member{"amount": "1000001"})
	void := w.invoice("acme", member{"amount": "2000000"})
	w.operator.api("POST", "/api/invoices/"+void.ID+"/void", nil, nil)
	draft := w.invoice("acme", member{"amount": "8000000", "draft": true})
	w.operator.api("POST", "/api/invoices/"+draft.ID+"/void", nil, nil) // it was never issued
	opened := w.invoice("acme", member{"amount": "3000000", "draft": true})
	w.operator.api("POST", "/api/invoices/"+opened.ID+"/finalize", nil, nil)
	w.invoice("acme", member{"amount": "7000000", "draft": true})
	w.payment("777") // of no invoice

	month := w.now().UTC().Format("2006-01")
	page := maria.get("/dashboard/statement").want(t, http.StatusOK, "acme", "not closed yet", "Invoiced 10.90 USDC", "Canceled (void) 2.00 USDC",
		"Owed after 4.00 USDC", "Received (1)", "Month before")
	if !strings.Contains(page.body, `title="10.900001"`) {
		t.Error("the exact sum is no title")
	}
	if strings.Contains(page.Words(), "Month after") {
		t.Error("the present month leads to a later one")
	}
	var answer apitypes.StatementResponse
	maria.api("GET", "/api/reports/statement?month="+month, nil, &answer)
	if len(answer.Statement.Lines) != 1 {
		t.Fatalf("the statement is %+v", answer.Statement)
	}
	l := answer.Statement.Lines[0]
	file := maria.get("/dashboard/payments.csv?show=counted")
	rows, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	expect.OK(t, err)
	var received big.Int
	for _, row := range rows[1:] {
		amount, _ := new(big.Int).SetString(row[7], 10)
		received.Add(&received, amount)
	}
	if l.Received != received.String() || l.Held != l.Received || l.Settled != "4900000" || l.Opening != "0" || l.HeldBefore != "0" || l.Canceled != "2000000" {
		t.Errorf("the export adds up to %s, the statement is %+v", &received, l)
	}
	table := maria.get("/dashboard/statement.csv?month=" + month)
	if rows, err := csv.NewReader(strings.NewReader(table.body)).ReadAll(); err != nil || len(rows) != 2 || rows[1][10] != l.Closing || rows[1][12] != l.Received {
		t.Errorf("the table is %s, %v", table.body, err)
	}
	maria.get("/dashboard/statement?month=2001-01").want(t, http.StatusOK, "1 Jan 2001 – 31 Jan 2001 (UTC)", "Nothing was found")
	for _, wrong := range []string{"2999-01", "2026-13", "x", "2026-1"} {
		maria.get("/dashboard/statement?month="+wrong).want(t, http.StatusBadRequest, "Month must")
	}
	w.operator.get("/dashboard/statement").want(t, http.StatusOK, "acme", "globex")
	w.operator.get("/dashboard/statement?merchantId=globex").want(t, http.StatusOK, "Nothing was found")

	for _, minutes := range []int{5, 11} { // another replica may still commit confirmations of the month's last seconds
		w.forward(time.Unix(answer.Statement.To, 0).Add(time.Duration(minutes) * time.Minute).Sub(w.now()))
		var closed apitypes.StatementResponse
		maria.api("GET", "/api/reports/statement?month="+month, nil, &closed)
		if closed.Statement.Preliminary != (minutes < 10) {
			t.Errorf("%d minutes after the month, preliminary is %t", minutes, closed.Statement.Preliminary)
		}
	}
}

// TestStatementFees shows each merchant its share of a transaction for several.
func TestStatementFees(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria := w.person("acme", access.Finance)
	page := maria.get("/dashboard/statement").want(t, http.StatusOK)
	if strings.Contains(page.Words(), "Network fees") {
		t.Error("there are fees before there was a transaction")
	}
	w.record(1_000_000_001, "acme", "globex", "globex")
	maria.get("/dashboard/statement").want(t, http.StatusOK, "recording invoices on chain (1) 0.333333 ETH")
	w.operator.get("/dashboard/statement?merchantId=globex").want(t, http.StatusOK, "recording invoices on chain (2) 0.666667 ETH")
	month := w.now().UTC().Format("2006-01")
	if table := maria.get("/dashboard/statement.csv?table=fees&month=" + month); !strings.Contains(table.body, ",commitment,acme,1,333333333,0.333333333,") || strings.Contains(table.body, "globex") {
		t.Errorf("the table is %q", table.body)
	}
}

// record makes a transaction that records an invoice of each of the merchants, at a cost in gwei.
func (w *world) record(cost int64, merchants ...string) {
	w.t.Helper()
	lease := db.WorkLease{Name: "writer:test", Holder: "test"}
	_, err := w.store.AcquireWorkLease(w.t.Context(), lease, w.now(), w.now())
	var intents []ledger.Intent
	var ids []string
	for i, merchant := range merchants {
		inv := w.invoice(merchant, nil)
		ids = append(ids, fmt.Sprint("int_", i))
		intents = append(intents, ledger.Intent{ID: ids[i], ChainKey: house, InvoiceID: inv.ID, CommitmentID: invoice.Hash{byte(i)}, Kind: invoice.IntentOpen, CreatedAt: w.now()})
	}
	tx := txmgr.ChainTx{ID: "ctx_1", ChainKey: house, Kind: txmgr.TxOpen, Status: txmgr.TxSent, CreatedAt: w.now()}
	err = errors.Join(err,
		w.store.Update(w.t.Context(), func(tx *db.Tx) error { return ledger.InsertIntents(w.t.Context(), tx, intents) }),
		txmgr.SaveChainTx(w.t.Context(), w.store, lease, tx, ids),
		txmgr.SetTxStatus(w.t.Context(), w.store, lease, tx.ID, txmgr.TxMined, &ledger.TxCost{Gwei: cost, At: w.now()}))
	expect.OK(w.t, err)
}
