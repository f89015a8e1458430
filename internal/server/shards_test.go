package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

// TestShards runs two services on separate databases that read the same chain, each for another
// merchant. A block pays both: each service has only its own payment, and their ids are disjoint.
func TestShards(t *testing.T) {
	t.Parallel()
	c, blocks, _ := scriptedChain(t, "house", 7)
	now := time.Unix(blocks.Head().Time, 0)
	var urls [2]string
	var made [2]apitypes.CreateInvoiceResponse
	var transfers []chaintest.Tx
	for i := range urls {
		urls[i] = startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}, Now: func() time.Time { return now }}).url
		await(t, urls[i], "ready", func(status int, _ health) bool { return status == http.StatusOK })
		address := invoice.Address{0x11, byte(i)}
		a := ask(t, http.MethodPost, urls[i]+"/api/invoices", fmt.Sprintf(
			`{"merchantId":"shop%d","merchantAddress":"%s","amount":"1000000","currency":"USDC","chainKey":"house","expiresAt":%d}`, i, address, now.Add(time.Hour).Unix()))
		if err := json.Unmarshal([]byte(a.body), &made[i]); a.status != http.StatusCreated || err != nil {
			t.Fatalf("%d %s, %v", a.status, a.body, err)
		}
		amount, err := invoice.ParseAmount(made[i].Invoice.TransferAmount)
		if err != nil {
			t.Fatal(err)
		}
		transfers = append(transfers, chaintest.NewTx(chaintest.Transfer(testToken, invoice.Address{0x22}, address, amount)))
	}
	blocks.Mine(transfers...)
	blocks.MineEmpty(2)
	seen := make(map[string]string)
	for i, url := range urls {
		var paid apitypes.InvoiceResponse
		for range 3 { // an answer may come for the payment that is not final yet
			getInto(t, url+"/api/invoices/"+made[i].ID+"?wait=30", &paid)
		}
		if paid.Invoice.Status != apitypes.StatusPaid {
			t.Errorf("the invoice of service %d is %s, want paid", i, paid.Invoice.Status)
		}
		var events apitypes.EventList
		getInto(t, url+"/api/events", &events)
		var payments apitypes.PaymentList
		getInto(t, url+"/api/payments", &payments)
		if len(payments.Payments) != 1 || payments.Payments[0].InvoiceID != made[i].ID {
			t.Errorf("service %d has the payments %+v, want the one of %s", i, payments.Payments, made[i].ID)
		}
		ids := []string{made[i].ID}
		for _, e := range events.Events {
			var event struct{ ID string }
			if err := json.Unmarshal(e.Event, &event); err != nil || e.InvoiceID != made[i].ID {
				t.Errorf("service %d has the event %s, %v; want those of %s", i, e.Event, err, made[i].ID)
			}
			ids = append(ids, event.ID)
		}
		for _, p := range payments.Payments {
			ids = append(ids, p.ID)
		}
		for _, id := range ids {
			if seen[id] != "" {
				t.Errorf("%s is an id of both services", id)
			}
			seen[id] = url
		}
	}
}

// getInto requests an object.
func getInto(t *testing.T, url string, into any) {
	t.Helper()
	a := ask(t, http.MethodGet, url, "")
	if err := json.Unmarshal([]byte(a.body), into); a.status != http.StatusOK || err != nil {
		t.Fatalf("GET %s: %d %s, %v", url, a.status, a.body, err)
	}
}
