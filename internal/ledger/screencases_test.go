package ledger_test

import (
	"slices"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestScreeningTurns: a payment about which a call failed keeps its turn before payments that came later.
func TestScreeningTurns(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.screening(t)
		inv := w.create()
		tag := invoice.Evidence{Calldata: inv.CommitmentID}
		first := tagged(w.pay(invoice.NewAmount(500_000)), tag)
		w.mine(start+10, first)
		if due, _, err := w.LeaseScreenings(t.Context()); err != nil || len(due) != 1 {
			t.Fatalf("%d are due: %v", len(due), err)
		}
		for range 2 {
			w.seconds.Add(9)
			var dust []invoice.Transfer
			for range 8 {
				dust = append(dust, tagged(w.pay(invoice.NewAmount(1)), tag))
			}
			w.mine(w.head().Time.Unix()+1, dust...)
		}
		due, _, err := w.LeaseScreenings(t.Context())
		w.must(err)
		later, _, err := w.LeaseScreenings(t.Context())
		w.must(err)
		is := func(p ledger.PaymentRow) bool { return p.ID == w.payment(first).ID }
		if slices.ContainsFunc(due, is) || !slices.ContainsFunc(later, is) {
			t.Errorf("of the payments after 9, 10 and 18 s, the second one was not asked about as the ninth")
		}
	})
}

// TestScreeningAfterRecovery: an invoice whose payment was refunded in the past that a recovery read was paid there, if
// the payment's verdict comes after the recovery. The payment is in that past, or in the backup without its verdict.
func TestScreeningAfterRecovery(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		for _, inBackup := range []bool{false, true} {
			w := w.db.screening(t)
			inv := w.create()
			paying := w.pay(inv.Amount)
			if inBackup {
				w.mine(start+10, paying)
			}
			w.lose()
			w.Service = w.service(func(c *ledger.Config) { c.Recovery, c.Screens = true, true })
			if !inBackup {
				w.mine(start+10, paying)
			}
			w.mine(start + 11)
			w.mine(start+12, w.back(paying.Amount))
			_, revision, err := w.Pending(t.Context(), w.chainKey, w.head().Number)
			w.must(err)
			expect.Success(t)(w.Service.Confirm(t.Context(), w.chainKey, w.head(), revision, 1))
			w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
			w.Service = w.service(func(c *ledger.Config) { c.Screens = true })
			w.verdict(paying, invoice.ScreeningAccepted)
			w.wantPaidAndRefunded("after the verdict", inv.ID, number(paying.Amount))
		}
	})
}

// TestRejectedInLostPast: an invoice that ended in a lost past becomes void when the payment that covered it is
// rejected.
func TestRejectedInLostPast(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.screening(t)
		w.lose()
		inv := w.create()
		paying := w.pay(inv.TransferAmount)
		w.mine(start+1, paying)
		b := w.next(start + 2)
		b.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: inv.CommitmentID}}
		w.observe(b)
		w.verdict(paying, invoice.ScreeningQuarantined)
		w.final()
		_, err := w.decide(paying, invoice.Rejected)
		w.must(err)
		w.advance(start + 9999)
		if got := w.invoice(inv.ID); got.Status != invoice.Void {
			t.Errorf("the invoice is %s", got.Status)
		}
	})
}

// TestRejectedWhileUndecided: a part at a deposit address of which the invoice is not decided cannot be rejected yet.
// Afterwards it can, and the account of the deposit address refunds and sweeps it.
func TestRejectedWhileUndecided(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.unstarted(t)
		w.Service = w.service(func(c *ledger.Config) { c.Screens = true })
		inv := w.create(deposited)
		unread := w.startAboveUnread()
		part := w.deposit(inv, 400_000)
		w.mine(start+10, part)
		w.verdict(part, invoice.ScreeningQuarantined)
		_, err := w.decide(part, invoice.Rejected)
		wantErr(t, "rejected while undecided", err, ledger.ErrUndecided)
		w.fill(101, unread.Header)
		w.mine(start + 11)
		w.final()
		_, err = w.decide(part, invoice.Rejected)
		w.must(err)
		if p := w.payment(part); p.DepositOf != inv.ID || p.Attributed() || w.unswept(usdc)[inv.ID] != 400_000 {
			t.Errorf("the payment is %+v", p.Payment)
		}
	})
}

// TestRejectedAuthorization: an authorization stays paid when its payment is rejected, and then mined again.
func TestRejectedAuthorization(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.gasless(plenty, func(c *ledger.Config) { c.Screens = true })
		inv := w.create()
		a := w.authorization(inv, w.hash("nonce"))
		accepted, err := w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		transfer := w.transferOf(a)
		w.mine(start+1, transfer)
		w.verdict(transfer, invoice.ScreeningQuarantined)
		_, err = w.decide(transfer, invoice.Rejected)
		w.must(err)
		w.reorg(1)
		w.mine(start+2, transfer)
		w.advance(a.ValidBefore.Unix() + 1)
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationPaid {
			t.Errorf("it is %s, because %q", got.Status, got.Reason)
		}
	})
}

// TestVerdictsOfManyPayments: a verdict does not read the other payments of the invoice, which takes memory for each of
// them. It is not parallel, because it counts what the process allocates.
func TestVerdictsOfManyPayments(t *testing.T) {
	u := dbtest.MigratedDatabases()["sqlite"](t)
	w := (&database{url: u, store: dbtest.Open(t, u), sql: dbtest.SQL(t, u)}).screening(t)
	inv := w.create(amount(100_000_000))
	tag := invoice.Evidence{Calldata: inv.CommitmentID}
	many := []invoice.Transfer{tagged(w.pay(invoice.NewAmount(2_000_000)), tag)}
	for range 2000 {
		many = append(many, tagged(w.pay(invoice.NewAmount(1)), tag))
	}
	w.mine(start+10, many...)
	const maxAllocated = 4_000 // two for each other payment
	for _, final := range []bool{false, true} {
		if final {
			w.final()
		}
		rows := make([]ledger.PaymentRow, 20)
		for i := range rows {
			rows[i] = w.payment(many[len(many)-1])
			many = many[:len(many)-1]
		}
		slices.Reverse(rows)
		next := 0
		allocated := testing.AllocsPerRun(len(rows)-1, func() { // once more to warm up
			if ok, err := w.Screen(t.Context(), rows[next], invoice.ScreeningAccepted, ""); !ok || err != nil {
				t.Fatalf("%v, %v", ok, err)
			}
			next++
		})
		if allocated > maxAllocated {
			t.Errorf("final %v: a verdict allocated %.0f times", final, allocated)
		}
	}
}
