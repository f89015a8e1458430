package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// depositPayment is a confirmed payment of 100 to the deposit address of an invoice.
func depositPayment(inv invoice.Invoice) store.PaymentRow { return numberedDeposit(inv, 90, 100) }

// numberedDeposit is the confirmed payment number n of an amount to the deposit address of an invoice.
func numberedDeposit(inv invoice.Invoice, n int, amount uint64) store.PaymentRow {
	p := samplePayment(n)
	p.Amount = invoice.NewAmount(amount)
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

// addToDeposits stores payments and sweeps that are confirmed, and adds them to the balances of the
// addresses.
func addToDeposits(t *testing.T, s *store.Store, payments []store.PaymentRow, sweeps []invoice.Sweep) {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		added := make([]invoice.Payment, len(payments))
		for i, p := range payments {
			added[i] = p.Payment
		}
		for i := range sweeps {
			sweeps[i].Status, sweeps[i].ConfirmedAt = invoice.Confirmed, at(3000)
		}
		return errors.Join(tx.SavePayments(ctx, payments), tx.SaveSweeps(ctx, sweeps), tx.AddToDeposits(ctx, added, sweeps))
	})
}

// TestDepositBalances sweeps an address of more than was recorded, and has older blocks read later.
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
		sweptBy := func(n int) {
			t.Helper()
			if got, err := s.Invoice(t.Context(), "inv_3"); err != nil || got.SweptTx != samplePayment(n).TxHash {
				t.Errorf("swept by %s, %v", got.SweptTx, err)
			}
		}
		add := func(payments []store.PaymentRow, sweeps ...invoice.Sweep) {
			t.Helper()
			addToDeposits(t, s, payments, sweeps)
		}
		held(100, 1090)
		add([]store.PaymentRow{samplePayment(1)}) // to another address
		held(100, 1090)
		add(nil, depositSweep(inv, 80, 500)) // below the payment, of money that was never recorded
		held(100, 1090)
		sweptBy(80)
		add(nil, depositSweep(inv, 91, 5000))
		held(0, 0)
		sweptBy(91)
		add([]store.PaymentRow{numberedDeposit(inv, 95, 30)})
		held(30, 1095)
		add([]store.PaymentRow{numberedDeposit(inv, 85, 7)}) // a sweep took it
		held(30, 1095)
		same := numberedDeposit(inv, 92, 6) // above the sweep, in its block
		same.BlockNumber = samplePayment(91).BlockNumber
		add([]store.PaymentRow{same})
		held(36, 1095)
		add([]store.PaymentRow{numberedDeposit(inv, 93, 4)}, depositSweep(inv, 82, 9), depositSweep(inv, 94, 1)) // a gap that was read at last
		held(30, 1095)
		sweptBy(94)
	})
}

// TestDepositBalancesInAnyOrder adds payments and sweeps in any order and in any batches. An address holds
// what it received after its newest sweep.
func TestDepositBalancesInAnyOrder(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		fill(t, s)
		inv, err := s.Invoice(t.Context(), "inv_3")
		must(t, err)
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			token := invoice.Address{0xee, byte(round >> 8), byte(round)}
			sweeps := rapid.SliceOfN(rapid.Bool(), 1, 12).Draw(r, "which are sweeps")
			left := rapid.Permutation(indexes(len(sweeps))).Draw(r, "order")
			read := make(map[int]uint64) // amounts
			for len(left) > 0 {
				n := rapid.IntRange(1, len(left)).Draw(r, "read at once")
				var paid []store.PaymentRow
				var swept []invoice.Sweep
				for _, i := range left[:n] {
					read[i] = rapid.Uint64Range(1, 9).Draw(r, "amount")
					p, sw := numberedDeposit(inv, 1000*round+i, read[i]), depositSweep(inv, 1000*round+i, read[i])
					p.Token, sw.Token = token, token
					p.BlockNumber, sw.BlockNumber = uint64(500+i/2), uint64(500+i/2)
					if sweeps[i] {
						swept = append(swept, sw)
					} else {
						paid = append(paid, p)
					}
				}
				left = left[n:]
				addToDeposits(t, s, paid, swept)
				checkHeld(r, s, token, sweeps, read)
			}
		})
	})
}

// indexes returns the numbers below n.
func indexes(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// checkHeld compares what is queued of a token with the payments and sweeps that were read.
func checkHeld(r *rapid.T, s *store.Store, token invoice.Address, sweeps []bool, read map[int]uint64) {
	var want uint64
	for i, sweep := range sweeps { // in the order of the chain
		if want += read[i]; sweep && read[i] > 0 {
			want = 0
		}
	}
	page, err := s.QueuedSweeps(r.Context(), "base", "", 1000)
	if err != nil {
		r.Fatal(err)
	}
	held := invoice.Amount{}
	for _, q := range page {
		if q.Token == token {
			held = q.Amount
		}
	}
	if held != invoice.NewAmount(want) {
		r.Fatalf("held is %s, want %d", held, want)
	}
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
