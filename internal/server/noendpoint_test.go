package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestEventsWaitForAnEndpoint creates an invoice for a merchant without an
// endpoint. The event is shown as waiting, and is delivered once an endpoint is set.
func TestEventsWaitForAnEndpoint(t *testing.T) {
	receiver, arrived := newReceiver(t)
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{
		Chains: []Chain{c}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}},
		Keyring: keyringtest.New(t), WebhookAllow: webhooks.Loopback(),
	}).url
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	a := ask(t, http.MethodGet, base+"/api/events", "")
	if !strings.Contains(a.body, `"waitingFor":"endpoint"`) || strings.Contains(a.body, "nextAttemptAt") || !strings.Contains(a.body, `"attempts":0`) {
		t.Errorf("while it waits the events are %s", a.body)
	}
	if a := ask(t, http.MethodPut, base+"/api/merchants/m/webhook", `{"url":"`+receiver+`"}`); a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("set the endpoint: %d %s", a.status, a.body)
	}
	select {
	case typ := <-arrived:
		if typ != "invoice.created" {
			t.Errorf("received %s", typ)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("no event was delivered")
	}
	if a := ask(t, http.MethodGet, base+"/api/events", ""); strings.Contains(a.body, "waitingFor") {
		t.Errorf("afterwards the events are %s", a.body)
	}
}
