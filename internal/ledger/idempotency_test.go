package ledger_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

const day = 24 * 60 * 60

func TestIdempotencyKey(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k", Scope: w.merchant}, Draft: w.draft()}
		request.Draft.Details = details
		var replayed bool
		marked := request
		marked.Replayed = &replayed
		first, err := w.Create(t.Context(), marked)
		w.must(err)
		if replayed {
			t.Error("the first request is marked as a repeat")
		}

		t.Run("again", func(t *testing.T) {
			for _, s := range []*ledger.Service{w.Service, w.service()} {
				var replayed bool
				repeat := request
				repeat.Replayed = &replayed
				again, err := s.Create(t.Context(), repeat)
				if !replayed {
					t.Error("the repeat is not marked")
				}
				if diff := cmp.Diff(first, again, comparer); err != nil || diff != "" {
					t.Errorf("%v (-first +again):\n%s", err, diff)
				}
			}
		})
		for name, by := range map[string]func(*invoice.Draft){
			"merchantId":      func(d *invoice.Draft) { d.MerchantID = "other" },
			"merchantAddress": func(d *invoice.Draft) { d.Merchant = invoice.Address{1} },
			"amount":          func(d *invoice.Draft) { d.Amount = invoice.NewAmount(1_000_001) },
			"chainKey":        func(d *invoice.Draft) { d.ChainKey = "unregistered" },
			"expiresAt":       func(d *invoice.Draft) { d.ExpiresAt = d.ExpiresAt.Add(time.Second) },
			"lineItems":       func(d *invoice.Draft) { d.LineItems = []invoice.LineItem{{Label: "x", Amount: d.Amount}} },
			"collection":      func(d *invoice.Draft) { d.Collection = invoice.Deposit },
			"reference":       func(d *invoice.Draft) { d.Details.Reference = "x" },
			"no reference":    func(d *invoice.Draft) { d.Details.Reference = "" },
			"uniqueReference": func(d *invoice.Draft) { d.Details.UniqueReference = true },
			"description":     func(d *invoice.Draft) { d.Details.Description = "x" },
			"customer.id":     func(d *invoice.Draft) { d.Details.Customer.ID = "x" },
			"customer.email":  func(d *invoice.Draft) { d.Details.Customer.Email = "x@y" },
			"returnUrl":       func(d *invoice.Draft) { d.Details.ReturnURL = "https://x.example" },
			"cancelUrl":       func(d *invoice.Draft) { d.Details.CancelURL = "https://x.example" },
			"metadata":        func(d *invoice.Draft) { d.Details.Metadata = map[string]string{"cart": "8822"} },
			"no details":      func(d *invoice.Draft) { d.Details = invoice.Details{} },
		} {
			other := request
			by(&other.Draft)
			if inv, err := w.Create(t.Context(), other); !errors.Is(err, ledger.ErrIdempotencyMismatch) {
				t.Errorf("another %s gives %s, %v, want ErrIdempotencyMismatch", name, inv.ID, err)
			}
		}
		t.Run("another scope or key", func(t *testing.T) {
			scope, key := request, request
			scope.Scope, key.Key = "another", "K"
			for _, r := range []ledger.CreateRequest{scope, key} {
				if inv, err := w.Create(t.Context(), r); err != nil || inv.ID == first.ID {
					t.Errorf("gives %s, %v, want another invoice than %s", inv.ID, err, first.ID)
				}
			}
		})
		t.Run("after the invoice has expired", func(t *testing.T) {
			w.seconds.Add(3600)
			if again, err := w.Create(t.Context(), request); err != nil || again.ID != first.ID {
				t.Errorf("gives %s, %v, want %s still", again.ID, err, first.ID)
			}
		})
		expect.Len(t, w.eventTypes(first), 1, "events")
		expect.Len(t, w.intents(first), 1, "intents")
	})
}

func TestIdempotencyKeyExpires(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k"}, Draft: w.draft()}
		request.Draft.ExpiresAt = invoice.Unix(start + 10*day)
		create := func() invoice.Invoice {
			t.Helper()
			inv, err := w.Create(t.Context(), request)
			w.must(err)
			return inv
		}
		first := create()
		w.seconds.Store(start + day - 1)
		w.must(w.DeleteOldKeys(t.Context()))
		if again := create(); again.ID != first.ID {
			t.Errorf("a second before the day is over it is another invoice")
		}
		w.seconds.Store(start + day)
		second := create()
		if second.ID == first.ID {
			t.Errorf("after a day it is the same invoice")
		}
		if again := create(); again.ID != second.ID {
			t.Errorf("the second use of the key is not remembered")
		}
		w.seconds.Store(start + 2*day)
		w.must(w.DeleteOldKeys(t.Context()))
		if _, err := ledger.FindIdempotencyKey(t.Context(), w.db.store, "", "k", invoice.Unix(start+day)); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("looking for a key that was deleted gives %v", err)
		}
	})
}

// TestIdempotencyKeySurvivesAClockJump sets the clock forward by two days while the schedule's clock
// continues. The key must stay valid.
func TestIdempotencyKeySurvivesAClockJump(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.Service = w.service(func(cfg *ledger.Config) {
			cfg.Schedule = func() time.Time { return time.Unix(start, 0) }
		})
		request := ledger.CreateRequest{Once: ledger.Once{Key: "k"}, Draft: w.draft()}
		request.Draft.ExpiresAt = invoice.Unix(start + 10*day)
		first, err := w.Create(t.Context(), request)
		w.must(err)
		for _, at := range []int64{start + 2*day, start} {
			w.seconds.Store(at)
			w.must(w.DeleteOldKeys(t.Context()))
			if again, err := w.Create(t.Context(), request); err != nil || again.ID != first.ID {
				t.Errorf("at %d it is another invoice, %v", at-start, err)
			}
		}
	})
}

// TestRepeatsChangeNothing repeats a request after its merchant lost the address, also with another address, together
// with new ones. The repeats get the first answer, the new ones their invoices, and all other rows stay the same.
func TestRepeatsChangeNothing(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		request := func(merchant, key string, to invoice.Address, amount uint64) ledger.CreateRequest {
			d := w.draft()
			d.MerchantID, d.Merchant, d.Amount = merchant, to, invoice.NewAmount(amount)
			return ledger.CreateRequest{Once: ledger.Once{Key: key}, Draft: d}
		}
		shared, unused := invoice.Address{0xd1}, invoice.Address{0xd2}
		old := request("loser", "k", shared, 2_000_000)
		first, err := w.Create(t.Context(), old)
		w.must(err)
		w.must(w.Create(t.Context(), request("winner", "l", shared, 2_000_000)))
		w.must(w.db.sql.ExecContext(t.Context(), "DELETE FROM address_grants WHERE merchant_id = 'loser'"))
		elsewhere := request("loser", "k", unused, 2_000_000)
		state := func() (text string) {
			w.must(w.db.sql.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM settlement_addresses WHERE address = '`+unused.String()+`') || ' ' ||
				(SELECT count(*) FROM address_grants WHERE address = '`+shared.String()+`' AND merchant_id = 'loser') || ' ' || (SELECT count(*) FROM audit_entries)`).Scan(&text))
			return text
		}
		before := state()
		const many = 20
		var group sync.WaitGroup
		for i := range many {
			group.Go(func() {
				if again, err := w.Create(t.Context(), old); err != nil || again.ID != first.ID {
					t.Errorf("a repeat gives %s, %v, want %s", again.ID, err, first.ID)
				}
			})
			group.Go(func() {
				if _, err := w.Create(t.Context(), elsewhere); !errors.Is(err, ledger.ErrIdempotencyMismatch) {
					t.Errorf("a repeat with another address gives %v", err)
				}
			})
			group.Go(func() {
				if _, err := w.Create(t.Context(), request("winner", fmt.Sprint("m", i), shared, uint64(3_000_000+i*1000))); err != nil {
					t.Errorf("a request beside repeats: %v", err)
				}
			})
		}
		group.Wait()
		if after := state(); after != before {
			t.Errorf("settlement addresses, grants and entries of the audit log were %s and are %s", before, after)
		}
	})
}

// TestRefusedCreateLeavesItsKeyUnused repeats keys of requests that are refused, with requests that are not, in the same
// batches.
func TestRefusedCreateLeavesItsKeyUnused(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		others := invoice.Address{0xee, 18: w.address[18], 19: w.address[19]}
		w.create(func(d *invoice.Draft) { d.MerchantID, d.Merchant = w.merchant+"-other", others })
		var group sync.WaitGroup
		for i := range 240 {
			group.Go(func() {
				request := ledger.CreateRequest{Once: ledger.Once{Key: fmt.Sprint("k", i/12), Scope: w.merchant}, Draft: w.draft(), ByMerchant: true}
				if i%2 == 0 {
					request.Draft.Merchant = others
				}
				_, err := w.Create(t.Context(), request)
				field := (*invoice.FieldError)(nil)
				if i%2 == 1 && err != nil {
					t.Errorf("a request with the key of a refused one: %v", err)
				} else if i%2 == 0 && !errors.Is(err, ledger.ErrIdempotencyMismatch) && !errors.As(err, &field) {
					t.Errorf("a request for an address of another merchant: %v", err)
				}
			})
		}
		group.Wait()
	})
}
