package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/web/dashboard"
)

// TestHome shows the settled amounts, the waiting items, and how far the chain is read.
func TestHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.paid(member{})
	w.paid(member{})
	w.invoice("acme", member{})
	w.invoice("globex", member{})
	if page := w.person("acme", access.Read).get("/dashboard"); strings.Contains(page.Words(), "Needs a decision") {
		t.Error("something needs a decision before anything happened")
	}
	w.payment("4700000")
	acme := w.person("acme", access.Read)
	acme.get("/dashboard").want(t, http.StatusOK, "Needs a decision", "No invoice 1", "Settled today", "9.80", "Yesterday: –", "USDC received by day", "1 invoice · house", "No event has failed.",
		"house Behind: ", "Expired invoices since ")
	w.person("globex", access.Read).get("/dashboard").want(t, http.StatusOK, "Settled today –", "1 invoice · house")
	w.operator.get("/dashboard").want(t, http.StatusOK, "9.80", "2 invoices · house")
	w.operator.get("/dashboard?merchantId=globex").want(t, http.StatusOK, "Settled today –", "1 invoice · house")
	w.forward(access.VisitPause)
	w.invoice("acme", member{})
	acme.get("/dashboard").want(t, http.StatusOK, "UTC: created ")
}

// TestExpiredOnHome counts the expired invoices that the linked list has.
func TestExpiredOnHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 3 {
		made := w.invoice("acme", nil)
		w.forward(2 * time.Hour)
		w.chain.MineAt(w.now().Unix() - 1)
		w.chain.MineAt(w.now().Unix())
		w.await("expired invoice", func() bool { return w.read(made.ID).Status == "expired" })
		if n == 0 {
			w.forward(70 * 24 * time.Hour)
		}
	}
	acme := w.person("acme", access.Read)
	page := acme.get("/dashboard").want(t, http.StatusOK, "2 invoices · house")
	links := page.Links()
	list := links[slices.IndexFunc(links, func(a string) bool { return strings.Contains(a, "status=expired") })]
	if found := len(acme.get(list).Named("tbody")[0].Named("tr")); found != 2 {
		t.Errorf("%s has %d invoices", list, found)
	}
}

// TestHomeWithoutPayments leads a person who may not see payments to another page.
func TestHomeWithoutPayments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.person("acme", access.NewScopes(access.InvoicesRead)).get("/dashboard").want(t, http.StatusOK, "Invoices")
}

// TestHomeInTimezone adds up days in the merchant's time zone.
func TestHomeInTimezone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.api("POST", "/api/merchants", member{"id": "initech", "name": "Initech", "timezone": "Pacific/Kiritimati"}, nil)
	w.operator.get("/dashboard?merchantId=initech").want(t, http.StatusOK, "Time zone: Pacific/Kiritimati.")
	w.person("acme", access.Read).get("/dashboard").want(t, http.StatusOK, "Time zone: UTC.")
}

// TestLastMonthInTheWest asks when the month is over in UTC and not in the merchant's time zone. The month before has its
// first days.
func TestLastMonthInTheWest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *server.Config) {
		c.Merchants.Configured["acme"] = access.MerchantSettings{Merchant: invoice.Merchant{Timezone: "America/New_York"}}
	})
	to := func(month time.Month, day, hour int) {
		w.forward(time.Date(2027, month, day, hour, 0, 0, 0, time.UTC).Sub(w.now()))
	}
	to(time.September, 2, 12)
	w.paid(nil)
	to(time.November, 1, 2)
	w.person("acme", access.Read).get("/dashboard").want(t, http.StatusOK, "This month –", "Last month: 4.90")
}

// TestForeignOrigin answers forms from a page of another origin with a page.
func TestForeignOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("acme", access.Admin)
	r := expect.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/dashboard/sign-out", nil))
	r.Header.Set("Origin", "https://evil.example")
	resp, err := p.Do(r)
	expect.OK(t, err)
	text, err := io.ReadAll(resp.Body)
	expect.OK(t, errors.Join(err, resp.Body.Close()))
	if resp.StatusCode != http.StatusForbidden || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(text), "Another website sent this") {
		t.Errorf("another origin's form is answered %d %s\n%s", resp.StatusCode, resp.Header.Get("Content-Type"), text)
	}
	p.get("/dashboard").want(t, http.StatusOK, "Sign out")
}

// TestLanguageOfSession keeps the language that a person chose, and begins with the browser's.
func TestLanguageOfSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.person("acme", access.Read)
	w.paid(member{})
	page := p.get("/dashboard/invoices").want(t, http.StatusOK, "Paid")
	p.submit(page, "/dashboard/language", url.Values{"language": {"de"}}).want(t, http.StatusOK, "Rechnungen", "Bezahlt")
	if page := p.get("/dashboard").want(t, http.StatusOK, "Heute eingegangen"); page.Named("html")[0].Attrs["lang"] != "de" {
		t.Errorf("the page is in %q", page.Named("html")[0].Attrs["lang"])
	}
}

// player is a player. Its first scenario waits until end is closed.
type player struct{ begun, end chan struct{} }

func (player) Scenarios() []dashboard.Scenario {
	return []dashboard.Scenario{{Name: "reorg", About: "a payment <b> is dropped"}, {Name: "broken", About: "it fails"}}
}

func (p player) Play(ctx context.Context, name string) (dashboard.Played, error) {
	switch name {
	case "broken":
		return dashboard.Played{Steps: "invoice created"}, errors.New("the chain has stopped")
	case "reorg":
		close(p.begun)
		select {
		case <-p.end:
		case <-ctx.Done():
		}
		event := json.RawMessage(`{"id":"evt_1","type":"invoice.paid","createdAt":1764000000}`)
		return dashboard.Played{InvoiceID: "inv_1", Steps: "paid <i>", Events: []dashboard.PlayedEvent{{EventRecord: apitypes.EventRecord{Event: event}, Redelivered: true}}}, nil
	}
	return dashboard.Played{}, dashboard.ErrNoScenario
}

// TestScenarios plays scenarios, one at a time, and only where there is a player.
func TestScenarios(t *testing.T) {
	t.Parallel()
	const path = "/dashboard/scenarios"
	p := player{make(chan struct{}), make(chan struct{})}
	w := newWorld(t, func(c *server.Config) { c.Player = p })
	op := w.operator
	if !slices.Contains(op.get("/dashboard/invoices").Links(), path) {
		t.Error("there is no link to the scenarios")
	}
	page := op.get(path).want(t, 200, "reorg", "a payment <b> is dropped")
	played := make(chan answer)
	go func() { played <- op.submit(page, path, url.Values{"scenario": {"reorg"}}) }()
	<-p.begun
	w.person("", access.Admin).post(path, url.Values{"scenario": {"broken"}}).want(t, 409, "Another scenario is being played")
	close(p.end)
	(<-played).want(t, 200, "paid <i>", "invoice.paid", "sent again", "The invoice")
	op.post(path, url.Values{"scenario": {"broken"}}).want(t, 409, "the chain has stopped", "invoice created")
	op.post(path, url.Values{"scenario": {"nonsense"}}).want(t, 404)
	owner := w.person("acme", access.Admin)
	owner.get(path).want(t, 403)
	owner.post(path, url.Values{"scenario": {"broken"}}).want(t, 403)
	if slices.Contains(owner.get("/dashboard/invoices").Links(), path) {
		t.Error("an owner has a link to the scenarios")
	}
}

// TestNoScenarios asks for scenarios at a service that is not a development service.
func TestNoScenarios(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.operator.get("/dashboard/scenarios").want(t, 404)
	w.operator.post("/dashboard/scenarios", url.Values{"scenario": {"reorg"}}).want(t, 404)
}

// operatorPages are the pages of the operator's view.
var operatorPages = []string{"/dashboard/operator", "/dashboard/operator/merchants", "/dashboard/operator/chains/" + house, "/dashboard/operator/audit", "/dashboard/operator/setup"}

// TestOperatorAlone requests the operator's pages and routes as people of a merchant.
func TestOperatorAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner, auditor := w.person("acme", access.Admin), w.person("", access.Read)
	for _, path := range operatorPages {
		owner.get(path).want(t, 403, "Your key does not allow this")
		w.operator.get(path).want(t, 200)
		auditor.get(path).want(t, 200)
	}
	if slices.ContainsFunc(owner.get("/dashboard/invoices").Links(), func(a string) bool { return strings.HasPrefix(a, "/dashboard/operator") }) {
		t.Error("an owner has a link to the operator's view")
	}
	for _, path := range []string{"/dashboard/operator/audit/verify", "/dashboard/operator/chains/house/rescan", "/dashboard/operator/chains/house/resume"} {
		owner.post(path, url.Values{"from": {"0"}, "confirm": {house}}).want(t, 403)
	}
	for _, path := range []string{"/api/operator/status", "/api/operator/merchants"} {
		if status, text := owner.ask("GET", path, nil); status != 403 {
			t.Errorf("GET %s answers an owner %d %s", path, status, text)
		}
	}
	if slices.Contains(auditor.get("/dashboard/operator/setup").Actions(), "/dashboard/operator/setup") {
		t.Error("who may only read has a form that creates a merchant")
	}
	w.person("", access.NewScopes(access.EventsRead)).get("/dashboard/operator/setup").want(t, 200, "First invoice")
	auditor.post("/dashboard/operator/chains/house/rescan", url.Values{"from": {"0"}, "confirm": {house}}).want(t, 403)
	if slices.Contains(auditor.get("/dashboard/operator/chains/house").Actions(), "/dashboard/operator/chains/house/rescan") {
		t.Error("who may only read has a button that reads the chain again")
	}
}

// TestOperator shows the service, its merchants and the audit log, and verifies that.
func TestOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invoice("acme", nil)
	op := w.operator
	op.get("/dashboard/operator").want(t, 200, "Ready", "Migrations", house, "Up to date", "Limits in force", "1,024 requests", "Paused endpoints")
	op.get("/dashboard/operator/merchants").want(t, 200, "acme", "globex", "configuration")
	op.get("/dashboard/operator/audit").want(t, 200, "endpoint.update", "acme")
	op.get("/dashboard/operator/audit?action=nothing").want(t, 200, "Nothing was found")
	op.submit(op.get("/dashboard/operator/audit"), "/dashboard/operator/audit/verify", nil).want(t, 200, "Intact", "The head is")
	op.submit(op.get("/dashboard/operator/audit"), "/dashboard/operator/audit/verify", url.Values{"head": {"nonsense"}}).want(t, 400, "Head ")
	op.submit(op.get("/dashboard/operator/audit"), "/dashboard/operator/audit/verify", url.Values{"head": {"1:" + strings.Repeat("a", 64)}}).want(t, 200, "Entry 1 was rewritten")
	op.get("/dashboard/operator/chains/nowhere").want(t, 404)
}

// TestOperatedChain rescans and resumes a chain, after a fresh sign-in and typing its key.
func TestOperatedChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op, path := w.operator, "/dashboard/operator/chains/"+house
	page := op.get(path).want(t, 200, "Read up to", "Nodes", "127.0.0.1")
	if slices.Contains(page.Actions(), path+"/resume") {
		t.Error("a chain that is not halted can be resumed")
	}
	op.submit(page, path+"/rescan", url.Values{"from": {"1"}, "confirm": {"mainnet"}}).want(t, 400, "Type house to confirm")
	op.submit(page, path+"/rescan", url.Values{"from": {"x"}, "confirm": {house}}).want(t, 400, "number of a block")
	op.submit(page, path+"/rescan", url.Values{"from": {"99999"}, "confirm": {house}}).want(t, 400, "is read up to block")
	op.submit(page, path+"/rescan", url.Values{"from": {"1"}, "confirm": {house}}).want(t, 200, "Read up to")
	op.get("/dashboard/operator/audit").want(t, 200, "chain.rescan", `"from":1`)

	service := ledger.New(ledger.Config{Store: w.store, Now: w.now})
	expect.OK(t, service.Halt(context.WithoutCancel(t.Context()), house, "block 3 was replaced"))
	w.chain.MineAt(w.chain.Head().Time + 1) // the indexer reads on, and finds the halt
	w.await("the halt", func() bool { return strings.Contains(op.get(path).Words(), "block 3 was replaced") })
	halted := op.get(path).want(t, 200, "Halted")
	w.forgetConfirmations()
	op.submit(halted, path+"/resume", url.Values{"confirm": {house}}).want(t, 200, "Is it still you?")
	op.submit(op.get("/dashboard/confirm"), "/dashboard/confirm", url.Values{"key": {op.key}}).want(t, 200)
	op.submit(halted, path+"/resume", url.Values{"confirm": {house}}).want(t, 200)
	w.await("the chain to go on", func() bool { return !strings.Contains(op.get(path).Words(), "block 3 was replaced") })
	op.get("/dashboard/operator/audit?action=chain.resume").want(t, 200, "block 3 was replaced")
}

// TestWhatNodesCannotDo shows a node that refuses a kind of request.
func TestWhatNodesCannotDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *server.Config) { cfg.Chains[0].Chain.CompareLogs = true })
	w.invoice("acme", nil)
	w.node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_getBlockReceipts" {
			return errors.New("not here")
		}
		return nil
	})
	page := ""
	for range 10 { // blocks; each is read within a round of the indexer
		w.chain.Mine(chaintest.Tx{})
	}
	w.await("what the node cannot do", func() bool {
		page = w.operator.get("/dashboard/operator/chains/" + house).Words()
		return strings.Contains(page, "blockReceipts: refused, not asked for since")
	})
	if !strings.Contains(page, "Calls a day") {
		t.Errorf("the page does not say how many calls a day there are: %s", page)
	}
}

// TestQuarantine: a real hook quarantines two payments. The merchant sees why, and only the operator decides.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"verdict":"quarantine","reason":"<b>list A</b>"}`) // a lost answer is asked for again
	}))
	t.Cleanup(hook.Close)
	w := newWorld(t, func(c *server.Config) {
		c.Screening = &server.Screening{URL: hook.URL, Secret: "whsec_c2NyZWVuaW5nIHNjcmVlbmluZw", Patience: time.Minute}
	})
	finance := w.person("acme", access.Finance)
	for _, decision := range []string{"released", "rejected"} {
		made := w.invoice("acme", nil)
		hash := w.transfer(w.read(made.ID).TransferAmount)
		var found apitypes.PaymentList
		w.await("quarantined payment of "+hash, func() bool {
			w.operator.api("GET", "/api/payments?include=pending&txHash="+hash, nil, &found)
			return len(found.Payments) == 1 && found.Payments[0].Screening == apitypes.ScreeningQuarantined
		})
		id := found.Payments[0].ID
		if p := found.Payments[0]; p.Status != apitypes.PaymentPending || p.ScreeningReason != "<b>list A</b>" {
			t.Errorf("the payment is %+v", p)
		}
		finance.get("/dashboard/payments/"+id).want(t, http.StatusOK, "Held back, the operator decides", "<b>list A</b>", "Pending")
		finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
		page := w.operator.get("/dashboard/inbox?kind=quarantined").want(t, http.StatusOK, "Quarantined", "held it back: <b>list A</b>", "Neither can be undone")
		w.operator.decide(page, "dismissed", "No").want(t, http.StatusConflict, "must be released or rejected")
		w.operator.decide(page, decision, "Asked the payer").want(t, http.StatusOK, strings.ToUpper(decision[:1])+decision[1:], "Asked the payer")
		w.operator.get("/dashboard/inbox?kind=quarantined").want(t, http.StatusOK, "Nothing needs a decision.")
		if decision == "released" {
			w.await("paid invoice", func() bool { return w.read(made.ID).Status == "paid" })
			continue
		}
		finance.get("/dashboard/inbox").want(t, http.StatusOK, "No invoice", "Refund…")
		finance.get("/dashboard/payments/"+id).want(t, http.StatusOK, "Rejected by the operator")
		if got := w.read(made.ID); got.Status != "open" || got.AmountPaid != "0" {
			t.Errorf("the invoice is %+v", got)
		}
	}
}

// decide sends the form of an item. The inbox must show exactly one.
func (p *person) decide(page answer, decision, reason string) answer {
	p.t.Helper()
	return p.submit(page, "/dashboard/inbox/decide", url.Values{"decision": {decision}, "reason": {reason}})
}

// TestInboxDismiss decides about a payment as two people at the same time. The second sees who
// decided; the decision can be undone, and is never deleted.
func TestInboxDismiss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.invoice("acme", nil)
	odd := w.payment("4700000")
	first, second := w.person("acme", access.Finance), w.person("acme", access.Admin)
	seen := first.get("/dashboard/inbox").want(t, http.StatusOK, "No invoice", "4.70 USDC", "0.20 USDC too little", "Dismissing moves no money")
	stale := second.get("/dashboard/inbox?kind=unattributed").want(t, http.StatusOK, "4.70 USDC")
	first.decide(seen, "dismissed", "<i>Our own</i> transfer").want(t, http.StatusOK, "Dismissed", "<i>Our own</i> transfer", "maria")
	first.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")

	second.decide(stale, "dismissed", "Spam").want(t, http.StatusConflict, "maria has dismissed this at", "<i>Our own</i> transfer")
	path := "/dashboard/payments/" + odd.ID
	second.get(path+"/attribute?invoiceId="+made.ID).want(t, http.StatusOK, "Dismissed · maria", "Undo")
	support := w.person("acme", access.Support)
	decisions := support.get("/dashboard/inbox/decisions").want(t, http.StatusOK, "Dismissed")
	if acts := decisions.Actions(); strings.Contains(strings.Join(acts, " "), "undo") {
		t.Errorf("support may %v", acts)
	}
	decisions = second.get("/dashboard/inbox/decisions")
	undo := ""
	for _, act := range decisions.Actions() {
		if strings.HasSuffix(act, "/undo") {
			undo = act
		}
	}
	support.post(undo, nil).want(t, http.StatusForbidden)
	w.person("globex", access.Admin).post(undo, nil).want(t, http.StatusNotFound)
	second.post(undo, nil).want(t, http.StatusOK, "4.70 USDC")
	second.get("/dashboard/inbox/decisions").want(t, http.StatusOK, "Dismissed", "Undone by maria")

	w.attribute(odd.ID, made.ID)
	second.decide(stale, "dismissed", "Spam").want(t, http.StatusConflict, "belongs to the invoice "+made.ID, "maria attributed it at")

	var log apitypes.AuditList
	w.operator.api("GET", "/api/audit?merchantId=acme&limit=200", nil, &log)
	var actions []string
	for _, e := range log.Entries {
		actions = append(actions, e.Action)
	}
	if all := strings.Join(actions, " "); strings.Count(all, "inbox.decide") != 1 || strings.Count(all, "inbox.undo") != 1 {
		t.Errorf("the audit log has %s", all)
	}
}

// TestPaymentOfLostInvoice shows in the inbox and on the payment's page that its invoice was lost with the database.
func TestPaymentOfLostInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.invoice("acme", nil)
	p, id := w.payment("4700000"), invoice.Hash{0x77}
	expect.OK(t, w.store.Update(t.Context(), func(tx *db.Tx) error {
		return ledger.InsertLostAddresses(t.Context(), tx, house, map[invoice.Address]invoice.Hash{acmePays: id})
	}))
	finance := w.person("acme", access.Finance)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "The invoice was lost when a backup")
	finance.get("/dashboard/payments/"+p.ID).want(t, http.StatusOK, "The invoice was lost when a backup", id.String())
}

// TestInboxExceptions shows invoices with exceptions. A decision covers only the exceptions that
// existed when it was made.
func TestInboxExceptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finance := w.person("acme", access.Finance)
	paid := w.paid(nil)
	tx := w.payment("4900000")
	w.attribute(tx.ID, paid.ID)
	page := finance.get("/dashboard/inbox?kind=duplicate").want(t, http.StatusOK, "Paid twice", "More came after the invoice was paid", "Refund…")
	finance.decide(page, "accepted", "No").want(t, http.StatusConflict, "dismissed")
	finance.decide(page, "dismissed", "").want(t, http.StatusConflict, "Reason ")
	finance.decide(page, "dismissed", "The customer wants credit").want(t, http.StatusOK, "The customer wants credit")
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
	again := w.payment("5000000")
	w.attribute(again.ID, paid.ID)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Paid twice")
	finance.get("/dashboard/inbox?kind=lost").want(t, http.StatusBadRequest, "Kind ")
	w.operator.get("/dashboard/inbox?merchantId=acme").want(t, http.StatusOK, "Paid twice")
	w.person("globex", access.Admin).get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
}

// TestInboxRefundWithoutPayment drops a payment by a reorg, but not its refund. The inbox shows the
// refund with another payment of that account, until the payment is mined again.
func TestInboxRefundWithoutPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finance := w.person("acme", access.Finance)
	w.paid(member{"amount": "1000000"})
	made := w.invoice("acme", nil)
	amount := expect.Must(invoice.ParseAmount(w.read(made.ID).TransferAmount))
	paid := chaintest.NewTx(chaintest.Transfer(houseToken, payer, acmePays, amount))
	back := chaintest.NewTx(chaintest.Transfer(houseToken, acmePays, payer, amount))
	at := func(status apitypes.RefundStatus) func() bool {
		return func() bool {
			var list apitypes.RefundList
			w.operator.api("GET", "/api/refunds?txHash="+invoice.Hash(back.Hash).String(), nil, &list)
			return len(list.Refunds) == 1 && list.Refunds[0].Status == status
		}
	}
	w.chain.MineAt(w.chain.Head().Time+1, paid, back)
	w.await("pending refund", at(apitypes.RefundPending))
	w.chain.Fork(1)
	w.chain.MineAt(w.chain.Head().Time+2, back)
	w.chain.MineAt(w.chain.Head().Time + 1)
	w.await("confirmed refund", at(apitypes.RefundConfirmed))
	page := finance.get("/dashboard/inbox?kind=refund_without_payment").want(t, http.StatusOK, "Refund without payment", "never came", "The dropped payment", "Other payments")
	w.person("globex", access.Admin).get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
	finance.decide(page, "accepted", "No").want(t, http.StatusConflict, "dismissed")
	finance.decide(page, "dismissed", "Paid in cash").want(t, http.StatusOK, "Paid in cash", "Refund without payment")

	var list apitypes.DecisionList
	w.operator.api("GET", "/api/inbox/decisions?merchantId=acme", nil, &list)
	undo := "/dashboard/inbox/decisions/" + list.Decisions[0].ID + "/undo"
	w.payment(amount.String()) // the customer pays again
	finance.post(undo, nil).want(t, http.StatusOK, "Refund without payment", "Same amount")
	w.chain.MineAt(w.chain.Head().Time+1, paid)
	w.await("payment that is back", func() bool { return !strings.Contains(finance.get("/dashboard/inbox").body, "Refund without payment") })
}

// TestInboxUnderpaid waives the missing amount of an invoice, which stays expired.
func TestInboxUnderpaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	finance := w.person("acme", access.Finance)
	made := w.invoice("acme", nil)
	part := w.payment("4700000")
	w.attribute(part.ID, made.ID)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.") // the rest may come
	w.chain.MineAt(made.Invoice.ExpiresAt + 1)
	w.chain.MineAt(made.Invoice.ExpiresAt + 2)
	w.await("expired invoice", func() bool { return w.read(made.ID).Status == "expired" })
	late := w.payment("500000")
	w.attribute(late.ID, made.ID)
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Late")
	w.chain.MineAt(w.chain.Head().Time+1, chaintest.NewTx(chaintest.Transfer(houseToken, acmePays, payer, invoice.NewAmount(500_000))))
	w.chain.MineAt(w.chain.Head().Time + 1)
	w.await("refund of what came late", func() bool { return strings.Contains(finance.get("/dashboard/inbox").body, "Too little") })
	page := finance.get("/dashboard/inbox").want(t, http.StatusOK, "Too little", "0.20 USDC is missing", "Accepting waives the difference")
	finance.decide(page, "accepted", "A good customer").want(t, http.StatusOK, "Difference waived", "A good customer")
	shown := finance.get("/dashboard/invoices/"+made.ID).want(t, http.StatusOK, "Difference waived · maria", "A good customer", "Payment attributed · maria")
	w.guest().get("/checkout/"+made.ID).want(t, http.StatusOK, "Accepted as paid", "accepted 0.20 USDC less")
	undo := "/dashboard/inbox/decisions/" + w.decided(made.ID) + "/undo"
	shown = finance.submit(shown, undo, nil).want(t, http.StatusOK, "Decision undone · maria", "Accepting waives the difference", "Refund…")
	w.guest().get("/checkout/"+made.ID).want(t, http.StatusOK, "Expired: paid in part")
	shown = finance.decide(shown, "accepted", "A very good customer").want(t, http.StatusOK, "Difference waived · maria", "A very good customer")
	if want := "/dashboard/invoices/" + made.ID; shown.path != want {
		t.Errorf("a decision on the invoice's page leads to %s", shown.path)
	}
	finance.get("/dashboard/inbox").want(t, http.StatusOK, "Nothing needs a decision.")
	expect.Equal(t, w.read(made.ID).Status, "expired", "the invoice became")
}

// decided returns the id of the newest decision about an object.
func (w *world) decided(objectID string) string {
	w.t.Helper()
	var list apitypes.DecisionList
	w.operator.api("GET", "/api/inbox/decisions?objectId="+objectID, nil, &list)
	if len(list.Decisions) == 0 {
		w.t.Fatalf("nothing was decided about %s", objectID)
	}
	return list.Decisions[0].ID
}

// TestInboxInNavigation counts the items that need a decision on every page, for people who may see them.
func TestInboxInNavigation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maria, globex := w.person("acme", access.Finance), w.person("globex", access.Finance)
	maria.get("/dashboard/invoices").want(t, http.StatusOK, "Inbox Approvals Payments")
	w.invoice("acme", nil)
	w.payment("4700000")
	w.payment("4600000")
	for _, path := range []string{"/dashboard", "/dashboard/inbox", "/dashboard/invoices", "/dashboard/statement", "/dashboard/invoices/new"} {
		maria.get(path).want(t, http.StatusOK, "Inbox 2 Approvals Payments")
	}
	maria.get("/dashboard/invoices/inv_none").want(t, http.StatusNotFound, "Inbox Approvals Payments") // the database may fail
	w.operator.get("/dashboard/invoices?merchantId=acme").want(t, http.StatusOK, "Inbox 2 Approvals Payments")
	globex.get("/dashboard/invoices").want(t, http.StatusOK, "Inbox Approvals Payments")
	blind := w.person("acme", access.NewScopes(access.InvoicesRead))
	if words := blind.get("/dashboard/invoices").want(t, http.StatusOK).Words(); strings.Contains(words, "Inbox") {
		t.Errorf("a person who may not see payments sees\n%s", words)
	}
}
