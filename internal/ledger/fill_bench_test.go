package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// BenchmarkFill measures the rate at which a gap is filled, with transfers that each pay an invoice,
// and with transfers that pay no invoice. Each iteration adds 10,000 transfers to the same database,
// so -benchtime=10x is a back-fill of 100,000.
func BenchmarkFill(b *testing.B) {
	for name, url := range dbtest.MigratedDatabases() {
		for _, paying := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/paying=%t", name, paying), func(b *testing.B) {
				u := url(b)
				d := &database{store: dbtest.Open(b, u), sql: dbtest.SQL(b, u)}
				benchmarkFill(b, d.world(b), paying)
			})
		}
	}
}

func benchmarkFill(b *testing.B, w *world, paying bool) {
	b.Helper()
	const round, call, perBlock = 10_000, 2_500, 50
	w.create() // so that the address is indexed
	near := w.next(start)
	far := w.next(start)
	far.Number, far.Parent = 1_000_000_000, w.hash("left out")
	w.must(w.Observe(b.Context(), w.chainKey, []ledger.Block{near, far}))
	w.must(w.Confirm(b.Context(), w.chainKey, far.Header))
	next := w.rescan().Next
	for b.Loop() {
		b.StopTimer()
		var blocks []ledger.Block
		var invoices []invoice.Invoice
		for range round / perBlock {
			block := ledger.Block{Header: invoice.Header{Number: next + uint64(len(blocks)), Time: invoice.Unix(start + 1)}}
			block.Hash = w.hash("block", block.Number)
			for i := range perBlock {
				t := w.pay(invoice.NewAmount(uint64(3_000_000 + 1000*w.txs)))
				t.Position = invoice.Position{BlockNumber: block.Number, BlockHash: block.Hash, BlockTime: block.Time, LogIndex: i}
				block.Transfers = append(block.Transfers, t)
				if paying {
					inv := w.insertable(uint64(w.txs))
					inv.Amount, inv.TransferAmount = t.Amount.Minus(invoice.NewAmount(7)), t.Amount
					invoices = append(invoices, inv)
				}
			}
			blocks = append(blocks, block)
		}
		w.insert(invoices)
		b.StartTimer()
		for len(blocks) > 0 {
			part := blocks[:call/perBlock]
			blocks = blocks[len(part):]
			through := part[len(part)-1].Header
			w.fill(next, through, part...)
			next = through.Number + 1
		}
	}
	b.ReportMetric(float64(round*b.N)/b.Elapsed().Seconds(), "transfers/s")
}
