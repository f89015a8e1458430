package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
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
		_, err = w.Create(t.Context(), other)
		w.must(err)
		common := w.unique("order-1")
		common.Draft.Details.UniqueReference = false
		_, err = w.Create(t.Context(), common)
		w.must(err)

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
					if err != nil {
						t.Error(err)
					}
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
