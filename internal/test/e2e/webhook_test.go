package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/webhook"
)

// leaseTime is the time within which a delivery that a killed program had leased must be attempted again.
const leaseTime = time.Minute

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
		expect.OK(w, err)
		return e
	}
	w.Fatalf("no event has the invoice %s", invoiceID)
	return apitypes.EventRecord{}
}

// allowConfig configures a service with a merchant on the same machine.
const allowConfig = `
listen: 127.0.0.1:0
database: sqlite:%s
merchants: [{id: acme, webhookUrl: "%s", webhookSecretEnv: ACME_SECRET}]
webhooks: {allow: [%s]}
` + keySetting + `
chains:
  - {chainKey: testnet, idleInterval: 1s, chainId: %d, rpc: ["%s"], finality: 2, tokens: [{currency: USDC, address: "%s"}]}
`

// TestExtraWebhookAllow checks that a service posts to its own machine only if the configuration allows it.
func TestExtraWebhookAllow(t *testing.T) {
	t.Parallel()
	g, r := newServedWorld(t), newReceiver(t)
	r.setSecret("whsec_of_acme_shop")
	g.env = []string{"ACME_SECRET=whsec_of_acme_shop"}
	serve := func(allow string) *child {
		on := g.info.Load().Chain
		g.configure(fmt.Sprintf(allowConfig, filepath.Join(g.dir, "pay.db"), r.URL, allow, on.ChainID, on.RPCURL, on.Token))
		return g.serve()
	}
	c := serve("10.0.0.0/8")
	made := g.create(g.draft("4900000"))
	got := g.awaitEvent(g.created(made.ID).ID(), patience, func(e apitypes.EventRecord) bool { return e.Delivery.Attempts > 0 })
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
