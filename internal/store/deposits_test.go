package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// depositPayment is a confirmed payment of 100 to the deposit address of an invoice.
func depositPayment(inv invoice.Invoice) store.PaymentRow {
	p := samplePayment(90)
	p.To, p.DepositOf, p.SettlesTo = inv.DepositAddress, inv.ID, inv.Merchant
	p.InvoiceID, p.MerchantID, p.Method = inv.ID, inv.MerchantID, invoice.ByDeposit
	p.Status, p.ConfirmedAt = invoice.Confirmed, at(2000)
	return p
}

// depositSweep is the sweep number n of an amount from the deposit address of an invoice.
func depositSweep(inv invoice.Invoice, n int, amount uint64) invoice.Sweep {
	s := invoice.Sweep{Transfer: samplePayment(n).Transfer, ID: "swp_" + samplePayment(n).ID, InvoiceID: inv.ID, Status: invoice.Pending, ObservedAt: at(1234)}
	s.From, s.To, s.Amount = inv.DepositAddress, inv.Merchant, invoice.NewAmount(amount)
	return s
}

// fillDeposit stores a payment to a deposit address, and a sweep that is not final.
func fillDeposit(ctx context.Context, tx *store.Tx, inv invoice.Invoice) error {
	p := depositPayment(inv)
	if err := tx.SavePayments(ctx, []store.PaymentRow{p}); err != nil {
		return err
	}
	if err := tx.SaveSweeps(ctx, []invoice.Sweep{depositSweep(inv, 91, 60)}); err != nil {
		return err
	}
	return tx.AddToDeposits(ctx, []invoice.Payment{p.Payment}, nil)
}

func TestDepositRoundTrip(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s)
		inv, err := s.Invoice(t.Context(), "inv_3")
		must(t, err)
		payment, err := s.Payment(t.Context(), depositPayment(inv).ID)
		must(t, err)
		written := depositPayment(inv)
		written.Use = invoice.UseCounted
		if diff := cmp.Diff(written, payment, equal); diff != "" {
			t.Errorf("payment (-written +read):\n%s", diff)
		}
		found, err := s.Deposits(t.Context(), "base", []invoice.Address{{1}, inv.DepositAddress, inv.Merchant})
		if diff := cmp.Diff(map[invoice.Address]string{inv.DepositAddress: "inv_3"}, found); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		if found, err := s.Deposits(t.Context(), "ethereum", []invoice.Address{inv.DepositAddress}); err != nil || len(found) > 0 {
			t.Errorf("on another chain: %v, %v", found, err)
		}
		if are, err := s.AreDeposits(t.Context(), []invoice.Address{inv.Merchant, inv.DepositAddress}); err != nil || !are[inv.DepositAddress] || are[inv.Merchant] {
			t.Errorf("deposit addresses are %v, %v", are, err)
		}
		want := []invoice.Sweep{depositSweep(inv, 91, 60)}
		got, err := s.PendingSweeps(t.Context(), "base", 0, 999)
		if diff := cmp.Diff(want, got, equal); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.OrphanAbove(ctx, "base", 100, at(9), at(9)) })
		want[0].Status = invoice.Orphaned
		got, err = s.OrphanedSweeps(t.Context(), "base", 0, 999)
		if diff := cmp.Diff(want, got, equal); err != nil || diff != "" {
			t.Errorf("%v (-written +read):\n%s", err, diff)
		}
		between, err := s.PaymentsBetween(t.Context(), "base", payment.From, inv.Merchant, 999)
		if err != nil || len(between) != 3 {
			t.Errorf("%d payments of the account to the settlement address and its deposit addresses, %v; want 3", len(between), err)
		}
	})
}

// TestDepositBalances adds payments and sweeps in any order.
func TestDepositBalances(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s) // which holds 100
		inv, err := s.Invoice(t.Context(), "inv_3")
		must(t, err)
		held := func(want uint64, since int64) {
			t.Helper()
			page, err := s.QueuedSweeps(t.Context(), "base", "", 10)
			must(t, err)
			if want == 0 && len(page) == 0 {
				return
			}
			if len(page) != 1 || page[0].Amount != invoice.NewAmount(want) || page[0].QueuedAt.Unix() != since || page[0].InvoiceID != "inv_3" || page[0].Factory != inv.DepositFactory {
				t.Errorf("held is %+v, want %d since %d", page, want, since)
			}
		}
		add := func(payments []invoice.Payment, sweeps ...invoice.Sweep) {
			t.Helper()
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				for i := range sweeps {
					sweeps[i].Status, sweeps[i].ConfirmedAt = invoice.Confirmed, at(3000)
				}
				if err := tx.SaveSweeps(ctx, sweeps); err != nil {
					return err
				}
				return tx.AddToDeposits(ctx, payments, sweeps)
			})
		}
		held(100, 1090)
		direct := samplePayment(1).Payment
		add([]invoice.Payment{direct})
		held(100, 1090)
		add(nil, depositSweep(inv, 91, 60))
		held(40, 1090)
		add(nil, depositSweep(inv, 92, 50)) // before the payment that it swept
		held(0, 0)
		late := depositPayment(inv).Payment
		late.Amount, late.BlockTime = invoice.NewAmount(30), invoice.Unix(5000)
		add([]invoice.Payment{late})
		held(20, 5000)
		if got, err := s.Invoice(t.Context(), "inv_3"); err != nil || got.SweptTx != depositSweep(inv, 92, 1).TxHash {
			t.Errorf("swept by %s, %v", got.SweptTx, err)
		}
		add(nil, depositSweep(inv, 80, 20)) // an older block that was read later
		held(0, 0)
		if got, err := s.Invoice(t.Context(), "inv_3"); err != nil || got.SweptTx != depositSweep(inv, 92, 1).TxHash {
			t.Errorf("swept by %s, %v", got.SweptTx, err)
		}
	})
}

// TestUpgradeToDeposits upgrades a database with invoices and payments: they stay as they
// are, and what is new is allowed.
func TestUpgradeToDeposits(t *testing.T) {
	t.Parallel()
	eachURL(t, func(t *testing.T, url string) {
		s := upgrade(t, url, 2, append(firstSchema, firstInvoice(1), firstInvoice(2), firstPayment(1, "inv_1"), firstPayment(2, ""))...)
		inv, err := s.Invoice(t.Context(), "inv_1")
		must(t, err)
		if inv.Collection != invoice.Direct || !inv.DepositAddress.IsZero() || !inv.SweptTx.IsZero() {
			t.Errorf("the invoice is %q and paid at %s", inv.Collection, inv.DepositAddress)
		}
		p, err := s.Payment(t.Context(), "pay_1")
		must(t, err)
		if p.DepositOf != "" || !p.SettlesTo.IsZero() || p.InvoiceID != "inv_1" {
			t.Errorf("the payment is %+v", p)
		}
		db := storetest.SQL(t, url)
		for statement, allowed := range map[string]bool{
			"UPDATE payments SET method = 'deposit' WHERE id = 'pay_1'":                                         true,
			"UPDATE payments SET method = 'guess' WHERE id = 'pay_1'":                                           false,
			"UPDATE payments SET method = 'by_hand' WHERE id = 'pay_1'":                                         false, // by nobody
			"UPDATE payments SET method = 'deposit', attributed_by = 'x', attributed_at = 1 WHERE id = 'pay_1'": false,
		} {
			if _, err := db.ExecContext(t.Context(), statement); (err == nil) != allowed {
				t.Errorf("allowed: %t, want %t (%v)\n%s", err == nil, allowed, err, statement)
			}
		}
		lookup := store.AmountLookup{AmountKey: store.AmountKey{ChainKey: "base", Merchant: inv.Merchant, Token: inv.Token, Amount: inv.Amount}, LastBlock: 1000, FirstTime: invoice.Unix(1500)}
		if found, err := s.InvoicesByAmount(t.Context(), []store.AmountLookup{lookup}, 16); err != nil || len(found) != 1 || len(found[0]) != 2 {
			t.Errorf("invoices of the amount are %v, %v", found, err)
		}
	})
}

// TestDepositIsPaidBeforeItsSweepIsSettled records a payment after the transaction manager
// read that nothing was left to sweep: the payment stays queued, and can be sent.
func TestDepositIsPaidBeforeItsSweepIsSettled(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s) // which queues 100 of inv_3
		if ok, err := s.AcquireWorkLease(t.Context(), writerLease, atMS(1), atMS(2)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		queued, err := s.QueuedSweeps(t.Context(), "base", "", 9)
		must(t, err)
		if len(queued) != 1 {
			t.Fatalf("queued are %+v", queued)
		}
		tx := chainTx("ctx_1", 5)
		tx.Kind = store.TxSweep
		must(t, s.SaveChainTx(t.Context(), writerLease, tx, []string{queued[0].ID}))
		must(t, s.SettleSweeps(t.Context(), writerLease, []store.SweepResult{{ID: queued[0].ID, Gone: true}}))
		after, err := s.QueuedSweeps(t.Context(), "base", "", 9)
		must(t, err)
		if diff := cmp.Diff(queued, after, equal); diff != "" {
			t.Errorf("the queue (-before +after):\n%s", diff)
		}
	})
}

// TestRequestSweepOfAnothersInvoice names an invoice of another merchant, and a token of
// which nothing is recorded.
func TestRequestSweepOfAnothersInvoice(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s)
		inv, err := s.Invoice(t.Context(), "inv_3")
		must(t, err)
		for i, merchant := range []string{"nobody", inv.MerchantID} {
			var n int64
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				n, err = tx.RequestSweeps(ctx, store.SweepRequest{ChainKey: "base", MerchantID: merchant, InvoiceID: inv.ID, Token: new(invoice.Address)}, at(9))
				return err
			})
			queued, err := s.QueuedSweeps(t.Context(), "base", "", 9)
			must(t, err)
			if n != int64(i) || len(queued) != 1+i {
				t.Errorf("for merchant %q %d sweeps were requested; queued are %+v", merchant, n, queued)
			}
		}
	})
}
