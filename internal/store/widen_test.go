package store_test

import (
	"fmt"
	"testing"

	"github.com/quittance/quittance/internal/store/storetest"
)

// TestUpgradeWidensConstraints upgrades a database with rows. They stay, new values are
// allowed, and invalid ones are still refused.
func TestUpgradeWidensConstraints(t *testing.T) {
	t.Parallel()
	event := func(n int, typ, invoiceID string) string {
		return fmt.Sprintf(`INSERT INTO events (id, seq, type, subject, merchant_id, invoice_id, body, created_at, delivery_id)
			VALUES ('evt_%d', %d, '%s', 's%d', 'm', %s, '{}', 1, 'dlv_%d')`, n, n, typ, n, invoiceID, n)
	}
	eachURL(t, func(t *testing.T, url string) {
		s := upgrade(t, url, 2, append(firstSchema, firstInvoice(1), firstPayment(1, "inv_1"), firstPayment(2, ""),
			event(1, "invoice.created", "'inv_1'"),
			"INSERT INTO deliveries (seq, merchant_id, due_ms, deadline_ms) VALUES (1, 'm', 1, 2)")...)
		db := storetest.SQL(t, url)
		byClaim := "UPDATE payments SET invoice_id = 'inv_1', merchant_id = 'm', method = 'by_claim', attributed_at = 5"
		for statement, allowed := range map[string]bool{
			event(2, "payment.unattributed", "NULL"):                                        true,
			event(3, "invoice.paid", "'inv_1'"):                                             true,
			event(4, "invoice.paid", "NULL"):                                                false,
			event(5, "invoice.lost", "'inv_1'"):                                             false,
			event(6, "payment.unattributed", "'inv_none'"):                                  false,
			byClaim + ", attributed_by = 'payer' WHERE id = 'pay_2'":                        true,
			byClaim + " WHERE id = 'pay_1'":                                                 false,
			"UPDATE payments SET method = 'guess' WHERE id = 'pay_1'":                       false,
			"UPDATE payments SET attributed_by = 'x', attributed_at = 1 WHERE id = 'pay_1'": false,
			"DELETE FROM events WHERE seq = 1":                                              false, // it has a delivery
		} {
			if _, err := db.ExecContext(t.Context(), statement); (err == nil) != allowed {
				t.Errorf("allowed: %t, want %t (%v)\n%s", err == nil, allowed, err, statement)
			}
		}
		r, _, err := s.EventRecord(t.Context(), "evt_1")
		must(t, err)
		if r.InvoiceID != "inv_1" {
			t.Errorf("the event that was there is %+v", r)
		}
		p, err := s.Payment(t.Context(), "pay_2")
		must(t, err)
		if p.Method != "by_claim" || p.InvoiceID != "inv_1" {
			t.Errorf("the payment is %+v", p)
		}
	})
}
