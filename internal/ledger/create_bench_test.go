package ledger_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// BenchmarkCreate creates invoices from 64 goroutines, each with its own price, with and
// without an idempotency key.
func BenchmarkCreate(b *testing.B) {
	for name, url := range dbtest.MigratedDatabases() {
		for _, keyed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/keyed=%t", name, keyed), func(b *testing.B) {
				u := url(b)
				d := &database{store: dbtest.Open(b, u)}
				w := d.world(b)
				var n atomic.Uint64
				b.SetParallelism(32) // times GOMAXPROCS, which was 2 for the recorded figures
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						i := n.Add(1)
						req := ledger.CreateRequest{Once: ledger.Once{Scope: w.merchant}, Draft: w.draft()}
						req.Draft.Amount = invoice.NewAmount(10_000 * i)
						if keyed {
							req.Key = fmt.Sprint("order-", i)
						}
						if _, err := w.Create(b.Context(), req); err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
			})
		}
	}
}
