package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/webhook"
)

// leaseTime is the time within which a delivery that a killed program had leased must be
// attempted again.
const leaseTime = time.Minute

// refuse responds with a failure of the receiver.
func refuse(w http.ResponseWriter, _ *http.Request, _ event) {
	http.Error(w, "the warehouse is on fire", http.StatusInternalServerError)
}

// metric returns the value of the first metric with a prefix, or "".
func (w *world) metric(name string) string {
	w.Helper()
	for line := range strings.Lines(string(w.do(http.MethodGet, "/metrics", "").body)) {
		if strings.HasPrefix(line, name+" ") {
			return strings.TrimSpace(strings.TrimPrefix(line, name))
		}
	}
	return ""
}

// awaitEvent waits until the record of an event meets a condition.
func (w *world) awaitEvent(id string, limit time.Duration, ok func(apitypes.EventRecord) bool) apitypes.EventRecord {
	w.Helper()
	var got apitypes.EventRecord
	ctx := within(w, limit)
	err := await(ctx, func() bool {
		var err error
		if got, err = w.api().Event(ctx, id); err != nil {
			w.Fatal(err)
		}
		return ok(got)
	})
	if err != nil {
		w.Fatalf("the event did not become what it should: %+v, delivery %+v", got, got.Delivery)
	}
	return got
}

// created returns the one event of an invoice that was just created.
func (w *world) created(invoiceID string) apitypes.EventRecord {
	w.Helper()
	for e, err := range w.api().Events(w.Context(), client.EventFilter{InvoiceID: invoiceID}) {
		if err != nil {
			w.Fatal(err)
		}
		return e
	}
	w.Fatalf("no event has the invoice %s", invoiceID)
	return apitypes.EventRecord{}
}

// TestExtraWebhookFailed lets a delivery fail at its deadline, and lists and redelivers it with
// the commands.
func TestExtraWebhookFailed(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	w, c := startWorld(t, "--block-time", quiet, "--webhook-url", r.URL)
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	r.behave(refuse)
	made := w.create(w.draft("4900000"))
	e := w.created(made.ID)
	w.awaitEvent(e.ID(), patience, func(e apitypes.EventRecord) bool { return e.Delivery.Attempts == 1 })
	c.kill()
	past := time.Now().Add(-time.Second).UnixMilli()
	if _, err := dbtest.SQL(t, "sqlite:"+w.dir+"/quittance.db").ExecContext(t.Context(),
		"UPDATE deliveries SET due_ms = $1, deadline_ms = $1", past); err != nil {
		t.Fatal(err)
	}
	w.start()
	failed := w.awaitEvent(e.ID(), leaseTime, func(e apitypes.EventRecord) bool { return e.Delivery.Status == apitypes.DeliveryFailed })
	if len(failed.Attempts) != 1 || failed.Attempts[0].StatusCode != http.StatusInternalServerError ||
		!strings.Contains(failed.Attempts[0].Excerpt, "the warehouse is on fire") {
		t.Errorf("the attempts are %+v", failed.Attempts)
	}
	if got := w.metric("quittance_webhook_failed_total"); got != "1" {
		t.Errorf("%q deliveries are counted as failed", got)
	}

	r.behave(nil)
	command := func(want string, args ...string) {
		t.Helper()
		c := launch(t, append(args, "--url", w.info.Load().BaseURL)...)
		if code := c.exit(t, patience); code != 0 || !regexp.MustCompile(want).MatchString(c.stdout.String()) {
			t.Errorf("%q: exit code %d; it does not print %s:\n%s%s", args, code, want, c.stdout.String(), c.stderr.String())
		}
	}
	command(e.ID()+` .* failed after 1 attempt`, "events", "list", "--delivery", "failed")
	command(`^1 event is sent again\.\n$`, "events", "redeliver", "--failed")
	came := r.await(within(t, patience), webhook.InvoiceCreated, made.ID)
	got := w.awaitEvent(e.ID(), patience, func(e apitypes.EventRecord) bool { return e.Delivery.Status == apitypes.DeliveryDelivered })
	if came.DeliveryID != e.Delivery.ID || got.Delivery.ID != e.Delivery.ID || got.Delivery.Attempts != 2 || came.attempts != 2 {
		t.Errorf("it came as %s at attempt %d, and is recorded as %+v", came.DeliveryID, came.attempts, got.Delivery)
	}
	command(`(?s)delivered after 2 attempts.*\n1 .* 500 .*\n2 .* 204`, "events", "show", e.ID())
	command(`^There are no such events\.\n$`, "events", "list", "--delivery", "failed")
	r.clean()
}

// allowConfig configures a service with a merchant on the same machine.
const allowConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
merchants:
  - {id: acme, webhookUrl: "%s", webhookSecretEnv: ACME_SECRET}
webhooks: {allow: [%s]}
` + keySetting + `
chains:
  - {chainKey: testnet, idleInterval: 1s, chainId: %d, rpc: ["%s"], finality: 2, tokens: [` + tokenEntry + `]}
`

// TestExtraWebhookAllow checks that a service posts to its own machine only if the
// configuration allows it.
func TestExtraWebhookAllow(t *testing.T) {
	t.Parallel()
	chainWorld, _ := startWorld(t, "--block-time", quiet)
	info := *chainWorld.info.Load()
	r := newReceiver(t)
	r.setSecret("whsec_of_acme_shop")
	dir := t.TempDir()
	w := &world{TB: t, dir: dir, http: withKey(chainWorld.http)}
	serve := func(allow string) *child {
		file := filepath.Join(dir, "quittance.yaml")
		text := fmt.Sprintf(allowConfig, filepath.Join(dir, "pay.db"), r.URL, allow, info.Chain.ChainID, info.Chain.RPCURL, "USDC", info.Chain.Token)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := launchWith(t, []string{"ACME_SECRET=whsec_of_acme_shop"}, "serve", "--config", file)
		var found []string
		if err := await(within(t, patience), func() bool {
			found = readyLine.FindStringSubmatch(c.stderr.String())
			return found != nil || c.ended()
		}); err != nil || found == nil {
			t.Fatalf("serve is not ready: %v", err)
		}
		w.info.Store(&dev.Info{BaseURL: found[1], Merchant: dev.MerchantInfo{ID: "acme", Address: info.Merchant.Address}, Chain: dev.ChainInfo{ChainKey: "testnet"}})
		return c
	}
	c := serve("10.0.0.0/8")
	made := w.create(w.draft("4900000"))
	got := w.awaitEvent(w.created(made.ID).ID(), patience, func(e apitypes.EventRecord) bool { return e.Delivery.Attempts > 0 })
	if a := got.Attempts[0]; a.StatusCode != 0 || !strings.Contains(a.Error, "webhooks.allow") {
		t.Errorf("the attempt is %+v", a)
	}
	if events, _ := r.got(); len(events) != 0 {
		t.Fatalf("the receiver was reached: %+v", events)
	}
	c.kill()
	serve("10.0.0.0/8, 127.0.0.1/32")
	if came := r.await(within(t, leaseTime), webhook.InvoiceCreated, made.ID); came.DeliveryID != got.Delivery.ID {
		t.Errorf("it came as %s, not as %s", came.DeliveryID, got.Delivery.ID)
	}
	r.clean()
}
