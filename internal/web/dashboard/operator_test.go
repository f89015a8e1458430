package dashboard_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
)

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
