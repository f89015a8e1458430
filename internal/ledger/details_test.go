package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// details are details with every member.
var details = invoice.Details{
	Reference: "order-1", Description: "Two espressos", Customer: invoice.Customer{ID: "cus_1", Email: "ada@example.com"},
	ReturnURL: "https://shop.example/thanks", CancelURL: "https://shop.example/cart", Metadata: map[string]string{"cart": "8821"},
}

// eventInvoice returns the invoice in the newest event of a type.
func (w *world) eventInvoice(typ string) apitypes.Invoice {
	w.t.Helper()
	var found apitypes.Invoice
	for _, e := range dbtest.Events(w.t, w.db.sql, w.merchant) {
		if string(e.Type) == typ {
			var body struct{ Data apitypes.InvoiceData }
			w.must(json.Unmarshal(e.Body, &body))
			found = body.Data.Invoice
		}
	}
	return found
}

func TestDetailsInEvents(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		paid := w.create(func(d *invoice.Draft) { d.Details = details })
		want := apitypes.Customer{ID: "cus_1", Email: "ada@example.com"}
		check := func(typ string) {
			t.Helper()
			got := w.eventInvoice(typ)
			if got.Reference != "order-1" || got.Description != "Two espressos" || got.Customer == nil || *got.Customer != want ||
				got.ReturnURL != details.ReturnURL || got.CancelURL != details.CancelURL || got.Metadata["cart"] != "8821" {
				t.Errorf("%s has %+v", typ, got)
			}
		}
		check("invoice.created")
		expect.NoDiff(t, cmp.Diff(details, w.invoice(paid.ID).Details), "stored")
		w.create(func(d *invoice.Draft) { d.Details = details; d.Amount = invoice.NewAmount(5_000_000) })
		w.mine(start+10, w.pay(paid.TransferAmount))
		w.mine(start + 2*day)
		w.final()
		check("invoice.expired")
		for _, e := range dbtest.Events(t, w.db.sql, w.merchant) {
			if e.Type == invoice.EventPaid {
				var body struct {
					Data struct{ Invoice map[string]any }
				}
				w.must(json.Unmarshal(e.Body, &body))
				if len(body.Data.Invoice) != 8 {
					t.Errorf("invoice.paid has %d members: %s", len(body.Data.Invoice), e.Body)
				}
			}
		}
	})
}

// unique returns a request for an invoice with a unique reference.
func (w *world) unique(reference string) ledger.CreateRequest {
	d := w.draft()
	d.Details = invoice.Details{Reference: reference, UniqueReference: true}
	return ledger.CreateRequest{Draft: d}
}

// wantTaken fails the test unless a create was refused because holder has the reference.
func wantTaken(t *testing.T, err error, holder string) {
	t.Helper()
	var taken *ledger.ReferenceTakenError
	if !errors.As(err, &taken) || taken.InvoiceID != holder {
		t.Errorf("error %v, want that %s has the reference", err, holder)
	}
}

func TestUniqueReference(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		request := w.unique("order-1")
		request.Key = "k"
		first, err := w.Create(t.Context(), request)
		w.must(err)
		_, err = w.Create(t.Context(), w.unique("order-1"))
		wantTaken(t, err, first.ID)
		if again, err := w.Create(t.Context(), request); err != nil || again.ID != first.ID {
			t.Errorf("the same request again gives %s, %v", again.ID, err)
		}
		other := w.unique("order-1")
		other.Draft.MerchantID = "other"
		w.must(w.Create(t.Context(), other))
		common := w.unique("order-1")
		common.Draft.Details.UniqueReference = false
		w.must(w.Create(t.Context(), common))

		w.mine(start+10, w.pay(first.TransferAmount))
		w.final()
		second, err := w.Create(t.Context(), w.unique("order-1"))
		w.must(err)
		_, err = w.Create(t.Context(), w.unique("order-1"))
		wantTaken(t, err, second.ID)
	})
}

// TestUniqueReferenceConcurrently creates invoices with few references at two services,
// together with invoices that must not be refused.
func TestUniqueReferenceConcurrently(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		services := []*ledger.Service{w.Service, w.service()}
		const references, tries = 3, 8
		var mu sync.Mutex
		created := make(map[string][]string) // ids by reference
		taken := make(map[string]map[string]bool)
		var wg sync.WaitGroup
		for i := range references * tries {
			reference := fmt.Sprintf("order-%d", i%references)
			wg.Go(func() {
				inv, err := services[i%2].Create(t.Context(), w.unique(reference))
				var by *ledger.ReferenceTakenError
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					created[reference] = append(created[reference], inv.ID)
				case errors.As(err, &by):
					if taken[reference] == nil {
						taken[reference] = make(map[string]bool)
					}
					taken[reference][by.InvoiceID] = true
				default:
					t.Error(err)
				}
			})
			wg.Go(func() {
				d := w.draft()
				d.Amount = invoice.NewAmount(uint64(2_000_000 + i))
				if _, err := services[i%2].Create(t.Context(), ledger.CreateRequest{Draft: d}); err != nil {
					t.Errorf("an invoice without a reference: %v", err)
				}
			})
		}
		wg.Wait()
		for i := range references {
			reference := fmt.Sprintf("order-%d", i)
			if len(created[reference]) != 1 || len(taken[reference]) != 1 || !taken[reference][created[reference][0]] {
				t.Errorf("%s: created %v, refused for %v", reference, created[reference], taken[reference])
			}
		}
	})
}

// TestUniqueReferenceRepeatedConcurrently repeats a request with its idempotency key while the first
// is in progress. Its own reference does not make it fail.
func TestUniqueReferenceRepeatedConcurrently(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		services := []*ledger.Service{w.Service, w.service()}
		for round := range 5 {
			request := w.unique(fmt.Sprintf("order-%d", round))
			request.Key = request.Draft.Details.Reference
			ids := make([]string, 6)
			var wg sync.WaitGroup
			for i := range ids {
				wg.Go(func() {
					inv, err := services[i%2].Create(t.Context(), request)
					expect.NoError(t, err)
					ids[i] = inv.ID
				})
			}
			wg.Wait()
			for _, id := range ids {
				if id != ids[0] {
					t.Errorf("round %d created %v", round, ids)
				}
			}
		}
	})
}

func TestReturnHostsAreChecked(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for url, merchant := range map[string]string{"https://evil.example/": "listed", "http://localhost/": w.merchant} {
			d := w.draft()
			d.MerchantID, d.Details.CancelURL = merchant, url
			_, err := w.Create(t.Context(), ledger.CreateRequest{Draft: d})
			if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "cancelUrl" {
				t.Errorf("%s for %s: %v", url, merchant, err)
			}
		}
		d := w.draft()
		d.MerchantID, d.Details.ReturnURL, d.ExpiresAt = "listed", "http://localhost:3000/", d.ExpiresAt.Add(time.Second)
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: d}); err != nil {
			t.Error(err)
		}
	})
}

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
			expect.NoError(t, err)
			expect.NoDiff(t, cmp.Diff(want, got, rowtest.Equal), "")
		}
		listed, _, err := ledger.NewReader(s).Invoices(t.Context(), ledger.InvoiceFilter{MerchantID: "m", Limit: 9})
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff([]invoice.Invoice{few, plain}, listed, rowtest.Equal), "")
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
