package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/txmgr"
)

func TestDepositRoundTrip(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s)
		inv, err := ledger.NewReader(s).Invoice(t.Context(), "inv_3")
		rowtest.Must(t, err)
		payment, err := ledger.NewReader(s).Payment(t.Context(), rowtest.DepositPayment(inv).ID)
		rowtest.Must(t, err)
		written := rowtest.DepositPayment(inv)
		written.Use = invoice.UseCounted
		expect.NoDiff(t, cmp.Diff(written, payment, rowtest.Equal), "payment")
		found, err := ledger.Deposits(t.Context(), s, "base", []invoice.Address{{1}, inv.DepositAddress, inv.Merchant})
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff(map[invoice.Address]string{inv.DepositAddress: "inv_3"}, found), "")
		if found, err := ledger.Deposits(t.Context(), s, "ethereum", []invoice.Address{inv.DepositAddress}); err != nil || len(found) > 0 {
			t.Errorf("on another chain: %v, %v", found, err)
		}
		if are, err := ledger.NewReader(s).AreDeposits(t.Context(), []invoice.Address{inv.Merchant, inv.DepositAddress}); err != nil || !are[inv.DepositAddress] || are[inv.Merchant] {
			t.Errorf("deposit addresses are %v, %v", are, err)
		}
		want := []invoice.Sweep{rowtest.DepositSweep(inv, 91, 60)}
		got, err := ledger.PendingSweeps(t.Context(), s, "base", 0, 999)
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff(want, got, rowtest.Equal), "")
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return ledger.OrphanAbove(ctx, tx, "base", 100, rowtest.At(9))
		})
		want[0].Status = invoice.Orphaned
		got, err = ledger.OrphanedSweeps(t.Context(), s, "base", 0, 999)
		expect.NoError(t, err)
		expect.NoDiff(t, cmp.Diff(want, got, rowtest.Equal), "")
		pair := ledger.Pair{Payer: payment.From, Receiver: inv.Merchant}
		between, err := ledger.PaymentsBetween(t.Context(), s, "base", []ledger.Pair{pair}, 999)
		if err != nil || len(between[pair]) != 3 {
			t.Errorf("%d payments of the account to the settlement address and its deposit addresses, %v; want 3", len(between[pair]), err)
		}
	})
}

// addToDeposits stores payments and sweeps that are confirmed, and adds them to the balances of the addresses.
func addToDeposits(t *testing.T, s *db.DB, payments []ledger.PaymentRow, sweeps []invoice.Sweep) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		added := make([]invoice.Payment, len(payments))
		for i, p := range payments {
			added[i] = p.Payment
		}
		for i := range sweeps {
			sweeps[i].Status, sweeps[i].ConfirmedAt = invoice.Confirmed, rowtest.At(3000)
		}
		return errors.Join(ledger.SavePayments(ctx, tx, payments), ledger.SaveSweeps(ctx, tx, sweeps), ledger.AddToDeposits(ctx, tx, added, sweeps))
	})
}

// TestDepositBalances sweeps an address of more than was recorded, and has older blocks read later.
func TestDepositBalances(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s) // which holds 100
		inv, err := ledger.NewReader(s).Invoice(t.Context(), "inv_3")
		rowtest.Must(t, err)
		held := func(want uint64, since int64) {
			t.Helper()
			page, err := ledger.QueuedSweeps(t.Context(), s, "base", "", 10)
			rowtest.Must(t, err)
			if want == 0 && len(page) == 0 {
				return
			}
			if len(page) != 1 || page[0].Amount != invoice.NewAmount(want) || page[0].QueuedAt.Unix() != since || page[0].InvoiceID != "inv_3" || page[0].Factory != inv.DepositFactory {
				t.Errorf("held is %+v, want %d since %d", page, want, since)
			}
		}
		sweptBy := func(n int) {
			t.Helper()
			if got, err := ledger.NewReader(s).Invoice(t.Context(), "inv_3"); err != nil || got.SweptTx != rowtest.SamplePayment(n).TxHash {
				t.Errorf("swept by %s, %v", got.SweptTx, err)
			}
		}
		add := func(payments []ledger.PaymentRow, sweeps ...invoice.Sweep) {
			t.Helper()
			addToDeposits(t, s, payments, sweeps)
		}
		held(100, 1090)
		add([]ledger.PaymentRow{rowtest.SamplePayment(1)}) // to another address
		held(100, 1090)
		add(nil, rowtest.DepositSweep(inv, 80, 500)) // below the payment, of money that was never recorded
		held(100, 1090)
		sweptBy(80)
		add(nil, rowtest.DepositSweep(inv, 91, 5000))
		held(0, 0)
		sweptBy(91)
		add([]ledger.PaymentRow{rowtest.NumberedDeposit(inv, 95, 30)})
		held(30, 1095)
		add([]ledger.PaymentRow{rowtest.NumberedDeposit(inv, 85, 7)}) // a sweep took it
		held(30, 1095)
		same := rowtest.NumberedDeposit(inv, 92, 6) // above the sweep, in its block
		same.BlockNumber = rowtest.SamplePayment(91).BlockNumber
		add([]ledger.PaymentRow{same})
		held(36, 1095)
		add([]ledger.PaymentRow{rowtest.NumberedDeposit(inv, 93, 4)}, rowtest.DepositSweep(inv, 82, 9), rowtest.DepositSweep(inv, 94, 1)) // a gap that was read at last
		held(30, 1095)
		sweptBy(94)
	})
}

// TestDepositBalancesInAnyOrder adds payments and sweeps in any order and in any batches. The balance
// of an address is what it received after its newest sweep.
func TestDepositBalancesInAnyOrder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s)
		inv, err := ledger.NewReader(s).Invoice(t.Context(), "inv_3")
		rowtest.Must(t, err)
		round := 0
		rapid.Check(t, func(r *rapid.T) {
			round++
			token := invoice.Address{0xee, byte(round >> 8), byte(round)}
			sweeps := rapid.SliceOfN(rapid.Bool(), 1, 12).Draw(r, "which are sweeps")
			left := rapid.Permutation(indexes(len(sweeps))).Draw(r, "order")
			read := make(map[int]uint64) // amounts
			for len(left) > 0 {
				n := rapid.IntRange(1, len(left)).Draw(r, "read at once")
				var paid []ledger.PaymentRow
				var swept []invoice.Sweep
				for _, i := range left[:n] {
					read[i] = rapid.Uint64Range(1, 9).Draw(r, "amount")
					p, sw := rowtest.NumberedDeposit(inv, 1000*round+i, read[i]), rowtest.DepositSweep(inv, 1000*round+i, read[i])
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

// checkHeld compares the queued balances in a token with the payments and sweeps that were read.
func checkHeld(r *rapid.T, s *db.DB, token invoice.Address, sweeps []bool, read map[int]uint64) {
	var want uint64
	for i, sweep := range sweeps { // in the order of the chain
		if want += read[i]; sweep && read[i] > 0 {
			want = 0
		}
	}
	page, err := ledger.QueuedSweeps(r.Context(), s, "base", "", 1000)
	expect.OK(r, err)
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

// TestDepositIsPaidBeforeItsSweepIsSettled records a payment after the transaction manager read a zero
// balance: the payment stays queued, and can be sent.
func TestDepositIsPaidBeforeItsSweepIsSettled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s) // which queues 100 of inv_3
		if ok, err := s.AcquireWorkLease(t.Context(), rowtest.WriterLease, rowtest.AtMS(1), rowtest.AtMS(2)); err != nil || !ok {
			t.Fatal(ok, err)
		}
		queued, err := ledger.QueuedSweeps(t.Context(), s, "base", "", 9)
		rowtest.Must(t, err)
		if len(queued) != 1 {
			t.Fatalf("queued are %+v", queued)
		}
		tx := rowtest.ChainTx("ctx_1", 5)
		tx.Kind = txmgr.TxSweep
		rowtest.Must(t, txmgr.SaveChainTx(t.Context(), s, rowtest.WriterLease, tx, []string{queued[0].ID}))
		rowtest.Must(t, ledger.SettleSweeps(t.Context(), s, rowtest.WriterLease, []ledger.SweepResult{{ID: queued[0].ID, Gone: true}}))
		after, err := ledger.QueuedSweeps(t.Context(), s, "base", "", 9)
		rowtest.Must(t, err)
		if diff := cmp.Diff(queued, after, rowtest.Equal); diff != "" {
			t.Errorf("the queue (-before +after):\n%s", diff)
		}
	})
}

// TestRequestSweepOfAnothersInvoice names an invoice of another merchant, and a token without recorded payments.
func TestRequestSweepOfAnothersInvoice(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.Fill(t, s)
		inv, err := ledger.NewReader(s).Invoice(t.Context(), "inv_3")
		rowtest.Must(t, err)
		for i, merchant := range []string{"nobody", inv.MerchantID} {
			var n int64
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) (err error) {
				n, err = ledger.RequestSweeps(ctx, tx, ledger.SweepRequest{ChainKey: "base", MerchantID: merchant, InvoiceID: inv.ID, Token: new(invoice.Address)}, rowtest.At(9))
				return err
			})
			queued, err := ledger.QueuedSweeps(t.Context(), s, "base", "", 9)
			rowtest.Must(t, err)
			if n != int64(i) || len(queued) != 1+i {
				t.Errorf("for merchant %q %d sweeps were requested; queued are %+v", merchant, n, queued)
			}
		}
	})
}

// depositStates are the states of the invoices of a case of TestDepositsKeepTheirMoney.
type depositStates struct {
	voided    map[string]bool
	ended     map[string]invoice.Status // invoices that were seen paid or expired, and stay so
	dropped   map[string]int64          // when a reorg dropped refunds, in Unix seconds
	withdrawn bool                      // dropped refunds are not awaited any more
	wrong     string                    // the first invoice in a wrong state
}

func newDepositStates() depositStates {
	return depositStates{
		voided: make(map[string]bool), ended: make(map[string]invoice.Status), dropped: make(map[string]int64),
	}
}

// follow requires each invoice to be in the state that follows from its final payments, less their
// refunds so far. It has to look at the invoices after each transaction that may change them, because
// a refund after an invoice was paid leaves it paid.
func (d *depositGame) follow() {
	if d.wrong != "" {
		return
	}
	least, most := d.counting(d.stored())
	invoices, err := ledger.InvoicesWithoutLines(d.t.Context(), d.db.store, d.set.ids)
	d.must(err)
	inGap := d.gap() != nil
	for _, inv := range invoices {
		may := d.states(d.set.byID[inv.ID], least[inv.ID], most[inv.ID], inGap)
		if !slices.Contains(may, inv.Status) {
			d.wrong = fmt.Sprintf("%s over %s is %s, and %d to %d count for it: want %v",
				inv.ID, inv.Amount, inv.Status, least[inv.ID], most[inv.ID], may)
			return
		}
		if inv.Status == invoice.Paid || inv.Status == invoice.Expired {
			d.ended[inv.ID] = inv.Status
		}
	}
}

// states returns the states that an invoice may be in, if an amount between two bounds counts for it.
// It does not expire while blocks have to be read again.
func (d *depositGame) states(inv invoice.Invoice, least, most uint64, inGap bool) (may []invoice.Status) {
	switch ended := d.ended[inv.ID]; {
	case d.voided[inv.ID]:
		return []invoice.Status{invoice.Void}
	case ended != "":
		return []invoice.Status{ended}
	case least >= number(inv.Amount):
		return []invoice.Status{invoice.Paid}
	case most >= number(inv.Amount):
		may = append(may, invoice.Paid)
	}
	past := d.blocks[d.line].Time.After(inv.ExpiresAt)
	if past {
		may = append(may, invoice.Expired)
	}
	if !past || inGap {
		may = append(may, invoice.Open)
	}
	return may
}

// counting returns the amounts that count for each invoice: its confirmed payments in time, less their refunds. The two
// bounds differ by refunds that a reorg dropped and that may or may not be expected to be mined again.
func (d *depositGame) counting(stored map[transferKey]storedTransfer) (least, most map[string]uint64) {
	sure, possible := d.refunded(stored)
	least, most = make(map[string]uint64), make(map[string]uint64)
	for _, s := range stored {
		p := s.payment
		if p == nil || p.Status != invoice.Confirmed || !p.Attributed() ||
			p.BlockTime.After(d.set.byID[p.InvoiceID].ExpiresAt) {
			continue
		}
		n := number(p.Amount)
		least[p.InvoiceID] += n - min(n, possible[p.ID])
		most[p.InvoiceID] += n - min(n, sure[p.ID])
	}
	return least, most
}

// refunded returns the refunded amounts of each payment, certain and possible. A refund that a reorg
// dropped is certain for invoice.SubmissionPatience, unless its transaction was mined again as
// something else, and possible as long as a person may wait for it.
func (d *depositGame) refunded(stored map[transferKey]storedTransfer) (sure, possible map[string]uint64) {
	mined := make(map[invoice.Hash]bool)
	for k := range d.canonical() {
		mined[k.tx] = true
	}
	sure, possible = make(map[string]uint64), make(map[string]uint64)
	now := d.seconds.Load()
	for k, s := range stored {
		r := s.refund
		if r == nil {
			continue
		}
		n := number(r.Amount)
		if r.Status != invoice.Orphaned {
			delete(d.dropped, r.ID)
			sure[r.PaymentID] += n
			possible[r.PaymentID] += n
			continue
		}
		if _, ok := d.dropped[r.ID]; !ok {
			d.dropped[r.ID] = now
		}
		if d.withdrawn {
			continue
		}
		possible[r.PaymentID] += n
		if !mined[k.tx] && now-d.dropped[r.ID] < int64(invoice.SubmissionPatience.Seconds()) {
			sure[r.PaymentID] += n
		}
	}
	return sure, possible
}
