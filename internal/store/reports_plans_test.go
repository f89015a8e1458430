package store_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// recordReports reads first and later pages of reports.
func recordReports(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for _, merchant := range []string{"", "m"} {
		for _, after := range []string{"", "x"} {
			*what = "report: of " + merchant + " after " + after
			f := store.ReportFilter{MerchantID: merchant, From: at(1), To: at(1000), After: at(7), AfterID: after, Limit: 500}
			_, err := read.ReportedPayments(t.Context(), f)
			must(t, err)
			_, err = read.ReportedRefunds(t.Context(), f)
			must(t, err)
			_, err = read.TxShares(t.Context(), f)
			must(t, err)
			_, err = read.SettledAmounts(t.Context(), f)
			must(t, err)
		}
	}
	for _, merchant := range []string{"", "m"} {
		*what = "summary: of " + merchant
		_, err := read.Rollups(t.Context(), store.RollupFilter{MerchantID: merchant, From: at(1), To: at(1000), Limit: 500})
		must(t, err)
		_, err = read.DayRollups(t.Context(), store.RollupFilter{MerchantID: merchant, From: at(1), To: at(1000), Limit: 500})
		must(t, err)
		*what = "sums: of " + merchant
		_, err = read.InvoicedAmounts(t.Context(), merchant, invoice.Expired, at(1), 500)
		must(t, err)
	}
	*what = "summary: progress"
	_, err := read.RollupsThrough(t.Context())
	must(t, err)
	_, err = read.StaleRollups(t.Context(), at(1), at(1000), 100)
	must(t, err)
	_, err = read.RollupsBetween(t.Context(), at(1), at(1000))
	must(t, err)
	for _, after := range []string{"", "inv_1"} {
		*what = "report: stated after " + after
		_, err := read.StatedInvoices(t.Context(), store.StatedFilter{MerchantID: "m", From: at(1), To: at(1000), After: after, End: "inv_9", Limit: 500})
		must(t, err)
	}
	*what = "report: stated earlier"
	must(t, read.EarlierInvoices(t.Context(), store.EarlierFilter{MerchantID: "m", From: at(100), To: at(1000), End: "inv_9", Limit: 1}, func([]store.StatedInvoice) error { return nil }))
	*what = "report: between"
	_, err = read.ConfirmedPaymentsBetween(t.Context(), "inv_1", invoice.Position{BlockNumber: 1}, invoice.Position{BlockNumber: 9}, 500)
	must(t, err)
}
