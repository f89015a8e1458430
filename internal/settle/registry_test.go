package settle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// another is a registry that replaces the world's.
var another = invoice.Address{0x61}

// configured returns a service of the world's chain with another registry.
func (w *world) configured(registry invoice.Address) *settle.Service {
	return w.service(func(cfg *settle.Config) { cfg.Chains[0].Registry = registry })
}

// due returns the kinds of the intents that are due for a registry.
func (w *world) due(registry invoice.Address) []string {
	w.t.Helper()
	intents, err := w.db.store.DueIntents(w.t.Context(), w.chainKey, registry, "", 100)
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
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
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
		if diff := cmp.Diff([]invoice.Address{registry, another}, all); diff != "" {
			t.Errorf("registries whose events count (-want +got):\n%s", diff)
		}

		// The new registry's event about an older invoice is ignored.
		b := w.next(start + 1)
		for _, inv := range []invoice.Invoice{before, after} {
			b.Registry = append(b.Registry, settle.RegistryEvent{Registry: another, Kind: settle.RegistryOpened, CommitmentID: inv.CommitmentID})
		}
		w.observe(b)
		w.mine(before.ExpiresAt.Unix() + 1)
		w.final()
		for inv, want := range map[*invoice.Invoice][]string{
			&before: {"open due 0", "close due 0"}, &after: {"open done 101", "close due 0"},
		} {
			if diff := cmp.Diff(want, w.intents(*inv)); diff != "" {
				t.Errorf("intents of the invoice of %s (-want +got):\n%s", inv.Registry, diff)
			}
		}
		if diff := cmp.Diff([]string{"open " + before.ID, "close " + before.ID}, w.due(registry)); diff != "" {
			t.Errorf("due for the registry of before (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"close " + after.ID}, w.due(another)); diff != "" {
			t.Errorf("due for the configured registry (-want +got):\n%s", diff)
		}
		due, elsewhere, err := db.store.DueCount(t.Context(), w.chainKey, another)
		if err != nil || due != 1 || elsewhere != 2 {
			t.Errorf("%d are due and %d wait for another registry (%v), want 1 and 2", due, elsewhere, err)
		}
	})
}

// TestRegistriesOfOlderInvoices checks invoices without a recorded registry, as older
// versions left them.
func TestRegistriesOfOlderInvoices(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, db *database) {
		w := db.world(t)
		without := w.insertable(1) // created before the chain had a registry
		without.CommitmentID = chain.CommitmentID(1337, invoice.Address{}, without.Terms, without.ID)
		lost := w.insertable(2) // created with a registry that is not known
		lost.CommitmentID = chain.CommitmentID(1337, invoice.Address{9}, lost.Terms, lost.ID)
		w.insert([]invoice.Invoice{without, lost})
		named := w.create() // created last, because it takes a free transfer amount
		w.must(db.store.Update(t.Context(), func(tx *store.Tx) error {
			var intents []store.Intent
			for _, inv := range []invoice.Invoice{without, lost} {
				intents = append(intents, store.Intent{
					ID: "int_" + inv.ID, ChainKey: w.chainKey, InvoiceID: inv.ID, CommitmentID: inv.CommitmentID, Kind: invoice.IntentOpen, CreatedAt: invoice.Unix(1),
				})
			}
			return tx.InsertIntents(t.Context(), intents)
		}))
		for _, table := range []string{"invoices", "intents"} {
			_, err := db.sql.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET registry = NULL WHERE chain_key = '%s'", table, w.chainKey))
			w.must(err)
		}
		if got := w.due(registry); len(got) != 0 {
			t.Errorf("%v are due for a registry that is not known to be theirs", got)
		}
		last, err := w.AdoptRegistries(t.Context(), "")
		w.must(err)
		if again, err := w.AdoptRegistries(t.Context(), last); err != nil || again != last {
			t.Errorf("once more it examines invoices up to %s, %v", again, err)
		}
		for _, inv := range []invoice.Invoice{named, without, lost} {
			want := invoice.Address{}
			if inv.ID == named.ID {
				want = registry
			}
			if got := w.invoice(inv.ID); got.Registry != want {
				t.Errorf("the registry of %s is %s, want %s", inv.ID, got.Registry, want)
			}
		}
		if diff := cmp.Diff([]string{"open " + named.ID}, w.due(registry)); diff != "" {
			t.Errorf("due (-want +got):\n%s", diff)
		}
		left, err := db.store.InvoicesWithoutRegistry(t.Context(), "", 10_000)
		w.must(err)
		if !slices.ContainsFunc(left, func(inv invoice.Invoice) bool { return inv.ID == lost.ID }) ||
			slices.ContainsFunc(left, func(inv invoice.Invoice) bool { return inv.ID == without.ID }) {
			t.Error("want that of the lost one alone to be unknown")
		}

		// No intent is enqueued for a commitment id that differs from that of the terms.
		w.mine(named.ExpiresAt.Unix() + 1)
		w.final()
		if got := w.intents(lost); len(got) != 1 {
			t.Errorf("intents of an invoice of an unknown registry are %v, want the one that was there", got)
		}
		if got := w.intents(named); len(got) != 2 {
			t.Errorf("intents of the expired invoice are %v, want one to close", got)
		}
	})
}
