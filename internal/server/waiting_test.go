package server

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/keyring"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/webhook"
)

// TestEventsWaitForAnEndpoint creates an invoice for a merchant without an
// endpoint: its event is shown as waiting, and comes once there is one.
func TestEventsWaitForAnEndpoint(t *testing.T) {
	text, err := keyring.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := keyring.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header.Get(webhook.HeaderEvent) }))
	t.Cleanup(receiver.Close)
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{
		Chains: []Chain{c}, Merchants: Merchants{Endpoints: map[string]poster.Endpoint{"m": {}}},
		Keyring: keyring.New(key), WebhookAllow: poster.Loopback(),
	}).url
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	a := ask(t, http.MethodGet, base+"/api/events", "")
	if !strings.Contains(a.body, `"waitingFor":"endpoint"`) || strings.Contains(a.body, "nextAttemptAt") || !strings.Contains(a.body, `"attempts":0`) {
		t.Errorf("while it waits the events are %s", a.body)
	}
	if a := ask(t, http.MethodPut, base+"/api/merchants/m/webhook", `{"url":"`+receiver.URL+`"}`); a.status != http.StatusOK && a.status != http.StatusCreated {
		t.Fatalf("set the endpoint: %d %s", a.status, a.body)
	}
	select {
	case typ := <-arrived:
		if typ != "invoice.created" {
			t.Errorf("%s came", typ)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing came")
	}
	if a := ask(t, http.MethodGet, base+"/api/events", ""); strings.Contains(a.body, "waitingFor") {
		t.Errorf("afterwards the events are %s", a.body)
	}
}
