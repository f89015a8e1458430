package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

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
