package store_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestCustomers compares lists and searches of customers with a scan of all invoices.
func TestCustomers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		names := []string{"", "a", "A", "ab", "abc", "a_b", "a%", "b@x.example", "é", "z~"}
		var invoices []invoice.Invoice
		for i := range 120 {
			created := invoice.Unix(int64(1000 + i))
			inv := sample(invoice.FirstID(invoice.PrefixInvoice, created), []string{"m", "n"}[i%2])
			inv.CreatedAt, inv.ExpiresAt = created, created.Add(time.Hour)
			inv.Details.Customer = invoice.Customer{ID: names[i/2%len(names)], Email: names[i/2*i%len(names)]}
			invoices = append(invoices, inv)
		}
		insert(t, s, invoices...)
		rapid.Check(t, func(r *rapid.T) { checkCustomers(r, s, invoices, names) })
	})
}

// customersOf returns the customers of a merchant that a condition on their invoices names, by
// their keys.
func customersOf(invoices []invoice.Invoice, merchantID string, ok func(invoice.Customer) bool) []store.Customer {
	newest, named := make(map[string]store.Customer), make(map[string]bool)
	for _, inv := range invoices {
		c := inv.Details.Customer
		if c.Key() == "" || inv.MerchantID != merchantID {
			continue
		}
		newest[c.Key()] = store.Customer{MerchantID: merchantID, Customer: c, NewestInvoice: inv.ID, InvoicedAt: inv.CreatedAt}
		named[c.Key()] = named[c.Key()] || ok(c)
	}
	var all []store.Customer
	for key, c := range newest {
		if named[key] {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b store.Customer) int { return strings.Compare(a.Key(), b.Key()) })
	return all
}

func checkCustomers(r *rapid.T, s *store.Store, invoices []invoice.Invoice, names []string) {
	merchantID := rapid.SampledFrom([]string{"m", "n", "other"}).Draw(r, "merchant")
	prefix := rapid.SampledFrom(append([]string{"x", "b@", "a%b"}, names...)).Draw(r, "prefix")
	limit := rapid.IntRange(1, 12).Draw(r, "limit")
	f := store.CustomerFilter{MerchantID: merchantID, Prefix: prefix, Limit: limit}
	var got []store.Customer
	for {
		page, err := s.Customers(r.Context(), f)
		if err != nil {
			r.Fatal(err)
		}
		if got = append(got, page...); len(page) < limit {
			break
		}
		f.After = page[len(page)-1].Key()
	}
	same := func(a, b store.Customer) bool {
		return a.InvoicedAt.Equal(b.InvoicedAt) && a.Customer == b.Customer && a.NewestInvoice == b.NewestInvoice && a.MerchantID == b.MerchantID
	}
	want := customersOf(invoices, merchantID, func(c invoice.Customer) bool { return strings.HasPrefix(c.Key(), prefix) })
	if !slices.EqualFunc(got, want, same) {
		r.Fatalf("listed %+v, want %+v", got, want)
	}
	found, err := s.FindCustomers(r.Context(), merchantID, prefix, limit)
	if err != nil {
		r.Fatal(err)
	}
	all := customersOf(invoices, merchantID, func(c invoice.Customer) bool {
		return strings.HasPrefix(c.Key(), prefix) || c.ID != "" && strings.HasPrefix(c.Email, prefix) && c.Email != ""
	})
	slices.SortFunc(found, func(a, b store.Customer) int { return strings.Compare(a.Key(), b.Key()) })
	if len(found) != min(limit, len(all)) || limit >= len(all) && !slices.EqualFunc(found, all, same) {
		r.Fatalf("found %+v, want %d of %+v", found, limit, all)
	}
	key := cmp.Or(rapid.SampledFrom(names).Draw(r, "key"), "none")
	one, err := s.Customer(r.Context(), merchantID, key)
	wanted := customersOf(invoices, merchantID, func(c invoice.Customer) bool { return c.Key() == key })
	if len(wanted) == 0 && !errors.Is(err, store.ErrNotFound) || len(wanted) == 1 && (err != nil || !same(one, wanted[0])) {
		r.Fatalf("the customer %q is %+v, %v; want %+v", key, one, err, wanted)
	}
}

// recordCustomers reads lists of customers.
func recordCustomers(t *testing.T, read *store.Store, what *string) {
	t.Helper()
	for _, after := range []string{"", "x"} {
		*what = "customers: after " + after
		_, err := read.Customers(t.Context(), store.CustomerFilter{MerchantID: "m", Prefix: "c", After: after, Limit: 50})
		must(t, err)
	}
	*what = "customers: found"
	_, err := read.FindCustomers(t.Context(), "m", "c", 50)
	must(t, err)
	*what = "customers: one"
	if _, err := read.Customer(t.Context(), "m", "c"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
}
