package ledger_test

import (
	"testing"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// BenchmarkBlock stores blocks of 500 payments that each pay an invoice of one price, and makes them final.
func BenchmarkBlock(b *testing.B) {
	for name, url := range dbtest.MigratedDatabases() {
		b.Run(name, func(b *testing.B) {
			u := url(b)
			d := &database{store: dbtest.Open(b, u), sql: dbtest.SQL(b, u)}
			benchmarkBlock(b, d.world(b))
		})
	}
}

func benchmarkBlock(b *testing.B, w *world) {
	b.Helper()
	const payments = 500
	w.create() // so that the address is indexed
	var observed, confirmed time.Duration
	for b.Loop() {
		b.StopTimer()
		block := w.next(w.head().Time.Unix() + 1)
		var invoices []invoice.Invoice
		for i := range payments {
			t := w.pay(invoice.NewAmount(uint64(3_000_000 + 1000*w.txs)))
			t.Position = invoice.Position{BlockNumber: block.Number, BlockHash: block.Hash, BlockTime: block.Time, LogIndex: i}
			block.Transfers = append(block.Transfers, t)
			inv := w.insertable(uint64(w.txs))
			inv.Amount, inv.TransferAmount = invoice.NewAmount(3_000_000), t.Amount
			invoices = append(invoices, inv)
		}
		w.insert(invoices)
		_, err := w.db.store.UpdateStatistics(b.Context())
		w.must(err)
		b.StartTimer()
		began := time.Now()
		w.must(w.Observe(b.Context(), w.chainKey, []ledger.Block{block}))
		observed += time.Since(began)
		w.blocks = append(w.blocks, block)
		began = time.Now()
		w.must(w.Confirm(b.Context(), w.chainKey, block.Header))
		confirmed += time.Since(began)
	}
	b.ReportMetric(float64(observed.Microseconds())/float64(b.N)/payments, "µs/payment-stored")
	b.ReportMetric(float64(confirmed.Microseconds())/float64(b.N)/payments, "µs/payment-final")
}
