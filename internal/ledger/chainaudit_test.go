package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

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
