package ledger_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestCreate(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		draft := w.draft()
		draft.LineItems = []invoice.LineItem{{Label: "tea & <biscuits> ☕", Amount: draft.Amount}}
		inv, err := w.Create(t.Context(), ledger.CreateRequest{Draft: draft})
		w.must(err)
		suffix := number(inv.TransferAmount) - 1_000_000
		if suffix < 1 || suffix > 999 {
			t.Errorf("the suffix is %d, want 1 to 999", suffix)
		}
		want := invoice.Invoice{
			Terms: invoice.Terms{Merchant: draft.Merchant, Token: usdc, Amount: draft.Amount, ExpiresAt: draft.ExpiresAt},
			ID:    inv.ID, MerchantID: w.merchant, Currency: "USDC", ChainKey: w.chainKey, Status: invoice.Open,
			LineItems: draft.LineItems, CreatedAt: invoice.Unix(start), FromBlock: 100, Registry: registry, Collection: invoice.Direct, TransferAmount: inv.TransferAmount,
		}
		want.CommitmentID = chain.CommitmentID(1337, registry, want.Terms, inv.ID)
		expect.NoDiff(t, cmp.Diff(want, inv, comparer), "created")
		expect.NoDiff(t, cmp.Diff(want, w.invoice(inv.ID), comparer), "stored")
		events := dbtest.Events(t, w.db.sql, w.merchant)
		if len(events) != 1 || events[0].DeliveryID == "" || events[0].Due.Unix() != start || events[0].Subject != inv.ID {
			t.Fatalf("events %+v, want one with a delivery that is due now", events)
		}
		var body struct {
			ID, Type  string
			CreatedAt int64
			Data      struct{ Invoice struct{ ID, Status string } }
		}
		w.must(json.Unmarshal(events[0].Body, &body))
		if body.ID != events[0].ID || body.Type != "invoice.created" || body.CreatedAt != start || body.Data.Invoice.ID != inv.ID || body.Data.Invoice.Status != "open" {
			t.Errorf("the event reads %s", events[0].Body)
		}
		expect.NoDiff(t, cmp.Diff([]string{"open due 0"}, w.intents(inv)), "intents")
		expect.NoDiff(t, cmp.Diff([]string{"deliveries", "intents " + w.chainKey}, w.signals()), "signals")
	})
}

// comparer compares amounts by value, and treats nil and empty line items alike.
var comparer = cmp.Options{cmp.Comparer(func(a, b invoice.Amount) bool { return a == b }), cmpopts.EquateEmpty()}

func TestCreateWithoutEndpointOrRegistry(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		silent := w.create(func(draft *invoice.Draft) { draft.MerchantID = "silent" })
		events := dbtest.Events(t, w.db.sql, "silent")
		if len(events) != 1 || events[0].DeliveryID != "" {
			t.Errorf("events of a merchant without an endpoint: %+v, want one without a delivery", events)
		}
		if got := w.intents(silent); len(got) != 1 {
			t.Errorf("intents %v", got)
		}
		plain := w.create(func(draft *invoice.Draft) { draft.ChainKey = "unregistered" })
		if got := w.intents(plain); len(got) != 0 {
			t.Errorf("intents on a chain without a registry: %v", got)
		}
		if want := chain.CommitmentID(7, invoice.Address{}, plain.Terms, plain.ID); plain.CommitmentID != want {
			t.Errorf("commitment %s, want %s", plain.CommitmentID, want)
		}
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created"}, w.eventTypes(plain)), "events")
	})
}

func TestCreateErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for field, by := range map[string]func(*invoice.Draft){
			"merchantId":      func(draft *invoice.Draft) { draft.MerchantID = "stranger" },
			"chainKey":        func(draft *invoice.Draft) { draft.ChainKey = "base" },
			"currency":        func(draft *invoice.Draft) { draft.Currency = "usdc" },
			"merchantAddress": func(draft *invoice.Draft) { draft.Merchant = usdc },
			"amount":          func(draft *invoice.Draft) { draft.Amount = invoice.Amount{} },
			"expiresAt":       func(draft *invoice.Draft) { draft.ExpiresAt = invoice.Unix(start) },
		} {
			for _, key := range []string{"", "key"} {
				draft := w.draft()
				by(&draft)
				_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Key: key}, Draft: draft})
				var wrong *invoice.FieldError
				if !errors.As(err, &wrong) || wrong.Field != field {
					t.Errorf("%s, key %q: %v", field, key, err)
				}
			}
		}
		draft := w.draft()
		draft.Merchant = registry
		var wrong *invoice.FieldError
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: draft}); !errors.As(err, &wrong) || wrong.Field != "merchantAddress" {
			t.Errorf("the registry's address: %v", err)
		}
		draft.ChainKey = "unregistered" // a chain without that registry
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: draft}); err != nil {
			t.Errorf("the address of another chain's registry: %v", err)
		}
		if found, _, err := ledger.NewReader(w.db.store).Invoices(t.Context(), ledger.InvoiceFilter{MerchantID: w.merchant, Limit: 10}); err != nil || len(found) != 1 {
			t.Errorf("%d invoices, %v, want the last alone", len(found), err)
		}
	})
}

// TestCreateConcurrently creates invoices of few amounts from many goroutines at two
// replicas. Each is stored with its event, and transfer amounts are unique.
func TestCreateConcurrently(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		replicas := []*ledger.Service{w.Service, w.service()}
		const n = 400
		invoices := make([]invoice.Invoice, n)
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				draft := w.draft()
				draft.Amount = invoice.NewAmount(uint64(1_000_000 + 300*(i%3)))
				draft.MerchantID = []string{w.merchant, w.merchant + "-b", w.merchant + "-c", w.merchant + "-d"}[i%4]
				invoices[i], errs[i] = replicas[i%2].Create(t.Context(), ledger.CreateRequest{Draft: draft})
			})
		}
		wg.Wait()
		w.must(errors.Join(errs...))
		used := make(map[invoice.Amount]string)
		for _, inv := range invoices {
			if diff := cmp.Diff(inv, w.invoice(inv.ID), comparer); diff != "" {
				t.Errorf("created and stored differ:\n%s", diff)
			}
			if inv.TransferAmount.IsZero() {
				t.Errorf("%s has no transfer amount", inv.ID)
			}
			if other := used[inv.TransferAmount]; other != "" {
				t.Errorf("%s and %s have the transfer amount %s", inv.ID, other, inv.TransferAmount)
			}
			used[inv.TransferAmount] = inv.ID
		}
		events := 0
		for _, suffix := range []string{"", "-b", "-c", "-d"} {
			events += len(dbtest.Events(t, w.db.sql, w.merchant+suffix))
		}
		if events != n {
			t.Errorf("%d events, want %d", events, n)
		}
	})
}

func TestSuffixesRunOut(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		// Every suffix except each tenth is taken.
		const left = invoice.MaxSuffix / 10
		var taken []invoice.Invoice
		for suffix := range uint64(invoice.MaxSuffix + 1) {
			if suffix%10 > 0 {
				taken = append(taken, w.insertable(suffix))
			}
		}
		taken[500].ExpiresAt = invoice.Unix(start + 60)
		w.insert(taken)
		free := make(map[invoice.Amount]bool)
		for range left {
			inv := w.create()
			if suffix := number(inv.TransferAmount) - 1_000_000; suffix > 999 || suffix%10 > 0 || free[inv.TransferAmount] {
				t.Fatalf("the suffix %d is out of range or used already", suffix)
			}
			free[inv.TransferAmount] = true
		}
		for _, s := range []*ledger.Service{w.Service, w.Service, w.service()} {
			inv, err := s.Create(t.Context(), ledger.CreateRequest{Draft: w.draft()})
			w.must(err)
			if !inv.TransferAmount.IsZero() {
				t.Errorf("invoice 1000 has the transfer amount %s", inv.TransferAmount)
			}
			if diff := cmp.Diff(inv, w.invoice(inv.ID), comparer); diff != "" {
				t.Errorf("created and stored differ:\n%s", diff)
			}
		}
		for what, by := range map[string]func(*invoice.Draft){
			"amount":  amount(2_000_000),
			"address": func(draft *invoice.Draft) { draft.Merchant = invoice.Address{1} },
			"chain":   func(draft *invoice.Draft) { draft.ChainKey = "unregistered" },
		} {
			if inv := w.create(by); inv.TransferAmount.IsZero() {
				t.Errorf("an invoice of another %s has no transfer amount", what)
			}
		}
		// One invoice is paid. Its transfer amount is free after the quarantine, once free amounts are looked up again.
		freed := taken[500]
		w.mine(start+1, w.pay(freed.TransferAmount))
		w.final()
		w.advance(freed.ExpiresAt.Unix() + minQuarantine + 1)
		if inv := w.create(); inv.TransferAmount != freed.TransferAmount {
			t.Errorf("the transfer amount is %s, want %s, which is free again", inv.TransferAmount, freed.TransferAmount)
		}
	})
}

func TestSuffixOverflow(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		none := w.create(func(draft *invoice.Draft) { draft.Amount = invoice.MaxAmount })
		if !none.TransferAmount.IsZero() || !w.invoice(none.ID).TransferAmount.IsZero() {
			t.Errorf("the largest amount has the transfer amount %s", none.TransferAmount)
		}
		for range 5 {
			one := w.create(func(draft *invoice.Draft) { draft.Amount = invoice.MaxAmount.Minus(invoice.NewAmount(2)) })
			if room := invoice.MaxAmount.Minus(one.Amount); !one.TransferAmount.IsZero() && room.Less(one.TransferAmount.Minus(one.Amount)) {
				t.Errorf("the transfer amount %s has wrapped around", one.TransferAmount)
			}
		}
	})
}

// TestCreateAfterLostRows creates an invoice after the database lost a settlement address, as after a failover to a
// standby. The address must be inserted again, because its payments would not be indexed otherwise.
func TestCreateAfterLostRows(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.create()
		for _, statement := range []string{
			"DELETE FROM deliveries WHERE merchant_id = '" + w.merchant + "'",
			"DELETE FROM events WHERE merchant_id = '" + w.merchant + "'",
			"DELETE FROM intents WHERE chain_key = '" + w.chainKey + "'",
			"DELETE FROM transfer_amounts WHERE chain_key = '" + w.chainKey + "'",
			"DELETE FROM invoices WHERE merchant_id = '" + w.merchant + "'",
			"DELETE FROM settlement_addresses WHERE merchant_id = '" + w.merchant + "'",
		} {
			expect.Success(t)(w.db.sql.ExecContext(t.Context(), statement))
		}
		w.create()
		watched, err := w.Watched(t.Context(), w.chainKey, []invoice.Address{w.address})
		if err != nil || !watched[w.address] {
			t.Errorf("the address is watched: %v, %v", watched, err)
		}
	})
}
