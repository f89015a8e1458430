package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
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
	if page := w.person("acme", access.Read).get("/dashboard"); strings.Contains(page.words(), "Needs a decision") {
		t.Error("something needs a decision before anything happened")
	}
	w.payment("4700000")
	acme := w.person("acme", access.Read)
	acme.get("/dashboard").want(t, http.StatusOK, "Needs a decision", "No invoice 1", "Settled today", "9.80", "Yesterday: –", "USDC received by day", "1 invoice · house", "No event has failed.",
		"house Behind: ")
	w.person("globex", access.Read).get("/dashboard").want(t, http.StatusOK, "Settled today –", "1 invoice · house")
	w.operator.get("/dashboard").want(t, http.StatusOK, "9.80", "2 invoices · house")
	w.operator.get("/dashboard?merchantId=globex").want(t, http.StatusOK, "Settled today –", "1 invoice · house")
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
	if page := p.get("/dashboard").want(t, http.StatusOK, "Heute eingegangen"); page.named("html")[0].attrs["lang"] != "de" {
		t.Errorf("the page is in %q", page.named("html")[0].attrs["lang"])
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
	if !slices.Contains(op.get("/dashboard/invoices").links(), path) {
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
	if slices.Contains(owner.get("/dashboard/invoices").links(), path) {
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
	if slices.ContainsFunc(owner.get("/dashboard/invoices").links(), func(a string) bool { return strings.HasPrefix(a, "/dashboard/operator") }) {
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
	if slices.Contains(auditor.get("/dashboard/operator/setup").actions(), "/dashboard/operator/setup") {
		t.Error("who may only read has a form that creates a merchant")
	}
	w.person("", access.NewScopes(access.EventsRead)).get("/dashboard/operator/setup").want(t, 200, "First invoice")
	auditor.post("/dashboard/operator/chains/house/rescan", url.Values{"from": {"0"}, "confirm": {house}}).want(t, 403)
	if slices.Contains(auditor.get("/dashboard/operator/chains/house").actions(), "/dashboard/operator/chains/house/rescan") {
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
	if slices.Contains(page.actions(), path+"/resume") {
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
	w.await("the halt", func() bool { return strings.Contains(op.get(path).words(), "block 3 was replaced") })
	halted := op.get(path).want(t, 200, "Halted")
	w.forgetConfirmations()
	op.submit(halted, path+"/resume", url.Values{"confirm": {house}}).want(t, 200, "Is it still you?")
	op.submit(op.get("/dashboard/confirm"), "/dashboard/confirm", url.Values{"key": {op.key}}).want(t, 200)
	op.submit(halted, path+"/resume", url.Values{"confirm": {house}}).want(t, 200)
	w.await("the chain to go on", func() bool { return !strings.Contains(op.get(path).words(), "block 3 was replaced") })
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
		page = w.operator.get("/dashboard/operator/chains/" + house).words()
		return strings.Contains(page, "blockReceipts: refused, not asked for since")
	})
	if !strings.Contains(page, "Calls a day") {
		t.Errorf("the page does not say how many calls a day there are: %s", page)
	}
}
