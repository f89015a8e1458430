package report_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dev/seed"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// BenchmarkStatement makes statements of months of a merchant with 100,000 invoices of a year.
func BenchmarkStatement(b *testing.B) {
	for name, url := range dbtest.MigratedDatabases() {
		b.Run(name, func(b *testing.B) {
			until := time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC)
			s := seeded(b, url(b), seed.Config{Invoices: 100_000, Merchants: 1, Open: 250, Until: until, BlockTime: 2 * time.Second})
			for _, month := range []time.Month{time.November, time.October, time.March} {
				b.Run(month.String(), func(b *testing.B) {
					from := time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
					r := report.Request{
						MerchantID: seed.Merchant(0), From: from, To: from.AddDate(0, 1, 0), Location: time.UTC,
						Decimals: func(string, string) (int, bool) { return 6, true },
					}
					for b.Loop() {
						if _, err := report.NewStatement(b.Context(), report.NewReader(s), r); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// seeded returns a database with rows, which are added up.
func seeded(b *testing.B, url string, c seed.Config) *db.DB {
	b.Helper()
	s := dbtest.Open(b, url)
	rows, err := seed.New(c)
	if err == nil {
		err = ledger.LoadInvoices(b.Context(), s, rows.Batches(), func(db.LoadProgress) {})
	}
	rollups := report.NewRollups(s, func() time.Time { return c.Until }, slog.New(slog.DiscardHandler))
	for more := err == nil; more && err == nil; {
		more, err = rollups.Advance(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}
