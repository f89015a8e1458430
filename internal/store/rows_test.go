package store_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// equal compares amounts by value, and treats nil and empty slices alike.
var equal = cmp.Options{cmp.Comparer(func(a, b invoice.Amount) bool { return a == b }), cmpopts.EquateEmpty()}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func update(t testing.TB, s *store.Store, fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	must(t, s.Update(t.Context(), func(tx *store.Tx) error { return fn(t.Context(), tx) }))
}

// sample returns an open invoice of a merchant.
func sample(id, merchant string) invoice.Invoice {
	return invoice.Invoice{
		Terms:        invoice.Terms{Merchant: invoice.Address{0xaa}, Token: invoice.Address{0xcc}, Amount: invoice.NewAmount(100), ExpiresAt: invoice.Unix(2000)},
		ID:           id,
		CommitmentID: sha256.Sum256([]byte(id)), MerchantID: merchant, Currency: "USDC", ChainKey: "base",
		Status: invoice.Open, CreatedAt: invoice.Unix(1000), Collection: invoice.Direct,
	}
}

// insert stores invoices with their merchants and settlement addresses.
func insert(t testing.TB, s *store.Store, invoices ...invoice.Invoice) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		var settlements []store.SettlementAddress
		var holdings []store.Holding
		for _, inv := range invoices {
			holdings = append(holdings, store.Holding{Address: inv.Merchant, MerchantID: inv.MerchantID})
			settlements = append(settlements, store.SettlementAddress{ChainKey: inv.ChainKey, Address: inv.Merchant, MerchantID: inv.MerchantID})
		}
		if err := tx.InsertSettlementAddresses(ctx, settlements, invoice.Unix(900)); err != nil {
			return err
		}
		if _, _, err := tx.GrantAddresses(ctx, holdings, invoice.Unix(900)); err != nil {
			return err
		}
		inserted, err := tx.InsertInvoices(ctx, invoices)
		if err == nil && len(inserted) != len(invoices) {
			err = fmt.Errorf("%d of %d invoices were inserted", len(inserted), len(invoices))
		}
		return err
	})
}

// startChain stores a chain that is indexed up to block 100 and final up to block 90.
func startChain(t testing.TB, s *store.Store, chainKey string) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		if _, err := tx.InsertChain(ctx, chainKey, invoice.Header{Number: 90, Hash: invoice.Hash{90}, Time: invoice.Unix(900)}, nil); err != nil {
			return err
		}
		c := store.Cursor{
			Indexed:   invoice.Header{Number: 100, Hash: invoice.Hash{100}, Time: invoice.Unix(1000)},
			Confirmed: invoice.Header{Number: 90, Hash: invoice.Hash{90}, Time: invoice.Unix(900)},
		}
		return tx.SaveCursor(ctx, chainKey, c)
	})
}

// samplePayment returns the n-th sample payment, which is unattributed.
func samplePayment(n int) store.PaymentRow {
	var p store.PaymentRow
	p.Transfer = invoice.Transfer{
		Position: invoice.Position{BlockNumber: uint64(100 + n), BlockHash: invoice.Hash{1, byte(n)}, BlockTime: invoice.Unix(int64(1000 + n)), LogIndex: n},
		ChainKey: "base", TxHash: sha256.Sum256(fmt.Append(nil, "tx", n)), Ordinal: 3, Token: invoice.Address{0xcc}, Currency: "USDC",
		From: invoice.Address{0xbb}, To: invoice.Address{0xaa}, Amount: invoice.NewAmount(100),
	}
	p.ID, p.SeenID = fmt.Sprintf("pay_%d", n), fmt.Sprintf("seen_%06d", n)
	p.Status, p.ObservedAt = invoice.Pending, at(1234)
	return p
}

func TestInvoiceRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		plain := sample("inv_1", "m")
		full := sample("inv_2", "merchant.of_64-characters"+fmt.Sprintf("%039d", 7))
		full.Amount, full.TransferAmount = invoice.MaxAmount.Minus(invoice.NewAmount(9)), invoice.MaxAmount
		full.LineItems = []invoice.LineItem{
			{Label: "naïve \"quotes\" <&> \\ \x00 ☕ $1 ?1", Amount: invoice.NewAmount(1)}, {Label: "b", Amount: invoice.MaxAmount},
		}
		full.Collection, full.DepositFactory, full.DepositAddress = invoice.Deposit, invoice.Address{0xfa}, invoice.Address{0xda}
		full.Currency, full.ChainKey, full.CreatedAt, full.ExpiresAt = "EURC", "arc-testnet", invoice.Unix(1<<37), invoice.Unix(1<<37+1)
		insert(t, s, plain, full)
		check := func(want invoice.Invoice) {
			t.Helper()
			got, err := s.Invoice(t.Context(), want.ID)
			if diff := cmp.Diff(want, got, equal); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		}
		check(plain)
		check(full)
		for _, status := range []invoice.Status{invoice.Drafted, invoice.Void, invoice.Expired, invoice.Paid} {
			for _, exception := range []invoice.Exception{invoice.Underpaid, invoice.Overpaid, invoice.Late, invoice.Duplicate, ""} {
				full.Status, full.Exception = status, exception
				full.AmountPaid, full.AmountRefunded = invoice.MaxAmount, invoice.NewAmount(5)
				full.Sums = invoice.Sums{
					Stale: true, Payments: 1, InTime: invoice.MaxAmount, InTimeDust: invoice.NewAmount(2), Late: invoice.NewAmount(3), LateDust: invoice.NewAmount(4),
					Newest: invoice.Position{BlockNumber: 1 << 40, LogIndex: 6},
					Tally: invoice.Tally{
						Due: invoice.NewAmount(7), DueDust: invoice.NewAmount(8), BeyondDust: invoice.NewAmount(9),
						Last: invoice.Position{BlockNumber: 10, LogIndex: 11},
					},
				}
				if status == invoice.Paid {
					full.SettledTx, full.SettledAt = invoice.Hash{0xfe}, invoice.Unix(1<<37+5)
				}
				update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateInvoices(ctx, []invoice.Invoice{full}) })
				check(full)
			}
		}
		check(plain)
		missing := sample("inv_3", "m")
		if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.UpdateInvoices(t.Context(), []invoice.Invoice{missing}) }); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("updating an invoice that is not there: %v", err)
		}
		for _, id := range []string{"inv_3", "", "inv_1 ", "INV_1", "' OR 1=1 --"} {
			if _, err := s.Invoice(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("invoice %q: %v, want ErrNotFound", id, err)
			}
		}
		if got, err := s.InvoicesWithoutLines(t.Context(), []string{"inv_2", "inv_9", "inv_1"}); err != nil || len(got) != 2 {
			t.Errorf("invoices by id: %d, %v", len(got), err)
		}
		if got, err := s.InvoicesWithoutLines(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("invoices by no id: %d, %v", len(got), err)
		}
	})
}

func TestPaymentAndRefundRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		startChain(t, s, "base")
		insert(t, s, sample("inv_1", "m"), sample("inv_2", "n"))
		bare := samplePayment(1)
		full := samplePayment(2)
		full.Amount, full.Evidence.Calldata = invoice.MaxAmount, invoice.Hash{0xee}
		full.InvoiceID, full.MerchantID, full.Method = "inv_1", "m", invoice.ByAuthorization
		full.Status, full.ConfirmedAt = invoice.Confirmed, at(4321)
		refund := invoice.Refund{
			Transfer: full.Transfer, ID: "ref_1", PaymentID: full.ID, InvoiceID: "inv_1", MerchantID: "m",
			Status: invoice.Pending, ObservedAt: at(77),
		}
		check := func(want store.PaymentRow) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return errors.Join(tx.SavePayments(ctx, []store.PaymentRow{want}), tx.RefreshUses(ctx, want.ID))
			})
			if want.Use = invoice.UseUndecided; want.Attributed() {
				want.Use = invoice.UseCounted
			}
			got, err := s.Payment(t.Context(), want.ID)
			if diff := cmp.Diff(want, got, equal); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		}
		checkRefund := func(want invoice.Refund) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveRefund(ctx, want) })
			got, err := s.RefundsByID(t.Context(), []string{want.ID, "ref_9"})
			if diff := cmp.Diff([]invoice.Refund{want}, got, equal); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		}
		check(bare)
		check(full)
		checkRefund(refund)
		// A reorg may change these columns.
		moved := bare
		moved.Position = invoice.Position{BlockNumber: 1 << 40, BlockHash: invoice.Hash{9}, BlockTime: invoice.Unix(1<<37 + 9), LogIndex: 12345}
		moved.Token, moved.Currency, moved.From, moved.To = invoice.Address{1}, "EURC", invoice.Address{2}, invoice.Address{3}
		moved.Amount, moved.Evidence.Calldata = invoice.NewAmount(9), invoice.Hash{7}
		moved.InvoiceID, moved.MerchantID, moved.Method = "inv_2", "n", invoice.ByTransferAmount
		for _, status := range []invoice.PaymentStatus{invoice.Orphaned, invoice.Pending} {
			moved.Status = status
			check(moved)
		}
		refund.Position, refund.Amount, refund.Evidence = moved.Position, invoice.NewAmount(3), invoice.Evidence{}
		refund.PaymentID, refund.InvoiceID, refund.MerchantID = moved.ID, "inv_2", "n"
		refund.Status, refund.ConfirmedAt = invoice.Confirmed, at(99)
		checkRefund(refund)
		check(bare) // unattributed again
		// The time of the first observation does not change.
		again := full
		again.SeenID, again.ObservedAt = "seen_other", at(1)
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SavePayments(ctx, []store.PaymentRow{again}) })
		if got, err := s.Payment(t.Context(), full.ID); err != nil || got.SeenID != full.SeenID || !got.ObservedAt.Equal(full.ObservedAt) {
			t.Errorf("seen again, it was seen first as %s at %s, %v", got.SeenID, got.ObservedAt, err)
		}
		if _, err := s.Payment(t.Context(), "pay_9"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a payment that is not there: %v", err)
		}
	})
}

func TestCursorAndHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if _, err := s.Cursor(t.Context(), "base"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a chain that was never read: %v", err)
		}
		startChain(t, s, "base")
		startChain(t, s, "other")
		want := store.Cursor{
			Indexed:   invoice.Header{Number: 1 << 50, Hash: invoice.Hash{0xff}, Time: invoice.Unix(1 << 37)},
			Confirmed: invoice.Header{Number: 1<<50 - 1, Hash: invoice.Hash{0xfe}, Time: invoice.Unix(1<<37 - 1)}, Halted: "why: 'x' ☕",
		}
		for _, gap := range []*store.Gap{{Next: 0, Last: 1 << 50, LastTime: invoice.Unix(1<<37 + 7)}, {Next: 9, Last: 9, LastTime: invoice.Unix(0)}, nil} {
			want.Gap = gap
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.SaveCursor(ctx, "base", want) })
			got, err := s.Cursor(t.Context(), "base")
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(store.Cursor{})); err != nil || diff != "" {
				t.Errorf("%v, cursor (-written +read):\n%s", err, diff)
			}
		}
		if got, err := s.Cursor(t.Context(), "other"); err != nil || got.Indexed.Number != 100 || got.Halted != "" {
			t.Errorf("the other chain's cursor is %+v, %v", got, err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			fresh, err := tx.InsertChain(ctx, "base", invoice.Header{Number: 1}, nil)
			if fresh {
				t.Error("a chain is inserted a second time")
			}
			return err
		})
		var headers []invoice.Header
		for n := uint64(1); n <= 600; n++ {
			headers = append(headers, invoice.Header{Number: n, Hash: invoice.Hash{1, byte(n >> 8), byte(n)}, Parent: invoice.Hash{2, byte(n)}, Time: invoice.Unix(int64(n * 12))})
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.InsertHeaders(ctx, "base", headers) })
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteHeaders(ctx, "base", 200, 400) })
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteHeaders(ctx, "other", 0, 0) })
		got, err := s.Headers(t.Context(), "base", 0, 1<<40)
		if diff := cmp.Diff(headers[199:400], got); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		if got, err = s.Headers(t.Context(), "other", 0, 1<<40); err != nil || len(got) != 0 {
			t.Errorf("%d headers of the other chain, %v", len(got), err)
		}
	})
}

func TestNoticeRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		startChain(t, s, "base")
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.SavePayments(ctx, []store.PaymentRow{samplePayment(1)})
		})
		full := invoice.Notice{
			ID: "ntc_1", Provider: "circle", Type: "transfers.created", TransferID: "t1", AmountText: "3.14", ProviderCurrency: "USD",
			ProviderChain: "BASE", Destination: "0xAa", Amount: invoice.MaxAmount, Currency: "USDC", ChainKey: "base",
			Address: invoice.Address{0xaa}, PaymentID: "pay_1", ReceivedAt: time.Unix(55, 0).UTC(),
		}
		bare := invoice.Notice{
			ID: "ntc_2", Provider: "circle", Type: "transfers.created", TransferID: "t2", AmountText: "1e", ProviderCurrency: "XYZ",
			ProviderChain: "BTC", Destination: "3J98", PaymentID: "pay_1", ReceivedAt: time.Unix(56, 0).UTC(),
		}
		for _, n := range []invoice.Notice{full, bare} {
			for _, want := range []bool{true, false} {
				update(t, s, func(ctx context.Context, tx *store.Tx) error {
					fresh, err := tx.InsertNotice(ctx, n)
					if fresh != want {
						t.Errorf("notice %s is fresh: %t, want %t", n.ID, fresh, want)
					}
					return err
				})
				n.ID += "again"
			}
		}
		got, err := s.NoticesOfPayment(t.Context(), "pay_1")
		if diff := cmp.Diff([]invoice.Notice{full, bare}, got, equal); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
	})
}

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		insert(t, s, sample("inv_1", "m"))
		told := store.Event{
			ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_1", MerchantID: "m", InvoiceID: "inv_1",
			Body: []byte("{\"a\": 1.0,\n  \"b\":\"\\u0000 ☕\"}"), CreatedAt: invoice.Unix(5), DeliveryID: "dlv_1", Due: atMS(5001),
		}
		silent := told
		silent.ID, silent.Type, silent.DeliveryID = "evt_2", invoice.EventPaid, ""
		again := told
		again.ID, again.DeliveryID = "evt_3", "dlv_3"
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.InsertEvents(ctx, []store.Event{told, silent})
		})
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.InsertEvents(ctx, []store.Event{again}) })
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.InsertEvents(ctx, nil) })
		leased, err := s.LeaseDeliveries(t.Context(), delivery.LeaseRequest{
			LeaseID: "l", Now: atMS(6000), Until: atMS(7000), Lane: delivery.First, Suspect: 9, PerMerchant: 9, Queues: []delivery.Queue{{MerchantID: "m"}},
		})
		want := []delivery.Delivery{{
			Suspect: true, Seq: 1, ID: "dlv_1", EventID: "evt_1", MerchantID: "m", EventType: "invoice.created", Body: told.Body, Due: atMS(5001), Deadline: atMS(5001).Add(delivery.RetryWindow),
		}}
		if diff := cmp.Diff(want, leased.Deliveries); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		if r, _, err := s.EventRecord(t.Context(), silent.ID); err != nil || r.Status != delivery.None || r.Seq != 2 {
			t.Errorf("the event without a delivery: %+v, %v", r, err)
		}
		if _, _, err := s.EventRecord(t.Context(), again.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the event that was told before: %v, want ErrNotFound", err)
		}
	})
}

func TestIdempotencyKeyWindow(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		insert(t, s, sample("inv_1", "m"), sample("inv_2", "m"))
		const window = int64(store.IdempotencyWindow / time.Second)
		use := func(k store.IdempotencyKey, now int64) (fresh bool) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				taken, err := tx.InsertIdempotencyKeys(ctx, []store.IdempotencyKey{k}, invoice.Unix(now))
				fresh = !taken[k.InvoiceID]
				return err
			})
			return fresh
		}
		first := store.IdempotencyKey{Scope: "m", Key: "k", RequestHash: invoice.Hash{1}, InvoiceID: "inv_1"}
		second := store.IdempotencyKey{Scope: "m", Key: "k", RequestHash: invoice.Hash{2}, InvoiceID: "inv_2"}
		other := store.IdempotencyKey{Scope: "n", Key: "k", RequestHash: invoice.Hash{2}, InvoiceID: "inv_2"}
		if !use(first, 1000) || use(second, 1000) || use(second, 1000+window-1) || !use(other, 1000) {
			t.Error("a key is taken within its window, or one of another scope is not")
		}
		if got, err := s.IdempotencyKey(t.Context(), "m", "k", invoice.Unix(1000+window-1)); err != nil || got != first {
			t.Errorf("in the window's last second: %+v, %v", got, err)
		}
		if _, err := s.IdempotencyKey(t.Context(), "m", "k", invoice.Unix(1000+window)); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after the window: %v", err)
		}
		if !use(second, 1000+window) {
			t.Error("a key is not free after its window")
		}
		if got, err := s.IdempotencyKey(t.Context(), "m", "k", invoice.Unix(1000+window)); err != nil || got != second {
			t.Errorf("used anew: %+v, %v", got, err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.DeleteIdempotencyKeys(ctx, invoice.Unix(1000+window), 10)
			if n != 1 {
				t.Errorf("%d old keys were deleted, want 1", n)
			}
			return err
		})
	})
}

// at returns a time that is given in Unix seconds.
func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
