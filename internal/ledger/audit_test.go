package ledger_test

import (
	"testing"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
)

// newestEntry returns the newest entry of the audit log about an object.
func (w *world) newestEntry(object string) access.Entry {
	w.t.Helper()
	for _, e := range w.entries() {
		if e.Object == object {
			return e
		}
	}
	return access.Entry{}
}

// entries returns the audit log, newest first.
func (w *world) entries() []access.Entry {
	w.t.Helper()
	entries, err := access.NewReader(w.db.store).AuditEntries(w.t.Context(), access.AuditFilter{Limit: 1000})
	w.must(err)
	return entries
}

// TestAudit checks the audit entries of registries, manual attributions, rescans and
// resumed chains. A repeated change has no second entry.
func TestAudit(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		check := func(object string, action access.Action, actor, merchantID, before, after string) access.Entry {
			t.Helper()
			e := w.newestEntry(object)
			if e.Action != action || e.Actor != actor || e.MerchantID != merchantID || e.Before != before || e.After != after {
				t.Errorf("want %s by %s, from %s to %s; got %+v", action, actor, before, after, e)
			}
			return e
		}
		w.must(w.RecordRegistries(t.Context()))
		added := check(w.chainKey, access.ActionRegistryAdd, access.ActorConfig, "", "", w.newestEntry(w.chainKey).After)
		w.must(w.RecordRegistries(t.Context()))
		if again := w.newestEntry(w.chainKey); again.Seq != added.Seq {
			t.Errorf("a known registry is recorded as %+v", again)
		}

		inv := w.create()
		p := w.unattributedPayment(start+10, invoice.NewAmount(1_500_000))
		for range 2 {
			_, err := w.attribute(p, inv)
			w.must(err)
		}
		entry := check(p.ID, access.ActionAttributionAssign, access.ActorService, w.merchant, "", `{"invoiceId":"`+inv.ID+`","by":"maria","note":"she wrote to us"}`)

		w.rescan()
		check(w.chainKey, access.ActionChainRescan, access.ActorService, "", "", `{"from":101,"to":101}`)
		w.must(w.Halt(t.Context(), w.chainKey, "block 7 is gone"))
		for range 2 {
			w.must(w.Resume(t.Context(), w.chainKey))
		}
		check(w.chainKey, access.ActionChainResume, access.ActorService, "", `{"halted":"block 7 is gone"}`, "")
		own, err := access.NewReader(w.db.store).AuditEntries(t.Context(), access.AuditFilter{MerchantID: w.merchant, Limit: 10})
		w.must(err)
		if len(own) != 1 || own[0] != entry {
			t.Errorf("the merchant sees %+v", own)
		}
	})
}
