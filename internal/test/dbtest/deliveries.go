package dbtest

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// Schedule inserts an invoice of the merchant and n events about it. Their deliveries are due one
// millisecond after the other from dueMS on. It returns the events, each with the id of its delivery,
// and with its number unless another caller inserts some at the same time. The ids continue with
// `first`, so that several calls for one merchant do not collide.
func Schedule(tb testing.TB, s *db.DB, merchant string, first, n int, dueMS int64) []webhooks.Event {
	tb.Helper()
	id := fmt.Sprintf("inv_%s_%d", merchant, first)
	inv := invoice.Invoice{
		ID: id, CommitmentID: sha256.Sum256([]byte(id)), MerchantID: merchant, Currency: "USDC", ChainKey: "local",
		Status: invoice.Open, CreatedAt: invoice.Unix(1), Terms: invoice.Terms{
			Merchant: invoice.Address{1}, Token: invoice.Address{2}, Amount: invoice.NewAmount(1), ExpiresAt: invoice.Unix(2),
		},
	}
	events := make([]webhooks.Event, n)
	for i := range events {
		name := fmt.Sprintf("%s_%06d", merchant, first+i)
		events[i] = webhooks.Event{
			ID: "evt_" + name, Type: invoice.EventReceived, Subject: name, MerchantID: merchant, InvoiceID: id,
			Body: fmt.Appendf(nil, `{"id": "evt_%s","data":{"ü":" <&> "}}`, name), CreatedAt: invoice.Unix(dueMS / 1000),
			DeliveryID: "dlv_" + name, Due: time.UnixMilli(dueMS + int64(i)),
		}
	}
	before, err := webhooks.NewReader(s).LastSeq(tb.Context())
	expect.OK(tb, err)
	err = s.Update(tb.Context(), func(tx *db.Tx) error {
		settlement := access.SettlementAddress{ChainKey: inv.ChainKey, Address: inv.Merchant, MerchantID: merchant}
		if err := access.InsertSettlementAddresses(tb.Context(), tx, []access.SettlementAddress{settlement}, invoice.Unix(1)); err != nil {
			return err
		}
		if _, err := ledger.InsertInvoices(tb.Context(), tx, []invoice.Invoice{inv}); err != nil {
			return err
		}
		return webhooks.InsertEvents(tb.Context(), tx, events)
	})
	if err != nil {
		tb.Fatalf("schedule deliveries: %v", err)
	}
	for i := range events {
		events[i].Seq = before + int64(i) + 1
	}
	return events
}
