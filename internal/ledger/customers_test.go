package ledger_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestCustomers compares lists and searches of customers with a scan of all invoices.
func TestCustomers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		names := []string{"", "a", "A", "ab", "abc", "a_b", "a%", "b@x.example", "é", "z~"}
		var invoices []invoice.Invoice
		for i := range 120 {
			created := invoice.Unix(int64(1000 + i))
			inv := rowtest.Sample(invoice.FirstID(invoice.PrefixInvoice, created), []string{"m", "n"}[i%2])
			inv.CreatedAt, inv.ExpiresAt = created, created.Add(time.Hour)
			inv.Details.Customer = invoice.Customer{ID: names[i/2%len(names)], Email: names[i/2*i%len(names)]}
			invoices = append(invoices, inv)
		}
		rowtest.Insert(t, s, invoices...)
		rapid.Check(t, func(r *rapid.T) { checkCustomers(r, s, invoices, names) })
	})
}

// customersOf returns the customers of a merchant with invoices that meet a condition, by their keys.
func customersOf(invoices []invoice.Invoice, merchantID string, ok func(invoice.Customer) bool) []ledger.Customer {
	newest, named := make(map[string]ledger.Customer), make(map[string]bool)
	for _, inv := range invoices {
		c := inv.Details.Customer
		if c.Key() == "" || inv.MerchantID != merchantID {
			continue
		}
		newest[c.Key()] = ledger.Customer{MerchantID: merchantID, Customer: c, NewestInvoice: inv.ID, InvoicedAt: inv.CreatedAt}
		named[c.Key()] = named[c.Key()] || ok(c)
	}
	var all []ledger.Customer
	for key, c := range newest {
		if named[key] {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b ledger.Customer) int { return strings.Compare(a.Key(), b.Key()) })
	return all
}

func checkCustomers(r *rapid.T, s *db.DB, invoices []invoice.Invoice, names []string) {
	merchantID := rapid.SampledFrom([]string{"m", "n", "other"}).Draw(r, "merchant")
	prefix := rapid.SampledFrom(append([]string{"x", "b@", "a%b"}, names...)).Draw(r, "prefix")
	limit := rapid.IntRange(1, 12).Draw(r, "limit")
	f := ledger.CustomerFilter{MerchantID: merchantID, Prefix: prefix, Limit: limit}
	var got []ledger.Customer
	for {
		page, err := ledger.NewReader(s).Customers(r.Context(), f)
		expect.OK(r, err)
		if got = append(got, page...); len(page) < limit {
			break
		}
		f.After = page[len(page)-1].Key()
	}
	same := func(a, b ledger.Customer) bool {
		return a.InvoicedAt.Equal(b.InvoicedAt) && a.Customer == b.Customer && a.NewestInvoice == b.NewestInvoice && a.MerchantID == b.MerchantID
	}
	want := customersOf(invoices, merchantID, func(c invoice.Customer) bool { return strings.HasPrefix(c.Key(), prefix) })
	if !slices.EqualFunc(got, want, same) {
		r.Fatalf("listed %+v, want %+v", got, want)
	}
	found, err := ledger.NewReader(s).FindCustomers(r.Context(), merchantID, prefix, limit)
	expect.OK(r, err)
	all := customersOf(invoices, merchantID, func(c invoice.Customer) bool {
		return strings.HasPrefix(c.Key(), prefix) || c.ID != "" && strings.HasPrefix(c.Email, prefix) && c.Email != ""
	})
	slices.SortFunc(found, func(a, b ledger.Customer) int { return strings.Compare(a.Key(), b.Key()) })
	if len(found) != min(limit, len(all)) || limit >= len(all) && !slices.EqualFunc(found, all, same) {
		r.Fatalf("found %+v, want %d of %+v", found, limit, all)
	}
	key := cmp.Or(rapid.SampledFrom(names).Draw(r, "key"), "none")
	one, err := ledger.FindCustomer(r.Context(), s, merchantID, key)
	wanted := customersOf(invoices, merchantID, func(c invoice.Customer) bool { return c.Key() == key })
	if len(wanted) == 0 && !errors.Is(err, db.ErrNotFound) || len(wanted) == 1 && (err != nil || !same(one, wanted[0])) {
		r.Fatalf("the customer %q is %+v, %v; want %+v", key, one, err, wanted)
	}
}
