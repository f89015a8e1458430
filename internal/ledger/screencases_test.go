package ledger_test

import (
	"slices"
	"testing"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/apiconv"
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

// TestHeldInLostPast: an invoice that ended in a lost past, of which a held payment was refunded in part there, stays open
// until the verdict. If that accepts the payment, the invoice was paid; otherwise it becomes void. A payment that never covered the invoice leaves it void at once.
func TestHeldInLostPast(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			less    uint64 // than the invoice's amount
			verdict invoice.Screening
			before  invoice.Status
			after   invoice.Status
		}{
			{verdict: invoice.ScreeningAccepted, before: invoice.Open, after: invoice.Paid},
			{verdict: invoice.ScreeningRejected, before: invoice.Open, after: invoice.Void},
			{less: 1, verdict: invoice.ScreeningAccepted, before: invoice.Void, after: invoice.Void},
		} {
			w := w.db.screening(t)
			inv := w.create()
			paying := tagged(w.pay(inv.Amount.Minus(invoice.NewAmount(c.less))), invoice.Evidence{Calldata: inv.CommitmentID})
			w.lose()
			w.Service = w.service(func(c *ledger.Config) { c.Recovery, c.Screens = true, true })
			w.mine(start+10, paying)
			w.mine(start + 11)
			w.mine(start+12, w.back(invoice.NewAmount(1000)))
			b := w.next(start + 13)
			b.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: inv.CommitmentID}}
			w.observe(b)
			_, revision, err := w.Pending(t.Context(), w.chainKey, w.head().Number)
			w.must(err)
			expect.Success(t)(w.Service.Confirm(t.Context(), w.chainKey, w.head(), revision, 1))
			w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
			w.Service = w.service(func(c *ledger.Config) { c.Screens = true })
			w.advance(start + 14)
			expect.Equal(t, w.invoice(inv.ID).Status, c.before, "%+v: before the verdict, the invoice is", c)
			if c.verdict == invoice.ScreeningRejected {
				w.verdict(paying, invoice.ScreeningQuarantined)
				w.must(w.decide(paying, invoice.Rejected))
			} else {
				w.verdict(paying, c.verdict)
			}
			w.advance(start + 9999)
			expect.Equal(t, w.invoice(inv.ID).Status, c.after, "%+v: the invoice is", c)
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
		w.must(w.decide(paying, invoice.Rejected))
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
		expect.Error(t, ledger.ErrUndecided, "rejected while undecided")(w.decide(part, invoice.Rejected))
		w.fill(101, unread.Header)
		w.mine(start + 11)
		w.final()
		w.must(w.decide(part, invoice.Rejected))
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
		w.must(w.decide(transfer, invoice.Rejected))
		w.reorg(1)
		w.mine(start+2, transfer)
		w.advance(a.ValidBefore.Unix() + 1)
		if got := w.stored(accepted.ID); got.Status != ledger.AuthorizationPaid {
			t.Errorf("it is %s, because %q", got.Status, got.Reason)
		}
	})
}

// TestLateVerdicts: verdicts about payments of a paid invoice that come out of the chain's order read its other payments
// once, and count as if they had come in order.
func TestLateVerdicts(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.screening(t)
		inv := w.create()
		tag := invoice.Evidence{Calldata: inv.CommitmentID}
		part, rest, more := tagged(w.pay(invoice.NewAmount(600_000)), tag), tagged(w.pay(inv.Amount), tag), tagged(w.pay(invoice.NewAmount(50_000)), tag)
		w.mine(start+10, part, rest, more)
		w.final()
		w.verdict(rest, invoice.ScreeningAccepted)
		if got := w.invoice(inv.ID); got.Status != invoice.Paid {
			t.Errorf("the invoice is %s", got.Status)
		}
		p, q := w.payment(part), w.payment(more)
		recorded, err := w.Screen(t.Context(), w.chainKey, []ledger.Verdict{
			{Payment: p, To: invoice.ScreeningAccepted}, {Payment: w.payment(rest), To: invoice.ScreeningQuarantined}, {Payment: q, To: invoice.ScreeningAccepted},
		})
		w.must(err)
		if len(recorded) != 2 || recorded[0].Payment.ID != p.ID || recorded[1].Payment.ID != q.ID {
			t.Errorf("recorded %+v", recorded)
		}
		if got := w.invoice(inv.ID); got.Exception != invoice.Duplicate || got.AmountPaid != inv.Amount.Plus(part.Amount).Plus(more.Amount) || got.Sums.Tally.Due != inv.Amount.Plus(part.Amount) {
			t.Errorf("the invoice is %q with %s, of which %s are due", got.Exception, got.AmountPaid, got.Sums.Tally.Due)
		}
		other := w.db.screening(t)
		if _, err := w.Screen(t.Context(), other.chainKey, []ledger.Verdict{{Payment: p, To: invoice.ScreeningQuarantined}}); err != nil || w.payment(part).Screening != invoice.ScreeningAccepted {
			t.Errorf("a verdict about a payment of another chain: %v", err)
		}
	})
}

// TestHeldAuthorizations: a payment by a signed authorization is held as any other. Its authorization is paid, so that it
// is not sent again, and its invoice only once the payment is released.
func TestHeldAuthorizations(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.gasless(plenty, func(c *ledger.Config) { c.Screens = true })
		inv := w.create()
		a := w.authorization(inv, w.hash("nonce"))
		accepted, err := w.Authorize(t.Context(), inv.ID, a)
		w.must(err)
		transfer := w.transferOf(a)
		w.mine(start+1, transfer)
		w.final()
		check := func(what string, want invoice.Status) {
			t.Helper()
			stored := w.stored(accepted.ID)
			if !stored.Paid() || stored.Payment.ID != w.payment(transfer).ID || w.invoice(inv.ID).Status != want {
				t.Errorf("%s: the authorization is %s, the invoice %s; want %s", what, stored.Status, w.invoice(inv.ID).Status, want)
			}
			if _, err := w.Authorize(t.Context(), inv.ID, w.authorization(inv, w.hash("another"))); err == nil {
				t.Errorf("%s: another authorization of the invoice was accepted", what)
			}
		}
		check("waiting", invoice.Open)
		w.verdict(transfer, invoice.ScreeningQuarantined)
		check("quarantined", invoice.Open)
		w.must(w.decide(transfer, invoice.Released))
		check("released", invoice.Paid)
	})
}

// TestRejectedInOtherCurrency: a rejected payment in another currency is shown with the deposit address that holds it, and
// is swept.
func TestRejectedInOtherCurrency(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.screening(t)
		inv := w.create(deposited)
		wrong := inEUR(w.deposit(inv, 500_000))
		w.mine(start+1, wrong)
		w.final()
		w.verdict(wrong, invoice.ScreeningQuarantined)
		w.must(w.decide(wrong, invoice.Rejected))
		p := w.payment(wrong)
		if shown := apiconv.Payment(p.Payment, true); shown.DepositInvoiceID != inv.ID || shown.Exception != "" || shown.Screening != apitypes.ScreeningRejected {
			t.Errorf("it is shown as %+v", shown)
		}
		expect.Equal(t, w.unswept(eurc)[inv.ID], 500_000, "to be swept:")
	})
}

// TestRetireHeldToken: a token is not retired while a payment in it is held.
func TestRetireHeldToken(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.screening(t)
		w.create()
		paying := w.pay(invoice.NewAmount(7))
		w.mine(start+1, paying)
		w.final()
		w.advance(start + 9999) // the invoice expires
		for _, want := range []int{1, 0} {
			uses, err := w.db.store.TokenUses(t.Context(), w.chainKey, usdc)
			if err != nil || uses.PendingPayments != want {
				t.Errorf("the token is used by %+v, %v; want %d payments", uses, err, want)
			}
			if want == 1 {
				w.verdict(paying, invoice.ScreeningAccepted)
			}
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
			if !w.screened(rows[next], invoice.ScreeningAccepted) {
				t.Fatal("a verdict has no effect")
			}
			next++
		})
		if allocated > maxAllocated {
			t.Errorf("final %v: a verdict allocated %.0f times", final, allocated)
		}
	}
}
