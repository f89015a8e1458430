package ledger_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// largestDetails returns details with every member at its largest size.
func largestDetails() invoice.Details {
	d := invoice.Details{
		Reference: strings.Repeat("𝄞", 200), UniqueReference: true, Description: strings.Repeat("𝄞", 500),
		Customer:  invoice.Customer{ID: strings.Repeat("𝄞", 200), Email: strings.Repeat("𝄞", 252) + "@a"},
		ReturnURL: "https://a.example/" + strings.Repeat("r", 2030), CancelURL: "https://a.example/" + strings.Repeat("c", 2030),
		Metadata: make(map[string]string),
	}
	random := func(seed, n int) string { // text that a database cannot compress
		text := make([]rune, n)
		for i := range text {
			text[i] = rune(0x20000 + (seed*7919+i*104729+i*i*31)%0xa000)
		}
		return string(text)
	}
	for i := range invoice.MaxMetadata {
		d.Metadata[random(i, invoice.MaxMetadataKey)] = random(1000+i, invoice.MaxMetadataValue)
	}
	return d
}

func TestDetailsRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		plain, largest, few := rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", strings.Repeat("m", 64)), rowtest.Sample("inv_3", "m")
		largest.Details = largestDetails()
		rowtest.Must(t, largest.Details.Check())
		few.Details = invoice.Details{Metadata: map[string]string{"order": "<\"&\\\n", "empty": ""}}
		all := []invoice.Invoice{plain, largest, few}
		rowtest.Insert(t, s, all...)
		for _, want := range all {
			got, err := ledger.NewReader(s).Invoice(t.Context(), want.ID)
			if diff := cmp.Diff(want, got, rowtest.Equal); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		}
		listed, _, err := ledger.NewReader(s).Invoices(t.Context(), ledger.InvoiceFilter{MerchantID: "m", Limit: 9})
		if diff := cmp.Diff([]invoice.Invoice{few, plain}, listed, rowtest.Equal); err != nil || diff != "" {
			t.Errorf("%v (-written +listed):\n%s", err, diff)
		}
		expiring, err := ledger.ExpiringInvoices(t.Context(), s, "base", 0, invoice.Unix(2001), 9)
		if err != nil || len(expiring) != 3 || !slices.ContainsFunc(expiring, func(inv invoice.Invoice) bool { return cmp.Equal(inv, few, rowtest.Equal) }) {
			t.Errorf("%d expiring invoices, %v", len(expiring), err)
		}
	})
}

// TestMetadataRows compares the search rows of metadata with the metadata.
func TestMetadataRows(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s := dbtest.Open(t, url)
		inv := rowtest.Sample("inv_1", "m")
		inv.Details = largestDetails()
		rowtest.Insert(t, s, inv, rowtest.Sample("inv_2", "m"))
		rows, err := dbtest.SQL(t, url).QueryContext(t.Context(), "SELECT invoice_id, merchant_id, key, value FROM invoice_metadata")
		rowtest.Must(t, err)
		defer rows.Close() //nolint:errcheck // rows.Err is checked
		got := make(map[string]string)
		for rows.Next() {
			var id, merchant, key, value string
			if rowtest.Must(t, rows.Scan(&id, &merchant, &key, &value)); id != "inv_1" || merchant != "m" {
				t.Errorf("a row of %s of %s", id, merchant)
			}
			got[key] = value
		}
		rowtest.Must(t, rows.Err())
		if !maps.Equal(got, inv.Details.Metadata) {
			t.Errorf("%d rows, want the %d pairs", len(got), len(inv.Details.Metadata))
		}
	})
}
