package store_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// recordInbox reads the items of the inbox.
func recordInbox(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for _, merchant := range []string{"", "m"} {
		for _, kind := range invoice.ItemKinds {
			*what = "inbox: " + string(kind) + " of " + merchant
			_, err := read.InboxEntries(t.Context(), store.InboxFilter{MerchantID: merchant, Kind: kind, Before: "06", Limit: 50}, at(1))
			must(t, err)
		}
		*what = "inbox: counts of " + merchant
		_, err := read.CountInbox(t.Context(), merchant, at(1), 101)
		must(t, err)
	}
	*what = "inbox: objects"
	_, err := read.InvoicesByID(t.Context(), []string{"inv_1", "inv_2"})
	must(t, err)
	_, err = read.PaymentsSeen(t.Context(), []string{"01", "02"})
	must(t, err)
	_, err = read.RefundRecordsByID(t.Context(), []string{"ref_1", "ref_2"})
	must(t, err)
	*what = "inbox: refunds of payments"
	_, err = read.RecordsOfPayments(t.Context(), []string{"pay_1", "pay_2"})
	must(t, err)
}
