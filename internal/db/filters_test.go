package db_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestFilteredLists compares lists by random filters with a scan of all rows.
func TestFilteredLists(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.StartChain(t, s, "other")
		var invoices []invoice.Invoice
		var payments []ledger.PaymentRow
		for i := range 60 {
			created := int64(1000 + 100*(i/2))
			inv := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, invoice.Unix(created).Add(time.Duration(i)*time.Millisecond)), []string{"m", "n"}[i%2])
			inv.CreatedAt, inv.ExpiresAt = invoice.Unix(created), invoice.Unix(created+9999)
			inv.Amount, inv.Merchant = invoice.NewAmount(uint64(100+i%3)), invoice.Address{0xa0 | byte(i%4)}
			inv.Status = []invoice.Status{invoice.Open, invoice.Expired, invoice.Void}[i/3%3]
			inv.Details = invoice.Details{
				Reference: []string{"", "order-1", "order-2", "ORDER-1"}[i%4], Customer: invoice.Customer{ID: []string{"", "c-1", "c-2"}[i%3], Email: []string{"", "c-1"}[i/3%2]},
				Metadata: map[string]string{"colour": []string{"red", "blue"}[i/2%2], "size": fmt.Sprint(i % 3)},
			}
			invoices = append(invoices, inv)
		}
		rowtest.Insert(t, s, invoices...)
		for i := range invoices {
			invoices[i].Exception = []invoice.Exception{"", "", invoice.Late, invoice.Underpaid}[i%4]
		}
		for i := range 90 {
			p := rowtest.SamplePayment(i)
			p.ChainKey, p.TxHash[0] = []string{"base", "other"}[i%2], byte(i%7)
			p.From, p.To, p.Amount = invoice.Address{byte(1 + i%3)}, invoice.Address{0xa0 | byte(i%4)}, invoice.NewAmount(uint64(1+i%5))
			if i%6 != 0 {
				inv := invoices[i%4]
				p.InvoiceID, p.MerchantID, p.Method = inv.ID, inv.MerchantID, invoice.ByAmount
			}
			switch {
			case i%11 == 0:
				p.Status = invoice.Orphaned
			case i%5 != 0:
				p.Status, p.ConfirmedAt = invoice.Confirmed, invoice.Unix(int64(1000+i*7%40))
			}
			payments = append(payments, p)
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return errors.Join(ledger.UpdateInvoices(ctx, tx, invoices), ledger.SavePayments(ctx, tx, payments))
		})
		rapid.Check(t, func(r *rapid.T) { checkFilteredInvoices(t, r, s, invoices) })
		rapid.Check(t, func(r *rapid.T) { checkFilteredPayments(t, r, s, payments) })
	})
}

func drawSpan(r *rapid.T, name string, first, last int64) (s db.Span) {
	if rapid.Bool().Draw(r, name+" after") {
		s.From = invoice.Unix(rapid.Int64Range(first, last).Draw(r, "from"))
	}
	if rapid.Bool().Draw(r, name+" before") {
		s.To = invoice.Unix(rapid.Int64Range(first, last).Draw(r, "to"))
	}
	return s
}

func within(s db.Span, t time.Time) bool {
	return !t.Before(s.From) && (s.To.IsZero() || t.Before(s.To)) && (s.IsZero() || !t.IsZero())
}

func checkFilteredInvoices(t *testing.T, r *rapid.T, s *db.DB, all []invoice.Invoice) {
	t.Helper()
	f := ledger.InvoiceFilter{
		MerchantID: rapid.SampledFrom([]string{"", "m", "n"}).Draw(r, "merchant"),
		Status:     rapid.SampledFrom([]invoice.Status{"", "", invoice.Open, invoice.Expired}).Draw(r, "status"),
		Exception:  rapid.SampledFrom([]invoice.Exception{"", "", invoice.Late}).Draw(r, "exception"),
		Amount:     rapid.SampledFrom([]string{"", "", "100", "101"}).Draw(r, "amount"),
		To:         rapid.SampledFrom([]string{"", "", invoice.Address{0xa2}.String()}).Draw(r, "to"),
		Created:    drawSpan(r, "created", 900, 4200),
		Reference:  rapid.SampledFrom([]string{"", "", "order-1"}).Draw(r, "reference"),
		Metadata: rapid.SampledFrom([][]ledger.MetadataPair{nil, nil, {{Key: "colour", Value: "red"}}, {{Key: "colour", Value: "blue"}, {Key: "size", Value: "1"}}}).
			Draw(r, "metadata"),
		Limit: rapid.IntRange(1, 70).Draw(r, "limit"),
	}
	if f.MerchantID != "" {
		f.Customer = rapid.SampledFrom([]string{"", "c-1", "c-2"}).Draw(r, "customer")
	}
	var want, got []string
	for _, inv := range slices.Backward(all) {
		other := slices.ContainsFunc(f.Metadata, func(p ledger.MetadataPair) bool { return inv.Details.Metadata[p.Key] != p.Value })
		if !other && (f.Customer == "" || f.Customer == inv.Details.Customer.Key()) && (f.Reference == "" || f.Reference == inv.Details.Reference) && (f.MerchantID == "" || f.MerchantID == inv.MerchantID) && (f.Status == "" || f.Status == inv.Status) && (f.Exception == "" || f.Exception == inv.Exception) &&
			(f.Amount == "" || f.Amount == inv.Amount.String()) && (f.To == "" || f.To == inv.Merchant.String()) && within(f.Created, inv.CreatedAt) {
			want = append(want, inv.ID)
		}
	}
	for {
		page, examined, err := ledger.NewReader(s).Invoices(t.Context(), f)
		if err != nil || examined != "" {
			r.Fatal(err, examined)
		}
		for _, inv := range page {
			got = append(got, inv.ID)
			f.Before = inv.ID
		}
		if len(page) < f.Limit {
			break
		}
	}
	if !slices.Equal(got, want) {
		r.Fatalf("listed %v, want %v", got, want)
	}
}

func checkFilteredPayments(t *testing.T, r *rapid.T, s *db.DB, all []ledger.PaymentRow) {
	t.Helper()
	f := ledger.PaymentFilter{
		MerchantID:          rapid.SampledFrom([]string{"", "m", "n"}).Draw(r, "merchant"),
		ChainKey:            rapid.SampledFrom([]string{"", "base", "other"}).Draw(r, "chain"),
		InvoiceID:           rapid.SampledFrom([]string{"", "", all[1].InvoiceID}).Draw(r, "invoice"),
		TxHash:              rapid.SampledFrom([]string{"", "", all[1].TxHash.String()}).Draw(r, "transaction"),
		From:                rapid.SampledFrom([]string{"", "", all[1].From.String()}).Draw(r, "from"),
		To:                  rapid.SampledFrom([]string{"", "", all[1].To.String()}).Draw(r, "to"),
		Amount:              rapid.SampledFrom([]string{"", "", "2"}).Draw(r, "amount"),
		Confirmed:           drawSpan(r, "confirmed", 990, 1050),
		IncludePending:      rapid.Bool().Draw(r, "pending"),
		IncludeUnattributed: rapid.Bool().Draw(r, "unattributed"),
		Limit:               rapid.IntRange(1, 100).Draw(r, "limit"),
	}
	owners := map[invoice.Address][]string{{0xa0}: {"m"}, {0xa1}: {"n"}, {0xa2}: {"m"}, {0xa3}: {"n"}} // only on base
	var want []ledger.PaymentRow
	var got []string
	for _, p := range all {
		merchants := []string{p.MerchantID}
		if !p.Attributed() {
			merchants = nil
			if p.ChainKey == "base" {
				merchants = owners[p.To]
			}
		}
		if (f.MerchantID == "" || slices.Contains(merchants, f.MerchantID)) && (f.ChainKey == "" || f.ChainKey == p.ChainKey) && (f.InvoiceID == "" || f.InvoiceID == p.InvoiceID) &&
			(f.TxHash == "" || f.TxHash == p.TxHash.String()) && (f.From == "" || f.From == p.From.String()) && (f.To == "" || f.To == p.To.String()) &&
			(f.Amount == "" || f.Amount == p.Amount.String()) && within(f.Confirmed, p.ConfirmedAt) &&
			(f.IncludePending || p.Status == invoice.Confirmed) && (f.IncludeUnattributed || p.Attributed()) {
			want = append(want, p)
		}
	}
	slices.SortFunc(want, func(a, b ledger.PaymentRow) int {
		if f.ByConfirmation() {
			return cmp.Or(b.ConfirmedAt.Compare(a.ConfirmedAt), cmp.Compare(b.SeenID, a.SeenID))
		}
		return cmp.Compare(b.SeenID, a.SeenID)
	})
	for {
		page, examined, err := ledger.NewReader(s).Payments(t.Context(), f)
		if err != nil || examined != (ledger.PaymentPosition{}) {
			r.Fatal(err, examined)
		}
		for _, p := range page {
			got = append(got, p.SeenID)
			var ok bool
			if f.Before, ok = f.ParsePosition(f.Position(p).String()); !ok {
				r.Fatalf("position %q", f.Position(p))
			}
		}
		if len(page) < f.Limit {
			break
		}
	}
	var ids []string
	for _, p := range want {
		ids = append(ids, p.SeenID)
	}
	if !slices.Equal(got, ids) {
		r.Fatalf("listed %v, want %v", got, ids)
	}
}

// TestExaminedRows lists by two filters that each match many rows, and together one. A
// page ends after MaxExamined rows, and the next one continues there.
func TestExaminedRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		payments := make([]ledger.PaymentRow, db.MaxExamined+50)
		for i := range payments {
			p := rowtest.SamplePayment(i)
			p.SeenID = invoice.FirstID("", invoice.Unix(1000).Add(time.Duration(i)*time.Millisecond))
			p.InvoiceID, p.MerchantID, p.Method, p.Amount, p.From = "inv_1", "m", invoice.ByAmount, invoice.NewAmount(7), invoice.Address{2}
			p.Status, p.ConfirmedAt = invoice.Confirmed, invoice.Unix(1000+int64(i))
			payments[i] = p
		}
		payments[3].From = invoice.Address{1}
		for part := range slices.Chunk(payments, 1000) {
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SavePayments(ctx, tx, part) })
		}
		first, last := payments[3], payments[len(payments)-db.MaxExamined]
		for name, f := range map[string]ledger.PaymentFilter{
			"amount":    {Amount: "7", ChainKey: "other", IncludeUnattributed: true},
			"to":        {To: first.To.String(), MerchantID: "n"},
			"confirmed": {Confirmed: db.Span{From: rowtest.At(1)}, ChainKey: "other", IncludeUnattributed: true},
		} {
			f.Limit = 50
			page, examined, err := ledger.NewReader(s).Payments(t.Context(), f)
			if err != nil || len(page) != 0 || examined != f.Position(last) {
				t.Errorf("%s: %d payments, examined down to %q, %v; want none, and %q", name, len(page), examined, err, f.Position(last))
			}
			f.Before = examined
			if page, examined, err = ledger.NewReader(s).Payments(t.Context(), f); err != nil || len(page) != 0 || examined != (ledger.PaymentPosition{}) {
				t.Errorf("%s: then %d payments, examined down to %q, %v; want the end", name, len(page), examined, err)
			}
		}
		found, examined, err := ledger.NewReader(s).Payments(t.Context(), ledger.PaymentFilter{Amount: "7", From: first.From.String(), Limit: 50})
		if err != nil || len(found) != 1 || found[0].ID != first.ID || examined != (ledger.PaymentPosition{}) {
			t.Errorf("from one account: %d payments, examined down to %q, %v", len(found), examined, err)
		}
	})
}
