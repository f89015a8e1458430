package ledger_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/apitest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestOnUnattributed checks that the signal is called once for each stored unattributed
// payment, and for no attributed one.
func TestOnUnattributed(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(990_000))
		w.mine(start+11, w.pay(inv.TransferAmount))
		w.final()
		expect.NoDiff(t, cmp.Diff([]string{p.ID}, w.unattributedIDs), "unattributed payments")
		reader := ledger.NewReader(w.db.store)
		to, err := reader.UnattributedTo(t.Context(), w.invoice(inv.ID), 5)
		w.must(err)
		newest, err := reader.NewestUnattributed(t.Context(), w.chainKey, 5)
		w.must(err)
		if len(to) != 1 || to[0].ID != p.ID || len(newest) != 1 || newest[0].ID != p.ID {
			t.Errorf("unattributed payments are %+v and %+v, want %s", to, newest, p.ID)
		}
		late := w.invoice(inv.ID)
		late.FromBlock = p.BlockNumber
		if to, err = reader.UnattributedTo(t.Context(), late, 5); err != nil || len(to) != 0 {
			t.Errorf("from before the invoice: %+v, %v", to, err)
		}
	})
}

// TestUnattributedEventOfLostInvoice expects payment.unattributed to show that the payment was for an
// invoice that the database has lost.
func TestUnattributedEventOfLostInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.merchant = "curious-" + w.merchant
		w.create()
		lost := w.lostInvoice(nil)
		w.lose(lost)
		w.mine(start+1, tagged(w.pay(invoice.NewAmount(990_000)), invoice.Evidence{Calldata: lost.CommitmentID}))
		rows, err := webhooks.NewReader(w.db.store).Events(t.Context(), webhooks.EventFilter{MerchantID: w.merchant, Type: invoice.EventUnattributed, Limit: 10})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d events, %v", len(rows), err)
		}
		var body struct{ Data apitypes.UnattributedData }
		w.must(json.Unmarshal(rows[0].Body, &body))
		if p := body.Data.Payment; p.Exception != apitypes.PaymentOfLostInvoice || p.OnChainInvoiceID != lost.CommitmentID.String() {
			t.Errorf("the payment is %+v", p)
		}
		w.must(apitest.Event(t, rows[0].Body))
	})
}

// TestNoUnattributedEventInRecovery reads a payment without an invoice during a recovery.
func TestNoUnattributedEventInRecovery(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.merchant = "curious-" + w.merchant
		w.create()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		w.mine(start+1, w.pay(invoice.NewAmount(990_000)))
		w.final()
		rows, err := webhooks.NewReader(w.db.store).Events(t.Context(), webhooks.EventFilter{MerchantID: w.merchant, Type: invoice.EventUnattributed, Limit: 10})
		if err != nil || len(rows) != 0 {
			t.Errorf("%d events, %v", len(rows), err)
		}
	})
}

func TestUnattributedEvents(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		asks := []invoice.EventType{invoice.EventUnattributed}
		for merchant, c := range map[string]struct {
			stored []invoice.EventType // expected with an endpoint; nil for no endpoint
			wanted bool
		}{
			"curious-": {nil, true}, "asked-": {asks, true}, "silent-": {[]invoice.EventType{}, false}, "": {nil, false},
		} {
			w := d.world(t)
			w.merchant = merchant + w.merchant
			if c.stored != nil {
				seal := func(int64) ([]byte, string, error) { return []byte("x"), "key", nil }
				w.must(d.store.Update(t.Context(), func(tx *db.Tx) error {
					_, err := webhooks.PutEndpoint(t.Context(), tx, webhooks.EndpointRow{MerchantID: w.merchant, URL: "https://shop.example/", Optional: c.stored}, seal)
					return err
				}))
			}
			inv := w.create()
			p := w.unattributedPayment(start+10, invoice.NewAmount(990_000))
			w.reorg(1)
			w.mine(start+12, p.Transfer) // emitted once
			w.mine(start+13, w.pay(inv.TransferAmount))
			w.final()
			rows, err := webhooks.NewReader(d.store).Events(t.Context(), webhooks.EventFilter{MerchantID: w.merchant, Type: invoice.EventUnattributed, Limit: 10})
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

// TestNoInvoiceCollectsWhatWasSeenBefore creates an invoice over the amount of an unattributed payment. A reorg mines
// the payment again in a block that can pay the invoice, and its amount must not attribute it.
func TestNoInvoiceCollectsWhatWasSeenBefore(t *testing.T) {
	t.Parallel()
	other := invoice.Evidence{Registry: invoice.Hash{0xee}} // names no invoice
	onSQLite(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			waits, between, attributed bool
			again                      invoice.Evidence // evidence of the payment when it is mined again
		}{
			"waits":                        {waits: true},
			"waits, created between":       {waits: true, between: true},
			"unattributed, other evidence": {again: other},
			"attributed, other evidence":   {again: other, attributed: true},
		} {
			w := d.world(t)
			w.late()
			const paid = 1_234_567
			older := w.create(amount(9_000_000))
			if test.attributed {
				older = w.create(amount(paid), func(d *invoice.Draft) { d.ExpiresAt = invoice.Unix(start + 10) })
			}
			unread := w.next(start + 1)
			w.blocks = append(w.blocks, unread)
			w.startLate()
			if !test.waits {
				w.fill(101, unread.Header)
			}
			p := w.pay(invoice.NewAmount(paid))
			w.mine(start+2, p)
			var collector invoice.Invoice
			if !test.between {
				collector = w.create(amount(paid))
			}
			w.reorg(1)
			if test.between {
				collector = w.create(amount(paid))
			}
			p.Evidence = test.again
			w.mine(start+20, p)
			if test.waits {
				w.fill(101, unread.Header)
			}
			w.final()
			if got := w.payment(p); got.Attributed() {
				t.Errorf("%s: the payment went to the older %t, the newer %t by %q", name, got.InvoiceID == older.ID, got.InvoiceID == collector.ID, got.Method)
			}
			if test.waits {
				continue
			}
			w = d.world(t)
			w.create(amount(9_000_000))
			p = w.pay(invoice.NewAmount(paid))
			w.mine(start+1, p)
			named := w.create(amount(paid))
			w.reorg(1)
			p.Evidence.Calldata = named.CommitmentID
			w.mine(start+2, p)
			w.checkAttributed(p, named, invoice.ByCalldata)
		}
	})
}

// TestAwaited checks Awaited before an invoice, with an open invoice, with its payment, and once the payment is final.
func TestAwaited(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		expect := func(when string, want ledger.Awaited) {
			t.Helper()
			got, err := w.Awaited(t.Context(), w.chainKey)
			w.must(err)
			expect.Equal(t, got, want, "%s:", when)
		}
		expect("without an invoice", ledger.Awaited{})
		inv := w.create()
		expect("with an open invoice", ledger.Awaited{Any: true})
		other, err := w.Awaited(t.Context(), "other")
		w.must(err)
		if other.Any {
			t.Error("something is awaited on another chain")
		}
		w.mine(w.head().Time.Unix()+1, w.pay(inv.TransferAmount))
		expect("with its payment", ledger.Awaited{Any: true, Unconfirmed: true})
		w.final()
		if w.invoice(inv.ID).Status != "paid" {
			t.Fatal("the invoice is not paid")
		}
		expect("afterwards", ledger.Awaited{})
	})
}

// another is a registry that replaces the world's.
var another = invoice.Address{0x61}

// configured returns a service of the world's chain with another registry.
func (w *world) configured(registry invoice.Address) *ledger.Service {
	return w.service(func(cfg *ledger.Config) { cfg.Chains[0].Registry = registry })
}

// due returns the kinds of the intents that are due for a registry.
func (w *world) due(registry invoice.Address) []string {
	w.t.Helper()
	intents, err := ledger.DueIntents(w.t.Context(), w.db.store, w.chainKey, registry, "", 100)
	w.must(err)
	kinds := []string{}
	for _, in := range intents {
		kinds = append(kinds, string(in.Kind)+" "+in.InvoiceID)
	}
	return kinds
}

// TestRegistryIsReplacedUnderOpenInvoices checks that the intents of an invoice keep the
// registry of its commitment, and follow that registry's events.
func TestRegistryIsReplacedUnderOpenInvoices(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.must(w.RecordRegistries(t.Context()))
		before := w.create()
		w.Service = w.configured(another)
		w.must(w.RecordRegistries(t.Context()))
		after := w.create()
		if before.Registry != registry || after.Registry != another || w.invoice(before.ID).Registry != registry {
			t.Fatalf("the invoices name the registries %s and %s", before.Registry, after.Registry)
		}
		all, err := w.Registries(t.Context(), w.chainKey)
		w.must(err)
		expect.NoDiff(t, cmp.Diff([]invoice.Address{registry, another}, all), "registries whose events count")

		// The new registry's event about an older invoice is ignored.
		b := w.next(start + 1)
		for _, inv := range []invoice.Invoice{before, after} {
			b.Registry = append(b.Registry, ledger.RegistryEvent{Registry: another, Kind: ledger.RegistryOpened, CommitmentID: inv.CommitmentID})
		}
		w.observe(b)
		w.mine(before.ExpiresAt.Unix() + 1)
		w.final()
		for inv, want := range map[*invoice.Invoice][]string{
			&before: {"open due 0", "close due 0"}, &after: {"open done 101", "close due 0"},
		} {
			expect.NoDiff(t, cmp.Diff(want, w.intents(*inv)), "intents of the invoice of %s", inv.Registry)
		}
		expect.NoDiff(t, cmp.Diff([]string{"open " + before.ID, "close " + before.ID}, w.due(registry)), "due for the registry of before")
		expect.NoDiff(t, cmp.Diff([]string{"close " + after.ID}, w.due(another)), "due for the configured registry")
		due, elsewhere, err := ledger.DueCount(t.Context(), w.db.store, w.chainKey, another)
		if err != nil || due != 1 || elsewhere != 2 {
			t.Errorf("%d are due and %d wait for another registry (%v), want 1 and 2", due, elsewhere, err)
		}
	})
}
