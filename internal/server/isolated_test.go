package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/mailer"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestIsolated runs a copy of a service that has an event to deliver. Its invoice expires, which
// writes an event. The copy sends no webhook, no mail, and no call to a node except reads.
func TestIsolated(t *testing.T) {
	t.Parallel()
	for name, database := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			receiver, received := newReceiver(t)
			config, c, node := scriptedChain(t, "house", 7)
			conn := database(t)
			live := startServer(t, Config{Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}}, Database: conn})
			await(t, live.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			made := create(t, live.url, "house")
			if made.status != http.StatusCreated {
				t.Fatalf("create: %d %s", made.status, made.body)
			}
			live.stop()
			expect.OK(t, <-live.ended)
			base, log, wrote := startIsolated(t, config, node, conn, receiver)

			var inv apitypes.InvoiceResponse
			expect.OK(t, json.Unmarshal([]byte(made.body), &inv))
			c.MineEmpty(2) // long after the invoice's end
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			for !strings.Contains(ask(t, http.MethodGet, base+"/api/invoices/"+inv.Invoice.ID, "").body, `"status":"expired"`) {
				if !clock.Sleep(ctx, 5*time.Millisecond, nil) {
					t.Fatalf("the copy does not read the chain: %s", ask(t, http.MethodGet, base+"/readyz", "").body)
				}
			}
			checkDeliveries(t, base)
			checkMarks(t, base, inv.Invoice.ID, log)
			if len(received) > 0 {
				t.Errorf("the copy sent the webhook %s", <-received)
			}
			if got := wrote(); len(got) > 0 {
				t.Errorf("the copy called %v, which are no reads", got)
			}
		})
	}
}

// startIsolated starts an isolated copy that is configured as the live service is, with everything that could send. It
// returns the methods that writers call and that were called at its node.
func startIsolated(t *testing.T, config Chain, node *chaintest.Node, conn, receiver string) (base string, log *logtest.Buffer, wrote func() []string) {
	t.Helper()
	key := expect.Must(crypto.GenerateKey())
	var mu sync.Mutex
	var calls []string
	node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_sendRawTransaction" || method == "eth_getTransactionCount" || method == "eth_estimateGas" {
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, method)
		}
		return nil
	})
	config.OperatorKey = key
	log = new(logtest.Buffer)
	base = startServer(t, Config{
		Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: receiver, WebhookSecret: "whsec_of_the_shop"}}}, Database: conn, Isolated: true, IsCopy: true,
		WebhookAllow: webhooks.Loopback(), SMTP: &mailer.SMTP{Host: "127.0.0.1", Port: 1}, PublicURL: "https://pay.example.com", Hosts: []string{"pay.example.com"},
		KeepEvents: time.Nanosecond, KeepAttempts: time.Nanosecond, Logger: slog.New(slog.NewTextHandler(log, nil)),
	}).url
	return base, log, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return calls
	}
}

// checkDeliveries expects that the live service still delivers its event, and that the copy never delivers its events.
func checkDeliveries(t *testing.T, base string) {
	t.Helper()
	var list apitypes.EventList
	expect.OK(t, json.Unmarshal([]byte(ask(t, http.MethodGet, base+"/api/events", "").body), &list))
	if len(list.Events) != 2 {
		t.Errorf("the log has %d events", len(list.Events))
	}
	for _, e := range list.Events {
		if scheduled := e.Delivery != nil; scheduled != (e.Envelope().Type == apitypes.EventInvoiceCreated) {
			t.Errorf("%s has the delivery %+v", e.Envelope().Type, e.Delivery)
		}
	}
}

// checkMarks wants pages, answers, the readiness and the log to show that it is a copy, and every request that would
// change something to be refused.
func checkMarks(t *testing.T, base, invoiceID string, log *logtest.Buffer) {
	t.Helper()
	for path, shows := range map[string]string{
		"/readyz": `"isolated":true`, "/api/operator/status": `"isolated":true`, "/checkout/" + invoiceID: "This is an isolated copy",
		"/dashboard/sign-in": "This is an isolated copy", "/checkout/inv_x": "This is an isolated copy", "/api/invoices": "{", "/metrics": "quittance_", "/nothing": "not_found",
	} {
		a := ask(t, http.MethodGet, base+path, "")
		if a.header.Get("X-Service-Copy") != "isolated" || !strings.Contains(a.body, shows) {
			t.Errorf("GET %s: %d, header %q, lacks %q: %.300s", path, a.status, a.header.Get("X-Service-Copy"), shows, a.body)
		}
	}
	for _, request := range append(unsafeRequests(t), [2]string{http.MethodPost, "/dashboard/webhook/ping"}, [2]string{http.MethodPost, "/refunds/x"}) {
		if a := ask(t, request[0], base+request[1], "{}"); a.status != http.StatusForbidden || !strings.Contains(a.body, "isolated copy") {
			t.Errorf("%s %s: %d %s", request[0], request[1], a.status, a.body)
		}
	}
	if a := ask(t, http.MethodPost, base+"/dashboard/sign-in", ""); a.status == http.StatusForbidden {
		t.Errorf("nobody can sign in to look at the copy: %s", a.body)
	}
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "isolated=true") {
			t.Errorf("a line of the log does not show that it is of a copy: %s", line)
		}
	}
}

// TestIsolatedAddress refuses a copy that others could reach.
func TestIsolatedAddress(t *testing.T) {
	t.Parallel()
	listeners, err := ListenAll(t.Context(), []Address{{Listen: "0.0.0.0:0"}})
	expect.OK(t, err)
	err = Run(t.Context(), Config{Listeners: listeners, Isolated: true, Database: "sqlite:" + t.TempDir() + "/q.db", Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "want a loopback address") {
		t.Errorf("got %v", err)
	}
}
