package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestInvoiceRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		plain := rowtest.Sample("inv_1", "m")
		full := rowtest.Sample("inv_2", "merchant.of_64-characters"+fmt.Sprintf("%039d", 7))
		full.Amount, full.TransferAmount = invoice.MaxAmount.Minus(invoice.NewAmount(9)), invoice.MaxAmount
		full.LineItems = []invoice.LineItem{
			{Label: "naïve \"quotes\" <&> \\ \x00 ☕ $1 ?1", Amount: invoice.NewAmount(1)}, {Label: "b", Amount: invoice.MaxAmount},
		}
		full.Collection, full.DepositFactory, full.DepositAddress = invoice.Deposit, invoice.Address{0xfa}, invoice.Address{0xda}
		full.Currency, full.ChainKey, full.CreatedAt, full.ExpiresAt = "EURC", "arc-testnet", invoice.Unix(1<<37), invoice.Unix(1<<37+1)
		rowtest.Insert(t, s, plain, full)
		check := func(want invoice.Invoice) {
			t.Helper()
			got, err := ledger.NewReader(s).Invoice(t.Context(), want.ID)
			if diff := cmp.Diff(want, got, rowtest.Equal); err != nil || diff != "" {
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
				rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
					return ledger.UpdateInvoices(ctx, tx, []invoice.Invoice{full})
				})
				check(full)
			}
		}
		check(plain)
		missing := rowtest.Sample("inv_3", "m")
		if err := s.Update(t.Context(), func(tx *db.Tx) error { return ledger.UpdateInvoices(t.Context(), tx, []invoice.Invoice{missing}) }); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("updating an invoice that is not there: %v", err)
		}
		for _, id := range []string{"inv_3", "", "inv_1 ", "INV_1", "' OR 1=1 --"} {
			if _, err := ledger.NewReader(s).Invoice(t.Context(), id); !errors.Is(err, db.ErrNotFound) {
				t.Errorf("invoice %q: %v, want ErrNotFound", id, err)
			}
		}
		if got, err := ledger.InvoicesWithoutLines(t.Context(), s, []string{"inv_2", "inv_9", "inv_1"}); err != nil || len(got) != 2 {
			t.Errorf("invoices by id: %d, %v", len(got), err)
		}
		if got, err := ledger.InvoicesWithoutLines(t.Context(), s, nil); err != nil || len(got) != 0 {
			t.Errorf("invoices by no id: %d, %v", len(got), err)
		}
	})
}

func TestPaymentAndRefundRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "n"))
		bare := rowtest.SamplePayment(1)
		full := rowtest.SamplePayment(2)
		full.Amount, full.Evidence.Calldata = invoice.MaxAmount, invoice.Hash{0xee}
		full.InvoiceID, full.MerchantID, full.Method = "inv_1", "m", invoice.ByAuthorization
		full.Status, full.ConfirmedAt = invoice.Confirmed, rowtest.At(4321)
		refund := invoice.Refund{
			Transfer: full.Transfer, ID: "ref_1", PaymentID: full.ID, InvoiceID: "inv_1", MerchantID: "m",
			Status: invoice.Pending, ObservedAt: rowtest.At(77),
		}
		check := func(want ledger.PaymentRow) {
			t.Helper()
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return errors.Join(ledger.SavePayments(ctx, tx, []ledger.PaymentRow{want}), ledger.RefreshUses(ctx, tx, want.ID))
			})
			if want.Use = invoice.UseUndecided; want.Attributed() {
				want.Use = invoice.UseCounted
			}
			got, err := ledger.NewReader(s).Payment(t.Context(), want.ID)
			if diff := cmp.Diff(want, got, rowtest.Equal); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		}
		checkRefund := func(want invoice.Refund) {
			t.Helper()
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SaveRefund(ctx, tx, want) })
			got, err := ledger.RefundsByID(t.Context(), s, []string{want.ID, "ref_9"})
			if diff := cmp.Diff([]invoice.Refund{want}, got, rowtest.Equal); err != nil || diff != "" {
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
		refund.Status, refund.ConfirmedAt = invoice.Confirmed, rowtest.At(99)
		checkRefund(refund)
		check(bare) // unattributed again
		// The time of the first observation does not change.
		again := full
		again.SeenID, again.ObservedAt = "seen_other", rowtest.At(1)
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{again})
		})
		if got, err := ledger.NewReader(s).Payment(t.Context(), full.ID); err != nil || got.SeenID != full.SeenID || !got.ObservedAt.Equal(full.ObservedAt) {
			t.Errorf("seen again, it was seen first as %s at %s, %v", got.SeenID, got.ObservedAt, err)
		}
		if _, err := ledger.NewReader(s).Payment(t.Context(), "pay_9"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a payment that is not there: %v", err)
		}
	})
}

func TestCursorAndHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		if _, err := ledger.NewReader(s).Cursor(t.Context(), "base"); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a chain that was never read: %v", err)
		}
		rowtest.StartChain(t, s, "base")
		rowtest.StartChain(t, s, "other")
		want := ledger.Cursor{
			Indexed:   invoice.Header{Number: 1 << 50, Hash: invoice.Hash{0xff}, Time: invoice.Unix(1 << 37)},
			Confirmed: invoice.Header{Number: 1<<50 - 1, Hash: invoice.Hash{0xfe}, Time: invoice.Unix(1<<37 - 1)}, Halted: "why: 'x' ☕",
		}
		for _, gap := range []*ledger.Gap{{Next: 0, Last: 1 << 50, LastTime: invoice.Unix(1<<37 + 7)}, {Next: 9, Last: 9, LastTime: invoice.Unix(0)}, nil} {
			want.Gap = gap
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SaveCursor(ctx, tx, "base", want) })
			got, err := ledger.NewReader(s).Cursor(t.Context(), "base")
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(ledger.Cursor{})); err != nil || diff != "" {
				t.Errorf("%v, cursor (-written +read):\n%s", err, diff)
			}
		}
		if got, err := ledger.NewReader(s).Cursor(t.Context(), "other"); err != nil || got.Indexed.Number != 100 || got.Halted != "" {
			t.Errorf("the other chain's cursor is %+v, %v", got, err)
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			fresh, err := ledger.InsertChain(ctx, tx, "base", invoice.Header{Number: 1}, nil)
			if fresh {
				t.Error("a chain is inserted a second time")
			}
			return err
		})
		var headers []invoice.Header
		for n := uint64(1); n <= 600; n++ {
			headers = append(headers, invoice.Header{Number: n, Hash: invoice.Hash{1, byte(n >> 8), byte(n)}, Parent: invoice.Hash{2, byte(n)}, Time: invoice.Unix(int64(n * 12))})
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.InsertHeaders(ctx, tx, "base", headers) })
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.DeleteHeaders(ctx, tx, "base", 200, 400) })
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.DeleteHeaders(ctx, tx, "other", 0, 0) })
		got, err := ledger.Headers(t.Context(), s, "base", 0, 1<<40)
		if diff := cmp.Diff(headers[199:400], got); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		if got, err = ledger.Headers(t.Context(), s, "other", 0, 1<<40); err != nil || len(got) != 0 {
			t.Errorf("%d headers of the other chain, %v", len(got), err)
		}
	})
}

func TestNoticeRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.SavePayments(ctx, tx, []ledger.PaymentRow{rowtest.SamplePayment(1)})
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
				rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
					fresh, err := ledger.InsertNotice(ctx, tx, n)
					if fresh != want {
						t.Errorf("notice %s is fresh: %t, want %t", n.ID, fresh, want)
					}
					return err
				})
				n.ID += "again"
			}
		}
		got, err := ledger.NoticesOfPayment(t.Context(), s, "pay_1")
		if diff := cmp.Diff([]invoice.Notice{full, bare}, got, rowtest.Equal); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
	})
}

func TestEventRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		told := webhooks.Event{
			ID: "evt_1", Type: invoice.EventCreated, Subject: "inv_1", MerchantID: "m", InvoiceID: "inv_1",
			Body: []byte("{\"a\": 1.0,\n  \"b\":\"\\u0000 ☕\"}"), CreatedAt: invoice.Unix(5), DeliveryID: "dlv_1", Due: rowtest.AtMS(5001),
		}
		silent := told
		silent.ID, silent.Type, silent.DeliveryID = "evt_2", invoice.EventPaid, ""
		again := told
		again.ID, again.DeliveryID = "evt_3", "dlv_3"
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return webhooks.InsertEvents(ctx, tx, []webhooks.Event{told, silent})
		})
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return webhooks.InsertEvents(ctx, tx, []webhooks.Event{again})
		})
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return webhooks.InsertEvents(ctx, tx, nil) })
		leased, err := webhooks.NewTables(s).LeaseDeliveries(t.Context(), webhooks.LeaseRequest{
			LeaseID: "l", Now: rowtest.AtMS(6000), Until: rowtest.AtMS(7000), Lane: webhooks.First, Suspect: 9, PerMerchant: 9, Queues: []webhooks.Queue{{MerchantID: "m"}},
		})
		want := []webhooks.Delivery{{
			Suspect: true, Seq: 1, ID: "dlv_1", EventID: "evt_1", MerchantID: "m", EventType: "invoice.created", Body: told.Body, Due: rowtest.AtMS(5001), Deadline: rowtest.AtMS(5001).Add(webhooks.RetryWindow),
		}}
		if diff := cmp.Diff(want, leased.Deliveries); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		if r, _, err := webhooks.NewReader(s).EventRecord(t.Context(), silent.ID); err != nil || r.Status != webhooks.None || r.Seq != 2 {
			t.Errorf("the event without a delivery: %+v, %v", r, err)
		}
		if _, _, err := webhooks.NewReader(s).EventRecord(t.Context(), again.ID); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("the event that was told before: %v, want ErrNotFound", err)
		}
	})
}

func TestIdempotencyKeyWindow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m"))
		const window = int64(ledger.IdempotencyWindow / time.Second)
		use := func(k ledger.IdempotencyKey, now int64) (fresh bool) {
			t.Helper()
			err := s.Update(t.Context(), func(tx *db.Tx) error {
				return ledger.InsertIdempotencyKeys(t.Context(), tx, []ledger.IdempotencyKey{k}, invoice.Unix(now))
			})
			if err != nil && !db.Taken(err) {
				t.Fatal(err)
			}
			return err == nil
		}
		first := ledger.IdempotencyKey{Scope: "m", Key: "k", RequestHash: invoice.Hash{1}, InvoiceID: "inv_1"}
		second := ledger.IdempotencyKey{Scope: "m", Key: "k", RequestHash: invoice.Hash{2}, InvoiceID: "inv_2"}
		other := ledger.IdempotencyKey{Scope: "n", Key: "k", RequestHash: invoice.Hash{2}, InvoiceID: "inv_2"}
		if !use(first, 1000) || use(second, 1000) || use(second, 1000+window-1) || !use(other, 1000) {
			t.Error("a key is taken within its window, or one of another scope is not")
		}
		if got, err := ledger.FindIdempotencyKey(t.Context(), s, "m", "k", invoice.Unix(1000+window-1)); err != nil || got != first {
			t.Errorf("in the window's last second: %+v, %v", got, err)
		}
		if _, err := ledger.FindIdempotencyKey(t.Context(), s, "m", "k", invoice.Unix(1000+window)); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("after the window: %v", err)
		}
		if !use(second, 1000+window) {
			t.Error("a key is not free after its window")
		}
		if got, err := ledger.FindIdempotencyKey(t.Context(), s, "m", "k", invoice.Unix(1000+window)); err != nil || got != second {
			t.Errorf("used anew: %+v, %v", got, err)
		}
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			n, err := ledger.DeleteIdempotencyKeys(ctx, tx, invoice.Unix(1000+window), 10)
			if n != 1 {
				t.Errorf("%d old keys were deleted, want 1", n)
			}
			return err
		})
	})
}
