package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
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
			w.must(w.attribute(p, inv))
		}
		entry := check(p.ID, access.ActionAttributionAssign, access.ActorOpen, w.merchant, "", `{"invoiceId":"`+inv.ID+`","by":"maria","note":"she wrote to us"}`)

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

// TestChainAudits audits the blocks of a chain from its start on, and the blocks of back-fills.
func TestChainAudits(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		audits := func() []ledger.ChainAudit {
			all, err := w.ChainAudits(t.Context(), w.chainKey)
			w.must(err)
			return all
		}
		check := func(want ...ledger.ChainAudit) {
			t.Helper()
			expect.NoDiff(t, cmp.Diff(want, audits()), "audits")
		}
		recent := ledger.ChainAudit{Part: ledger.AuditNew, Next: 101}
		check(recent)
		w.must(w.AdvanceAudit(t.Context(), w.chainKey, recent, 104, ledger.AuditCounts{Header: 1, Receipts: 2}))
		w.must(w.AdvanceAudit(t.Context(), w.chainKey, recent, 105, ledger.AuditCounts{Node: 1})) // another process was first
		recent = ledger.ChainAudit{Part: ledger.AuditNew, Next: 104, Counted: ledger.AuditCounts{Header: 1, Receipts: 2}}
		check(recent)

		var blocks []ledger.Block
		for i := range int64(4) { // up to block 104
			w.mine(start + i)
			blocks = append(blocks, w.blocks[len(w.blocks)-1])
		}
		w.final()
		w.rescan()
		w.fill(101, blocks[0].Header)
		w.fill(102, blocks[2].Header)
		older := ledger.ChainAudit{Part: ledger.AuditOlder, Next: 101, Last: new(uint64(103))}
		check(recent, older)
		w.must(w.AdvanceAudit(t.Context(), w.chainKey, older, 104, ledger.AuditCounts{Unverified: 3}))
		w.fill(104, blocks[3].Header)
		check(recent, ledger.ChainAudit{Part: ledger.AuditOlder, Next: 104, Last: new(uint64(104)), Counted: ledger.AuditCounts{Unverified: 3}})
	})
}

// TestRecordedTransactions asks for transactions with payments, with orphaned payments and without payments.
func TestRecordedTransactions(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		paid, lost := w.pay(inv.TransferAmount), w.pay(invoice.NewAmount(7))
		w.mine(start+1, paid)
		w.mine(start+2, lost)
		w.reorg(1)
		got, err := w.RecordedTransactions(t.Context(), w.chainKey, []invoice.Hash{paid.TxHash, lost.TxHash, w.hash("unknown")})
		w.must(err)
		expect.NoDiff(t, cmp.Diff(map[invoice.Hash]bool{paid.TxHash: true}, got), "recorded")
	})
}

// TestMayBeRefunds asks for accounts that may get a refund: one that has paid, one with a prepared refund, and another.
func TestMayBeRefunds(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		p := w.paid(1_000)
		prepared := w.mustPrepare(p, 5, to(invoice.Address{7}))
		payer, recipient := ledger.Pair{Payer: p.From, Receiver: p.To}, ledger.Pair{Payer: prepared.To, Receiver: p.To}
		got, err := w.MayBeRefunds(t.Context(), w.chainKey, []ledger.Pair{{Payer: invoice.Address{8}, Receiver: p.To}, payer, recipient, {Payer: p.To, Receiver: p.From}})
		w.must(err)
		expect.NoDiff(t, cmp.Diff(map[ledger.Pair]bool{payer: true, recipient: true}, got), "may be refunds")
	})
}
