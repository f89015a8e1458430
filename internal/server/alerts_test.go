package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/alerttest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// metricsOf polls /metrics until they contain all of the lines, and returns them.
func metricsOf(t *testing.T, base string, lines ...string) string {
	t.Helper()
	poll, deadline := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer poll.Stop()
	for {
		text, missing := ask(t, http.MethodGet, base+"/metrics", "").body, ""
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				missing = line
			}
		}
		if missing == "" {
			return text
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("the metrics lack %s:\n%s", missing, text)
		}
	}
}

// TestExtraAlertsOfAHealthyService expects that no alert fires, except for the head of the chain, which
// does not move here.
func TestExtraAlertsOfAHealthyService(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	receiver, received := newReceiver(t)
	base := startServer(t, Config{
		Chains: []Chain{c}, WebhookAllow: webhooks.Loopback(), Build: Build{Version: "v1.2.3", Commit: "abc"},
		Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: receiver, WebhookSecret: "whsec_of_merchant_m"}}},
	}).url
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	<-received
	text := metricsOf(t, base, "quittance_ready 1", "quittance_database_up 1", `quittance_chain_block{block="indexed",chain="house"} 3`,
		`quittance_events_total{type="invoice.created"} 1`, `quittance_events_total{type="invoice.paid"} 0`)
	if !strings.Contains(text, `quittance_build_info{commit="abc",goversion="go1.`) || !strings.Contains(text, `,version="v1.2.3"} 1`) {
		t.Errorf("the metrics lack the build:\n%s", text)
	}
	alerttest.Fire(t, text, "QuittanceChainHeadStuck")
}

// TestExtraAlertsOfATroubledService checks that alerts fire for a chain without a usable node, a halted
// chain, an endpoint that is gone, and a merchant without an endpoint.
func TestExtraAlertsOfATroubledService(t *testing.T) {
	t.Parallel()
	house, _ := scripted(t, "house", 7)
	halted, _ := scripted(t, "halted", 8)
	down, _ := scripted(t, "down", 9)
	down.RPC = []string{"http://127.0.0.1:1"}
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	t.Cleanup(gone.Close)
	database := dbtest.Migrated(t)
	first := startServer(t, Config{Chains: []Chain{halted}, Database: database})
	await(t, first.url, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Indexed > 0 })
	first.stop()
	expect.OK(t, <-first.ended)
	halt(t, database, "halted", "finalized block replaced")
	base := startServer(t, Config{
		Chains: []Chain{house, halted, down}, Database: database, WebhookAllow: webhooks.Loopback(),
		Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: gone.URL, WebhookSecret: "whsec_of_merchant_m"}, "n": {}}},
	}).url
	statusOf(t, base, "troubles", func(st admin.Status) bool {
		return st.Chains[1].Halted != "" && st.Chains[2].Providers[0].State == chain.StateBackoff && st.Chains[2].Error != ""
	})
	for _, merchant := range []string{"m", "n"} {
		if a := createFor(t, base, merchant, "house"); a.status != http.StatusCreated {
			t.Fatalf("create: %d %s", a.status, a.body)
		}
	}
	text := metricsOf(t, base, "quittance_ready 0", "quittance_database_up 1", `quittance_chain_halted{chain="halted"} 1`,
		`quittance_webhook_endpoints{breaker="gone"} 1`, "quittance_webhook_waiting_merchants 1",
		`quittance_provider_state{chain="down",node="1",provider="http://127.0.0.1:1",state="backoff"} 1`)
	alerttest.Fire(t, text, "QuittanceNotReady", "QuittanceChainHalted", "QuittanceChainHeadStuck", "QuittanceNoUsableNode", "QuittanceNodeBackoff",
		"QuittanceEndpointDown", "QuittanceMerchantWithoutEndpoint")
}
