package settle_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/api/apitest"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// TestOnUnattributed checks that an event is sent when one is stored,
// once, and none that has an invoice.
func TestOnUnattributed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(990_000))
		w.mine(start+11, w.pay(inv.TransferAmount))
		w.final()
		if diff := cmp.Diff([]string{p.ID}, w.unattributedIDs); diff != "" {
			t.Errorf("told of (-want +got):\n%s", diff)
		}
	})
}

func TestUnattributedEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		asks := []invoice.EventType{invoice.EventUnattributed}
		for merchant, c := range map[string]struct {
			stored []invoice.EventType // with its endpoint; nil for no endpoint
			wanted bool
		}{
			"curious-": {nil, true}, "asked-": {asks, true}, "silent-": {[]invoice.EventType{}, false}, "": {nil, false},
		} {
			w := db.world(t)
			w.merchant = merchant + w.merchant
			if c.stored != nil {
				seal := func(int64) ([]byte, string, error) { return []byte("x"), "key", nil }
				_, err := db.store.PutEndpoint(t.Context(), store.EndpointRow{MerchantID: w.merchant, URL: "https://shop.example/", Optional: c.stored}, seal)
				w.must(err)
			}
			inv := w.create()
			p := w.unattributedPayment(start+10, invoice.NewAmount(990_000))
			w.reorg(1)
			w.mine(start+12, p.Transfer) // sent once
			w.mine(start+13, w.pay(inv.TransferAmount))
			w.final()
			rows, err := db.store.Events(t.Context(), store.EventFilter{MerchantID: w.merchant, Type: invoice.EventUnattributed, Limit: 10})
			w.must(err)
			if (len(rows) == 1) != c.wanted || len(rows) > 1 {
				t.Fatalf("%q is sent %d events", merchant, len(rows))
			}
			if !c.wanted {
				continue
			}
			var body struct {
				Type string
				Data apitypes.UnattributedData
			}
			w.must(json.Unmarshal(rows[0].Body, &body))
			if body.Data.Payment.ID != p.ID || len(body.Data.Candidates) != 1 || rows[0].InvoiceID != "" || rows[0].DeliveryID == "" {
				t.Fatalf("the event is %+v with %s", rows[0].Event, rows[0].Body)
			}
			if c := body.Data.Candidates[0]; c.InvoiceID != inv.ID || c.AmountDifference != "-10000" {
				t.Errorf("the candidate is %+v", c)
			}
			w.must(apitest.Event(t, rows[0].Body))
		}
	})
}
