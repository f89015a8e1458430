package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
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
			expect.NoError(t, err)
			expect.NoDiff(t, cmp.Diff(want, got, rowtest.Equal), "")
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
			expect.Error(t, db.ErrNotFound, "invoice %q", id)(ledger.NewReader(s).Invoice(t.Context(), id))
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
			expect.NoError(t, err)
			expect.NoDiff(t, cmp.Diff(want, got, rowtest.Equal), "")
		}
		checkRefund := func(want invoice.Refund) {
			t.Helper()
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.SaveRefunds(ctx, tx, want) })
			got, err := ledger.RefundsByID(t.Context(), s, []string{want.ID, "ref_9"})
			expect.NoError(t, err)
			expect.NoDiff(t, cmp.Diff([]invoice.Refund{want}, got, rowtest.Equal), "")
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
		expect.Error(t, db.ErrNotFound, "a payment that is not there")(ledger.NewReader(s).Payment(t.Context(), "pay_9"))
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
					expect.Equal(t, fresh, want, "notice %s is fresh:", n.ID)
					return err
				})
				n.ID += "again"
			}
		}
		got, err := rowtest.NoticesOfPayment(t.Context(), s, "pay_1")
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff([]invoice.Notice{full, bare}, got, rowtest.Equal), "")
	})
}

// slack is how many more round trips are allowed: on a busy machine the pool checks or opens a connection in between.
const slack = 2

// TestRoundTripsOfACreate bounds the round trips of a create, which matter if the database is far away.
func TestRoundTripsOfACreate(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	create := func(key string, byMerchant bool) (turns int64) {
		before := proxy.Turns()
		_, committed := proxy.Statements()
		_, err := w.Create(t.Context(), ledger.CreateRequest{Once: ledger.Once{Key: key, Scope: w.merchant}, Draft: w.draft(), ByMerchant: byMerchant})
		expect.OK(t, err)
		if _, commits := proxy.Statements(); commits > committed+1 {
			t.Errorf("a create took %d commits, want 1", commits-committed)
		}
		return proxy.Turns() - before
	}
	for n, key := range []string{"", "first"} { // they prepare the statements, and claim the address
		create(key, false)
		w.seconds.Add(2)
		create(key+fmt.Sprint(n), true)
		w.seconds.Add(2)
		create(key+fmt.Sprint(n+2), true)
	}
	const most = 2
	for _, byMerchant := range []bool{false, true} {
		for _, later := range []int64{0, 60} { // seconds; the holding of the address is looked up again
			for _, keyed := range []bool{false, true} {
				turns := func(try int) int64 {
					w.seconds.Add(later)
					key := ""
					if keyed {
						key = fmt.Sprint("order-", byMerchant, later, try)
					}
					return create(key, byMerchant)
				}
				if n := min(turns(1), turns(2), turns(3)); n > most { // one may open a connection
					t.Errorf("a create by the merchant: %v, with a key: %v, %d s after the last one took %d round trips, want at most %d", byMerchant, keyed, later, n, most)
				}
			}
		}
	}
}

// TestRoundTripsOfABlock checks that a block of many payments takes as many round trips as one
// of few, when it is read and when it is final.
func TestRoundTripsOfABlock(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	turns := func(payments int) (observed, confirmed int64) {
		var transfers []invoice.Transfer
		for range payments {
			transfers = append(transfers, w.pay(w.create().TransferAmount))
		}
		before := proxy.Turns()
		w.mine(w.head().Time.Unix()+1, transfers...)
		between := proxy.Turns()
		w.final()
		return between - before, proxy.Turns() - between
	}
	for range 2 {
		turns(5) // they prepare the statements
		turns(100)
	}
	observed, confirmed := turns(5)
	manyObserved, manyConfirmed := turns(100)
	for range 2 { // a further connection that a slow machine opens prepares the statements as well
		if manyObserved <= observed && manyConfirmed <= confirmed {
			break
		}
		again, andAgain := turns(100)
		manyObserved, manyConfirmed = min(manyObserved, again), min(manyConfirmed, andAgain)
	}
	t.Logf("5 payments: %d and %d round trips, 100: %d and %d", observed, confirmed, manyObserved, manyConfirmed)
	if manyObserved > observed+slack || manyConfirmed > confirmed+slack {
		t.Errorf("100 payments take %d and %d round trips, 5 take %d and %d", manyObserved, manyConfirmed, observed, confirmed)
	}
}

// TestRoundTripsOfExpiry checks that a transaction expires many invoices in as many round trips as few.
func TestRoundTripsOfExpiry(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	turns := func(invoices int) int64 {
		for range invoices {
			w.create()
		}
		w.mine(w.draft().ExpiresAt.Unix() + 1)
		before := proxy.Turns()
		w.final()
		return proxy.Turns() - before
	}
	for range 2 {
		turns(5) // they prepare the statements
		turns(40)
	}
	few, many := turns(5), turns(40)
	for try := 0; try < 2 && many > few; try++ { // a further connection prepares the statements, too
		many = min(many, turns(40))
	}
	if many > few+slack {
		t.Errorf("40 invoices expire in %d round trips, 5 in %d", many, few)
	}
}

// TestRoundTripsOfImport checks that an import looks up its own commitment, not all that are lost.
func TestRoundTripsOfImport(t *testing.T) {
	t.Parallel()
	w, proxy := proxied(t)
	w.create()
	turns := func(lost int) int64 {
		var all []invoice.Invoice
		for i := range lost {
			all = append(all, w.lostInvoice(func(inv *invoice.Invoice) { inv.Amount = invoice.NewAmount(uint64(2_000_000 + 100*w.txs + i)) }))
		}
		w.lose(all...)
		before := proxy.Turns()
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, all[0], 0, ""), nil))
		return proxy.Turns() - before
	}
	for range 2 {
		turns(1) // they prepare the statements
	}
	if few, many := turns(1), turns(30); many > few+slack {
		t.Errorf("with 30 lost invoices an import takes %d round trips, with fewer %d", many, few)
	}
}

// proxied returns a world on PostgreSQL, and the proxy that counts its round trips.
func proxied(t *testing.T) (*world, *dbtest.Proxy) {
	t.Helper()
	direct := dbtest.MigratedPostgres(t)
	proxy, through, err := dbtest.StartProxy(t.Context(), direct, 0)
	expect.OK(t, err)
	d := &database{store: dbtest.Open(t, through), sql: dbtest.SQL(t, direct)}
	t.Cleanup(func() { expect.NoError(t, errors.Join(d.store.Close(), proxy.Close())) })
	return d.world(t), proxy
}
