package ledger_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// ends shortens a hash or an address as pages do.
func ends(hex string, n int) string { return hex[:n+2] + "…" + hex[len(hex)-n:] }

// TestFindInvoices searches an invoice by everything that a support person may be given. Another
// merchant does not find it.
func TestFindInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		inv, other := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, rowtest.At(1000)), "m"), rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, rowtest.At(2_000_000)), "n")
		inv.Details.Reference, other.Merchant = "order 10017 für Zoë", invoice.Address{0xbb}
		inv.Details.Description, inv.Details.Customer.Email = "Two Ladders, ÖLGEMÄLDE", "Maria.Rossi@example.com"
		other.Details.Description = "Two brushes"
		rowtest.Insert(t, s, inv, other)
		p := rowtest.SamplePayment(1)
		p.ID = invoice.TransferID(invoice.PrefixPayment, "base", p.TxHash, 0)
		p.InvoiceID, p.MerchantID, p.Method, p.From = inv.ID, "m", invoice.ByAmount, invoice.Address{0xcd, 0xef}
		event := webhooks.Event{ID: "evt_00000000000000000000000001", Type: invoice.EventReceived, Subject: p.ID, MerchantID: "m", InvoiceID: inv.ID, CreatedAt: rowtest.At(1), Body: []byte("{}")}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
		})
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return webhooks.InsertEvents(ctx, tx, []webhooks.Event{event})
		})
		upper := func(hex string) string { return "0x" + strings.ToUpper(hex[2:]) }
		spaced := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, rowtest.At(1_000_000)), "m")
		spaced.Details.Reference, spaced.Merchant = " order 10018 ", invoice.Address{0xbb}
		rowtest.Insert(t, s, spaced)
		for _, text := range []string{" order 10018 ", "order 10018", "order 10018 "} {
			want := 0
			if text == spaced.Details.Reference {
				want = 1
			}
			if found, err := ledger.NewReader(s).FindInvoices(t.Context(), text, "m", 50); err != nil || len(found) != want {
				t.Errorf("%q: found %d, %v; want %d", text, len(found), err, want)
			}
		}
		for _, text := range []string{
			inv.ID, inv.ID[:12], inv.Details.Reference, inv.CommitmentID.String(), upper(inv.CommitmentID.String()), inv.CommitmentID.String()[:10], inv.CommitmentID.String()[:50],
			p.ID, p.ID[:12], event.ID, p.TxHash.String(), p.TxHash.String()[:12], p.From.String(), upper(p.From.String()), inv.Merchant.String(),
			" " + inv.ID + "\n", strings.ToUpper(inv.ID), "\t" + inv.Details.Reference + " ", strings.ToUpper(p.ID[:12]), strings.ToUpper(event.ID),
			"order 1001", "order 10017 f", event.ID[:12], p.ID[:10] + "…" + p.ID[24:], inv.ID[:20] + "…" + inv.ID[28:],
			ends(p.TxHash.String(), 8), ends(upper(p.TxHash.String()), 4), ends(inv.CommitmentID.String(), 10), ends(p.From.String(), 8), ends(upper(inv.Merchant.String()), 4),
			strings.ReplaceAll(ends(p.From.String(), 8), "…", "..."), p.From.String()[:10],
			"ladders", "two ladders", "LADD two", "ölgem", "maria.rossi@example.com", "Maria.Rossi@", "rossi", "two maria",
			strings.ToUpper(p.TxHash.String()), "\u00a0" + strings.ToUpper(inv.Merchant.String()) + " ",
		} {
			for merchant, want := range map[string]int{"m": 1, "n": 0, "": 1} {
				found, err := ledger.NewReader(s).FindInvoices(t.Context(), text, merchant, 50)
				if err != nil || len(found) != want || want == 1 && found[0].ID != inv.ID {
					t.Errorf("%q for %q: found %d, %v; want %d", text, merchant, len(found), err, want)
				}
			}
		}
		near := inv.CommitmentID
		near[len(near)-1]++
		for _, text := range []string{near.String(), "inv_x", "pay_", "0x", "0x12", "order 10018x", "evt_2", "evt_00000000000000000000000002", "ladders brushes", "adders", "0x" + strings.Repeat("e", 40), ends(near.String(), 10), p.ID[:10] + "…zzzzzz", p.ID[:10] + "…" + strings.Repeat("_", 6), event.ID[:12] + `…\`, inv.ID[:20] + `…\`, "\U0001F600", "0xzz00000000", "ref_1", "clm_1", "%", " ", "Order 10017 für Zoë", "inv_ " + inv.ID[4:]} {
			if found, err := ledger.NewReader(s).FindInvoices(t.Context(), text, "", 50); err != nil || len(found) != 0 {
				t.Errorf("%q: found %d, %v; want none", text, len(found), err)
			}
		}
		loose := rowtest.SamplePayment(2)
		loose.ID = invoice.TransferID(invoice.PrefixPayment, "base", loose.TxHash, 0)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{loose})
		})
		for text, want := range map[string]string{
			p.ID: p.ID, p.ID[:10]: p.ID, ends(p.TxHash.String(), 8): p.ID, p.From.String(): p.ID, ends(p.From.String(), 4): p.ID,
			loose.ID[:12]: loose.ID, loose.TxHash.String(): loose.ID, loose.ID[:12] + `…\`: "", "pay_": "", "Maria": "",
		} {
			found, err := ledger.NewReader(s).FindPayments(t.Context(), text, "", 50)
			if err != nil || (len(found) == 1) != (want != "") || want != "" && found[0].ID != want {
				t.Errorf("%q: found %d payments, %v; want %q", text, len(found), err, want)
			}
			if found, err := ledger.NewReader(s).FindPayments(t.Context(), text, "n", 50); err != nil || len(found) > 0 {
				t.Errorf("%q: another merchant finds %d payments, %v", text, len(found), err)
			}
		}
		if found, err := ledger.NewReader(s).FindInvoices(t.Context(), "inv_", "", 1); err != nil || len(found) != 1 || found[0].ID != other.ID {
			t.Errorf("the newest: %d, %v", len(found), err)
		}
		h, err := ledger.NewReader(s).InvoiceHistory(t.Context(), inv.ID)
		if err != nil || h.Invoice.ID != inv.ID || len(h.Payments) != 1 || len(h.Events) != 1 || h.Truncated {
			t.Errorf("history %+v, %v", h, err)
		}
	})
}
