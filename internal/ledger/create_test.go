package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestCreate(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		draft := w.draft()
		draft.LineItems = []invoice.LineItem{{Label: "tea & <biscuits> ☕", Amount: draft.Amount}}
		inv, err := w.Create(t.Context(), ledger.CreateRequest{Draft: draft})
		w.must(err)
		suffix := number(inv.TransferAmount) - 1_000_000
		if suffix < 1 || suffix > 999 {
			t.Errorf("the suffix is %d, want 1 to 999", suffix)
		}
		want := invoice.Invoice{
			Terms: invoice.Terms{Merchant: draft.Merchant, Token: usdc, Amount: draft.Amount, ExpiresAt: draft.ExpiresAt},
			ID:    inv.ID, MerchantID: w.merchant, Currency: "USDC", ChainKey: w.chainKey, Status: invoice.Open,
			LineItems: draft.LineItems, CreatedAt: invoice.Unix(start), FromBlock: 100, Registry: registry, Collection: invoice.Direct, TransferAmount: inv.TransferAmount,
		}
		want.CommitmentID = chain.CommitmentID(1337, registry, want.Terms, inv.ID)
		expect.NoDiff(t, cmp.Diff(want, inv, comparer), "created")
		expect.NoDiff(t, cmp.Diff(want, w.invoice(inv.ID), comparer), "stored")
		events := dbtest.Events(t, w.db.sql, w.merchant)
		if len(events) != 1 || events[0].DeliveryID == "" || events[0].Due.Unix() != start || events[0].Subject != inv.ID {
			t.Fatalf("events %+v, want one with a delivery that is due now", events)
		}
		var body struct {
			ID, Type  string
			CreatedAt int64
			Data      struct{ Invoice struct{ ID, Status string } }
		}
		w.must(json.Unmarshal(events[0].Body, &body))
		if body.ID != events[0].ID || body.Type != "invoice.created" || body.CreatedAt != start || body.Data.Invoice.ID != inv.ID || body.Data.Invoice.Status != "open" {
			t.Errorf("the event reads %s", events[0].Body)
		}
		expect.NoDiff(t, cmp.Diff([]string{"open due 0"}, w.intents(inv)), "intents")
		expect.NoDiff(t, cmp.Diff([]string{"deliveries", "intents " + w.chainKey}, w.signals()), "signals")
	})
}

// comparer compares amounts by value, and treats nil and empty line items alike.
var comparer = cmp.Options{cmp.Comparer(func(a, b invoice.Amount) bool { return a == b }), cmpopts.EquateEmpty()}

func TestCreateWithoutEndpointOrRegistry(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		silent := w.create(func(draft *invoice.Draft) { draft.MerchantID = "silent" })
		events := dbtest.Events(t, w.db.sql, "silent")
		if len(events) != 1 || events[0].DeliveryID != "" {
			t.Errorf("events of a merchant without an endpoint: %+v, want one without a delivery", events)
		}
		expect.Len(t, w.intents(silent), 1, "intents")
		plain := w.create(func(draft *invoice.Draft) { draft.ChainKey = "unregistered" })
		expect.Len(t, w.intents(plain), 0, "intents on a chain without a registry:")
		if want := chain.CommitmentID(7, invoice.Address{}, plain.Terms, plain.ID); plain.CommitmentID != want {
			t.Errorf("commitment %s, want %s", plain.CommitmentID, want)
		}
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created"}, w.eventTypes(plain)), "events")
	})
}

func TestCreateErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for field, by := range map[string]func(*invoice.Draft){
			"merchantId":      func(draft *invoice.Draft) { draft.MerchantID = "stranger" },
			"chainKey":        func(draft *invoice.Draft) { draft.ChainKey = "base" },
			"currency":        func(draft *invoice.Draft) { draft.Currency = "usdc" },
			"merchantAddress": func(draft *invoice.Draft) { draft.Merchant = usdc },
			"amount":          func(draft *invoice.Draft) { draft.Amount = invoice.Amount{} },
			"expiresAt":       func(draft *invoice.Draft) { draft.ExpiresAt = invoice.Unix(start) },
		} {
			for _, key := range []string{"", "key"} {
				draft := w.draft()
				by(&draft)
				_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Key: key}, Draft: draft})
				var wrong *invoice.FieldError
				if !errors.As(err, &wrong) || wrong.Field != field {
					t.Errorf("%s, key %q: %v", field, key, err)
				}
			}
		}
		draft := w.draft()
		draft.Merchant = registry
		var wrong *invoice.FieldError
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: draft}); !errors.As(err, &wrong) || wrong.Field != "merchantAddress" {
			t.Errorf("the registry's address: %v", err)
		}
		draft.ChainKey = "unregistered" // a chain without that registry
		if _, err := w.Create(t.Context(), ledger.CreateRequest{Draft: draft}); err != nil {
			t.Errorf("the address of another chain's registry: %v", err)
		}
		if found, _, err := ledger.NewReader(w.db.store).Invoices(t.Context(), ledger.InvoiceFilter{MerchantID: w.merchant, Limit: 10}); err != nil || len(found) != 1 {
			t.Errorf("%d invoices, %v, want the last alone", len(found), err)
		}
	})
}

// TestCreateConcurrently creates invoices of few amounts from many goroutines at two
// replicas. Each is stored with its event, and transfer amounts are unique.
func TestCreateConcurrently(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		replicas := []*ledger.Service{w.Service, w.service()}
		const n = 400
		invoices := make([]invoice.Invoice, n)
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				draft := w.draft()
				draft.Amount = invoice.NewAmount(uint64(1_000_000 + 300*(i%3)))
				draft.MerchantID = []string{w.merchant, w.merchant + "-b", w.merchant + "-c", w.merchant + "-d"}[i%4]
				invoices[i], errs[i] = replicas[i%2].Create(t.Context(), ledger.CreateRequest{Draft: draft})
			})
		}
		wg.Wait()
		w.must(errors.Join(errs...))
		used := make(map[invoice.Amount]string)
		for _, inv := range invoices {
			expect.NoDiff(t, cmp.Diff(inv, w.invoice(inv.ID), comparer), "created and stored differ")
			if inv.TransferAmount.IsZero() {
				t.Errorf("%s has no transfer amount", inv.ID)
			}
			if other := used[inv.TransferAmount]; other != "" {
				t.Errorf("%s and %s have the transfer amount %s", inv.ID, other, inv.TransferAmount)
			}
			used[inv.TransferAmount] = inv.ID
		}
		events := 0
		for _, suffix := range []string{"", "-b", "-c", "-d"} {
			events += len(dbtest.Events(t, w.db.sql, w.merchant+suffix))
		}
		expect.Equal(t, events, n, "events:")
	})
}

func TestSuffixesRunOut(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		// Every suffix except each tenth is taken.
		const left = invoice.MaxSuffix / 10
		var taken []invoice.Invoice
		for suffix := range uint64(invoice.MaxSuffix + 1) {
			if suffix%10 > 0 {
				taken = append(taken, w.insertable(suffix))
			}
		}
		taken[500].ExpiresAt = invoice.Unix(start + 60)
		w.insert(taken)
		free := make(map[invoice.Amount]bool)
		for range left {
			inv := w.create()
			if suffix := number(inv.TransferAmount) - 1_000_000; suffix > 999 || suffix%10 > 0 || free[inv.TransferAmount] {
				t.Fatalf("the suffix %d is out of range or used already", suffix)
			}
			free[inv.TransferAmount] = true
		}
		for _, s := range []*ledger.Service{w.Service, w.Service, w.service()} {
			inv, err := s.Create(t.Context(), ledger.CreateRequest{Draft: w.draft()})
			w.must(err)
			if !inv.TransferAmount.IsZero() {
				t.Errorf("invoice 1000 has the transfer amount %s", inv.TransferAmount)
			}
			expect.NoDiff(t, cmp.Diff(inv, w.invoice(inv.ID), comparer), "created and stored differ")
		}
		for what, by := range map[string]func(*invoice.Draft){
			"amount":  amount(2_000_000),
			"address": func(draft *invoice.Draft) { draft.Merchant = invoice.Address{1} },
			"chain":   func(draft *invoice.Draft) { draft.ChainKey = "unregistered" },
		} {
			if inv := w.create(by); inv.TransferAmount.IsZero() {
				t.Errorf("an invoice of another %s has no transfer amount", what)
			}
		}
		// One invoice is paid. Its transfer amount is free after the quarantine, once free amounts are looked up again.
		freed := taken[500]
		w.mine(start+1, w.pay(freed.TransferAmount))
		w.final()
		w.advance(freed.ExpiresAt.Unix() + minQuarantine + 1)
		if inv := w.create(); inv.TransferAmount != freed.TransferAmount {
			t.Errorf("the transfer amount is %s, want %s, which is free again", inv.TransferAmount, freed.TransferAmount)
		}
	})
}

func TestSuffixOverflow(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		none := w.create(func(draft *invoice.Draft) { draft.Amount = invoice.MaxAmount })
		if !none.TransferAmount.IsZero() || !w.invoice(none.ID).TransferAmount.IsZero() {
			t.Errorf("the largest amount has the transfer amount %s", none.TransferAmount)
		}
		for range 5 {
			one := w.create(func(draft *invoice.Draft) { draft.Amount = invoice.MaxAmount.Minus(invoice.NewAmount(2)) })
			if room := invoice.MaxAmount.Minus(one.Amount); !one.TransferAmount.IsZero() && room.Less(one.TransferAmount.Minus(one.Amount)) {
				t.Errorf("the transfer amount %s has wrapped around", one.TransferAmount)
			}
		}
	})
}

// TestCreateAfterLostRows creates an invoice after the database lost a settlement address, as after a failover to a
// standby. The address must be inserted again, because its payments would not be indexed otherwise.
func TestCreateAfterLostRows(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.create()
		for _, statement := range []string{
			"DELETE FROM deliveries WHERE merchant_id = '" + w.merchant + "'",
			"DELETE FROM events WHERE merchant_id = '" + w.merchant + "'",
			"DELETE FROM intents WHERE chain_key = '" + w.chainKey + "'",
			"DELETE FROM transfer_amounts WHERE chain_key = '" + w.chainKey + "'",
			"DELETE FROM invoices WHERE merchant_id = '" + w.merchant + "'",
			"DELETE FROM settlement_addresses WHERE merchant_id = '" + w.merchant + "'",
		} {
			expect.Success(t)(w.db.sql.ExecContext(t.Context(), statement))
		}
		w.create()
		watched, err := w.Watched(t.Context(), w.chainKey, []invoice.Address{w.address})
		if err != nil || !watched[w.address] {
			t.Errorf("the address is watched: %v, %v", watched, err)
		}
	})
}

// TestInvoiceQuota uses up a merchant's quota of invoices. Other merchants can still make invoices,
// and so can this one after the operator raised the quota. The operator's invoices are not refused.
func TestInvoiceQuota(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		quota := func(n int64) {
			t.Helper()
			expect.OK(t, w.db.store.Update(t.Context(), func(tx *db.Tx) error { return access.SetQuotas(t.Context(), tx, w.merchant, 0, n) }))
		}
		count := func() {
			t.Helper()
			expect.OK(t, w.CountInvoices(t.Context()))
		}
		create := func(byMerchant bool, key string) error {
			_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Key: key, Scope: w.merchant}, Draft: w.draft(), ByMerchant: byMerchant})
			return err
		}
		const most = 3
		quota(most)
		count()
		for range most {
			if err := create(true, "first"); err != nil { // the second and third repeat it
				t.Fatal(err)
			}
		}
		for n := range most {
			count()
			if err := create(true, ""); err != nil && n < most-1 {
				t.Fatalf("invoice %d of %d: %v", n+2, most, err)
			}
		}
		count()
		exceeded := (*limits.ExceededError)(nil)
		if err := create(true, ""); !errors.As(err, &exceeded) || exceeded.Limit != access.InvoiceQuotaName {
			t.Errorf("beyond the quota: %v", err)
		}
		if err := create(true, "first"); err != nil {
			t.Errorf("a repeated request: %v", err)
		}
		if err := create(false, ""); err != nil {
			t.Errorf("the operator's: %v", err)
		}
		quota(most + 2)
		count()
		if err := create(true, ""); err != nil {
			t.Errorf("after the quota was raised: %v", err)
		}
		count()
		expect.OK(t, create(false, "")) // in a round in which the merchant makes none
		count()
		if stored, err := access.NewReader(w.db.store).MerchantStorage(t.Context(), w.merchant); err != nil || stored.Invoices != most+3 {
			t.Errorf("%d invoices are stored, want %d; %v", stored.Invoices, most+3, err)
		}
	})
}

// TestBlockBeforePurchase reads a block, or accepts another request, between the check of a purchase's authorization
// and the creation of its invoice. The purchase is refused and does not leave an invoice.
func TestBlockBeforePurchase(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(w *world, a invoice.Authorization)
		want      invoice.Refusal
	}{
		"nothing": {func(*world, invoice.Authorization) {}, ""},
		"the transfer by somebody else": {func(w *world, a invoice.Authorization) {
			w.mine(start+1, w.transferOf(a))
		}, invoice.RefusedNonceUsed},
		"the last of the budget": {func(w *world, _ invoice.Authorization) {
			other := w.create()
			w.must(w.Authorize(w.t.Context(), other.ID, w.authorization(other, w.hash("another nonce"))))
		}, invoice.RefusedBudget},
	} {
		t.Run(name, func(t *testing.T) {
			eachWorld(t, func(t *testing.T, w *world) {
				checker := w.gasless(ledger.AuthorizationBudget{PerMerchant: 9, PerPayer: 9, PerDay: 1})
				w.create() // has the address watched
				draft := w.draft()
				a := invoice.Authorization{
					From: payer, To: draft.Merchant, Value: draft.Amount, ValidAfter: invoice.Unix(0),
					ValidBefore: invoice.Unix(w.seconds.Load() + 600), Nonce: w.hash("nonce"), Signature: []byte{1, 2, 3},
				}
				key := ledger.AuthorizationKey{ChainKey: w.chainKey, Token: usdc, Authorizer: a.From, Nonce: a.Nonce}
				checker.meanwhile = func() { test.meanwhile(w, a) }
				made, err := w.Purchase(t.Context(), ledger.Purchase{
					Draft: draft, Authorization: a,
					Settlement: ledger.X402Settlement{AuthorizationKey: key, MerchantID: w.merchant, Resource: "https://api.shop.example/1", CreatedAt: at(w.seconds.Load())},
				})
				settled, settlementErr := ledger.NewReader(w.db.store).X402Settlement(t.Context(), key)
				if test.want == "" {
					w.must(errors.Join(err, settlementErr))
					if inv := w.invoice(made.InvoiceID); settled.InvoiceID != inv.ID || inv.Status != invoice.Open || !inv.TransferAmount.IsZero() {
						t.Errorf("accepted: %+v, settled: %+v", made, settled)
					}
					return
				}
				wantRefused(t, err, test.want)
				expect.Error(t, db.ErrNotFound, "its settlement is %+v", settled)(settlementErr)
				if _, err := ledger.NewReader(w.db.store).AuthorizationByNonce(t.Context(), w.chainKey, usdc, a.From, a.Nonce); !errors.Is(err, db.ErrNotFound) {
					t.Errorf("the nonce is bound: %v", err)
				}
			})
		})
	}
}

// TestCreatesWhileTheDatabaseIsHeld blocks creates from another session: on PostgreSQL by the lock of events, on SQLite
// as the file's only writer. Each of many creates ends in time. One that waited too long for its transaction was not
// created, and the same key creates one invoice, whatever the result of the first try.
func TestCreatesWhileTheDatabaseIsHeld(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		const creates, timeout = 500, 10 * time.Second // a request's
		w := d.world(t)
		w.create() // it prepares the statements, and claims the address
		repeat := ledger.CreateRequest{Once: ledger.Once{Key: "made-before", Scope: w.merchant}, Draft: w.draft()}
		made, err := w.Create(t.Context(), repeat)
		w.must(err)
		release := d.hold(t)
		requests, errs := make([]ledger.CreateRequest, creates), make([]error, creates)
		began := time.Now()
		var group sync.WaitGroup
		for i := range creates {
			d := w.draft()
			d.Amount = invoice.NewAmount(uint64(2_000_000 + 1000*i))
			requests[i] = ledger.CreateRequest{Once: ledger.Once{Scope: w.merchant}, Draft: d}
			if i%2 == 0 {
				requests[i].Key = fmt.Sprint("order-", i)
			}
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				_, errs[i] = w.Create(ctx, requests[i])
			})
		}
		group.Go(func() {
			clock.Sleep(t.Context(), time.Second, nil) // until the transactions have taken the creates that they hold
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			if inv, err := w.Create(ctx, repeat); err != nil || inv.ID != made.ID {
				t.Errorf("a repeat got %q, %v; want %q", inv.ID, err, made.ID)
			}
		})
		group.Wait()
		if took := time.Since(began); took > timeout+5*time.Second {
			t.Errorf("the creates took %v", took)
		}
		release()
		again := time.Now()
		w.create() // behind the transaction in progress
		if took := time.Since(again); took > ledger.CreateWait {
			t.Errorf("a create took %v once the database was free", took)
		}
		withdrawn := 0
		for i, err := range errs {
			n := d.invoicesOf(t, w, requests[i])
			switch {
			case errors.Is(err, ledger.ErrCreatesWait):
				withdrawn++
				expect.Equal(t, n, 0, "create %d was refused; its invoices:", i)
			case err == nil && n != 1, n > 1:
				t.Errorf("create %d made %d invoices and returned %v", i, n, err)
			case err != nil && !db.Unavailable(err) && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("create %d: %v, want an error that asks to try again", i, err)
			}
		}
		if withdrawn < creates/2 {
			t.Errorf("%d of %d creates were refused before their transaction, want most", withdrawn, creates)
		}
		for i := 0; i < creates; i += 2 {
			group.Go(func() {
				if _, err := w.Create(t.Context(), requests[i]); err != nil {
					t.Errorf("create %d with its key again: %v", i, err)
				}
			})
		}
		group.Wait()
		for i := 0; i < creates; i += 2 {
			expect.Equal(t, d.invoicesOf(t, w, requests[i]), 1, "create %d with its key again: invoices:", i)
		}
	})
}

// TestGiveWay checks that low-priority work waits until no create waits, for its time at most.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.world(t)
		w.create()
		w.GiveWay(t.Context(), time.Hour) // until the transaction is over
		if w.GiveWay(t.Context(), time.Hour) {
			t.Error("it gave way, and no create waited")
		}
		release := d.hold(t)
		made := make(chan error, 1)
		go func() {
			_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Scope: w.merchant}, Draft: w.draft()})
			made <- err
		}()
		const most = 10 * time.Millisecond
		var waited time.Duration
		for tries := 0; waited == 0; tries++ {
			if began := time.Now(); w.GiveWay(t.Context(), most) {
				waited = time.Since(began)
			} else if clock.Sleep(t.Context(), time.Millisecond, nil); tries == 5000 {
				t.Fatal("no create waits while the database is held")
			}
		}
		if waited < most {
			t.Errorf("it gave way for %v, and a create still waited; want %v", waited, most)
		}
		gave := make(chan bool, 1)
		go func() { gave <- w.GiveWay(t.Context(), time.Hour) }()
		release()
		if err := <-made; err != nil {
			t.Errorf("create: %v", err)
		}
		<-gave
	})
}

// hold blocks creates from a separate session, until release is called.
func (d *database) hold(t *testing.T) (release func()) {
	t.Helper()
	statement := "UPDATE chains SET halted = halted"
	if strings.HasSuffix(t.Name(), "postgres") {
		statement = "SELECT pg_advisory_xact_lock(1903520116)" // the lock of events
	}
	session, err := d.sql.Conn(t.Context())
	if err == nil {
		_, err = session.ExecContext(t.Context(), "BEGIN")
	}
	if err == nil {
		_, err = session.ExecContext(t.Context(), statement)
	}
	expect.OK(t, err)
	return func() {
		if _, err := session.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		expect.NoError(t, session.Close())
	}
}

// invoicesOf counts the invoices of a create with a unique amount.
func (d *database) invoicesOf(t *testing.T, w *world, r ledger.CreateRequest) (n int) {
	t.Helper()
	query := fmt.Sprintf("SELECT count(*) FROM invoices WHERE merchant_id = '%s' AND amount = '%s'", w.merchant, r.Draft.Amount)
	expect.OK(t, d.sql.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// panicking merchants panic once an event of one is recorded.
type panicking struct{ ledger.Merchants }

func (panicking) WantsEvents(context.Context, db.Querier, string) (bool, error) {
	panic("no such merchant")
}

// TestCreatePanics ends a create with an error if it panics. It runs together with others, in a goroutine of none of them,
// so that the panic would end the process.
func TestCreatePanics(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.Service = w.service(func(c *ledger.Config) { c.Merchants = panicking{c.Merchants} })
		_, err := w.Create(t.Context(), ledger.CreateRequest{Draft: w.draft()})
		if err == nil || !strings.Contains(err.Error(), "panic: no such merchant") {
			t.Errorf("the create ended with %v", err)
		}
		w.Service = w.service()
		w.create()
	})
}
