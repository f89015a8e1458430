package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestOptionalEventsSetThroughTheAPI sets an endpoint that asks for payment.unattributed, and then pays too little.
func TestOptionalEventsSetThroughTheAPI(t *testing.T) {
	receiver, arrived := newReceiver(t)
	config, c, _ := scriptedChain(t, "house", 7)
	base := startServer(t, Config{
		Chains: []Chain{config}, Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {}}}, Database: dbtest.Migrated(t),
		Keyring: keyringtest.New(t), WebhookAllow: webhooks.Loopback(),
	}).url
	const asks = `"optionalEvents":["payment.unattributed"]`
	hook := base + "/api/merchants/m/webhook"
	if a := ask(t, http.MethodPut, hook, `{"url":"`+receiver+`",`+asks+`}`); a.status != http.StatusCreated || !strings.Contains(a.body, asks) {
		t.Fatalf("set the endpoint: %d %s", a.status, a.body)
	}
	if a := ask(t, http.MethodGet, hook, ""); !strings.Contains(a.body, asks) {
		t.Errorf("the endpoint is shown as %s", a.body)
	}
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	merchant, err := invoice.ParseAddress("0x1111111111111111111111111111111111111111")
	expect.OK(t, err)
	c.Mine(chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{1}, merchant, invoice.NewAmount(990_000))))
	for deadline := time.After(2 * time.Minute); ; {
		select {
		case typ := <-arrived:
			if typ == string(invoice.EventUnattributed) {
				return
			}
		case <-deadline:
			t.Fatalf("payment.unattributed was not delivered; the payments are %s", ask(t, http.MethodGet, base+"/api/payments?include=unattributed,pending", "").body)
		}
	}
}
