package db_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestPagesOfInvoices walks random lists in random pages while invoices are created. Every
// invoice that existed at the start is listed once, newest first.
func TestPagesOfInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			prefix := fmt.Sprintf("inv_%05d_", round)
			merchants := []string{fmt.Sprintf("m%d-a", round), fmt.Sprintf("m%d-b", round)}
			var there []invoice.Invoice
			create := func(n int) {
				var made []invoice.Invoice
				for range n {
					inv := rowtest.Sample(fmt.Sprintf("%s%05d", prefix, len(there)+len(made)), rapid.SampledFrom(merchants).Draw(r, "merchant"))
					inv.Status = rapid.SampledFrom([]invoice.Status{invoice.Open, invoice.Expired, invoice.Void}).Draw(r, "status")
					made = append(made, inv)
				}
				there = append(there, made...)
				rowtest.Insert(t, s, made...)
			}
			create(rapid.IntRange(1, 12).Draw(r, "invoices"))
			f := ledger.InvoiceFilter{
				MerchantID: rapid.SampledFrom(merchants).Draw(r, "of merchant"),
				Status:     rapid.SampledFrom([]invoice.Status{"", invoice.Open, invoice.Expired, invoice.Paid}).Draw(r, "in status"),
				Limit:      rapid.IntRange(1, 6).Draw(r, "page"),
			}
			var want []string
			for _, inv := range slices.Backward(there) {
				if inv.MerchantID == f.MerchantID && (f.Status == "" || inv.Status == f.Status) {
					want = append(want, inv.ID)
				}
			}
			var got []string
			for {
				page, _, err := ledger.NewReader(s).Invoices(t.Context(), f)
				if err != nil || len(page) > f.Limit {
					r.Fatalf("a page of %d of %d: %v", len(page), f.Limit, err)
				}
				for _, inv := range page {
					got = append(got, inv.ID)
				}
				if len(page) < f.Limit {
					break
				}
				f.Before = page[len(page)-1].ID
				create(rapid.IntRange(0, 1).Draw(r, "meanwhile"))
			}
			if !slices.Equal(got, want) {
				r.Fatalf("listed %v, want %v", got, want)
			}
		})
		all, _, err := ledger.NewReader(s).Invoices(t.Context(), ledger.InvoiceFilter{Limit: 100_000})
		rowtest.Must(t, err)
		if !slices.IsSortedFunc(all, func(a, b invoice.Invoice) int { return strings.Compare(b.ID, a.ID) }) || len(all) == 0 {
			t.Errorf("the list of all %d is not in order", len(all))
		}
	})
}

func TestPagesOfPayments(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.StartChain(t, s, "other")
		// The address is m's settlement address on one chain, and n's on the other.
		shared, elsewhere := rowtest.Sample("inv_2", "n"), rowtest.Sample("inv_3", "n")
		shared.Merchant, elsewhere.ChainKey = invoice.Address{0xab}, "other"
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), shared, elsewhere)
		owner := map[string]string{"base": "m", "other": "n"}
		var there []ledger.PaymentRow
		rapid.Check(t, func(r *rapid.T) {
			create := func(n int, changes bool) {
				for range n {
					p := rowtest.SamplePayment(len(there))
					p.ChainKey = rapid.SampledFrom([]string{"base", "other"}).Draw(r, "chain")
					p.Status = rapid.SampledFrom([]invoice.PaymentStatus{invoice.Pending, invoice.Confirmed, invoice.Orphaned}).Draw(r, "status")
					if p.Status == invoice.Confirmed {
						p.ConfirmedAt = rowtest.At(9)
					}
					switch rapid.IntRange(0, 2).Draw(r, "of") {
					case 1:
						p.InvoiceID, p.MerchantID, p.Method = "inv_1", "m", invoice.ByAmount
					case 2:
						p.InvoiceID, p.MerchantID, p.Method = "inv_2", "n", invoice.ByAmount
					}
					if changes && len(there) > 0 && rapid.IntRange(0, 4).Draw(r, "again") == 0 { // the payment moves to another invoice
						n := rapid.IntRange(0, len(there)-1).Draw(r, "which")
						p.ID, p.SeenID, p.TxHash, p.ChainKey = there[n].ID, there[n].SeenID, there[n].TxHash, there[n].ChainKey
						there[n] = p
					} else {
						there = append(there, p)
					}
					rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
						return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p})
					})
				}
			}
			create(rapid.IntRange(0, 6).Draw(r, "payments"), true)
			f := ledger.PaymentFilter{
				MerchantID:     rapid.SampledFrom([]string{"", "m", "n", "nobody"}).Draw(r, "of merchant"),
				ChainKey:       rapid.SampledFrom([]string{"", "base", "other", "nochain"}).Draw(r, "on chain"),
				IncludePending: rapid.Bool().Draw(r, "pending"),

				IncludeUnattributed: rapid.Bool().Draw(r, "unattributed"),
				Limit:               rapid.IntRange(1, 200).Draw(r, "page"),
			}
			var want []string
			for _, p := range slices.Backward(there) {
				merchant := p.MerchantID
				if !p.Attributed() {
					merchant = owner[p.ChainKey]
				}
				if (p.Attributed() || f.IncludeUnattributed) && (f.IncludePending || p.Status == invoice.Confirmed) &&
					(f.MerchantID == "" || merchant == f.MerchantID) && (f.ChainKey == "" || p.ChainKey == f.ChainKey) {
					want = append(want, p.SeenID)
				}
			}
			var got []string
			for {
				page, _, err := ledger.NewReader(s).Payments(t.Context(), f)
				if err != nil || len(page) > f.Limit {
					r.Fatalf("a page of %d of %d: %v", len(page), f.Limit, err)
				}
				for _, p := range page {
					got = append(got, p.SeenID)
				}
				if len(page) < f.Limit {
					break
				}
				f.Before = f.Position(page[len(page)-1])
				create(rapid.IntRange(0, 1).Draw(r, "meanwhile"), false)
			}
			if !slices.Equal(got, want) {
				r.Fatalf("listed %v, want %v", got, want)
			}
		})
	})
}

func TestExpiringInvoices(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		var made []invoice.Invoice
		for i, expires := range []int64{1300, 1100, 1200} {
			inv := rowtest.Sample(fmt.Sprint("inv_", i), "m")
			inv.ExpiresAt, inv.FromBlock = invoice.Unix(expires), 7
			made = append(made, inv)
		}
		closed, other := rowtest.Sample("inv_closed", "m"), rowtest.Sample("inv_other", "m")
		closed.ExpiresAt, closed.Status = invoice.Unix(1050), invoice.Expired
		other.ExpiresAt, other.ChainKey = invoice.Unix(1050), "other"
		rowtest.Insert(t, s, append(made, closed, other)...)
		for before, want := range map[int64]int{1100: 0, 1101: 1, 1200: 1, 1201: 2, 9999: 3} {
			if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 7, invoice.Unix(before), 10); err != nil || len(got) != want {
				t.Errorf("expiring before %d: %d, %v, want %d", before, len(got), err, want)
			}
		}
		if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 0, invoice.Unix(9999), 2); err != nil || len(got) != 2 || got[0].ID != "inv_1" || got[1].ID != "inv_2" {
			t.Errorf("the first two that expire: %+v, %v", got, err)
		}
		if got, err := ledger.ExpiringInvoices(t.Context(), s, "base", 8, invoice.Unix(9999), 10); err != nil || len(got) != 0 {
			t.Errorf("%d expire that the block can pay, %v", len(got), err)
		}
	})
}
