package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// recordRefundLists reads pages of refunds with all combinations of filters.
func recordRefundLists(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for i := range 1 << 7 {
		pick := func(bit int, value string) string {
			if i>>bit&1 == 0 {
				return ""
			}
			return value
		}
		*what = fmt.Sprintf("refunds %d", i)
		_, err := read.RefundRecords(t.Context(), store.RefundFilter{
			MerchantID: pick(0, "m"), PaymentID: pick(1, "pay_1"), InvoiceID: pick(2, "inv_1"), Status: invoice.RefundStatus(pick(3, "pending")),
			ChainKey: pick(4, "base"), TxHash: pick(5, invoice.Hash{1}.String()), Before: pick(6, "l5"), Limit: 50,
		})
		must(t, err)
	}
}

// wantNotFound returns nil if err is ErrNotFound.
func wantNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return errors.Join(err, errors.New("something was found"))
}

// refundOf returns a pending refund of a payment.
func refundOf(p store.PaymentRow) invoice.Refund {
	r := invoice.Refund{ID: "ref_of_" + p.ID, PaymentID: p.ID, Status: invoice.Pending, ObservedAt: at(1235), Transfer: p.Transfer}
	r.From, r.To, r.Ordinal = r.To, r.From, 99
	return r
}
