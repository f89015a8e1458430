package ledger_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// screening returns a world in which new payments are screened.
func (d *database) screening(t testing.TB) *world {
	t.Helper()
	w := d.world(t)
	w.Service = w.service(func(c *ledger.Config) { c.Screens = true })
	return w
}

// verdict records a verdict about the payment of a transfer.
func (w *world) verdict(t invoice.Transfer, v invoice.Screening) {
	w.t.Helper()
	if !w.screened(w.payment(t), v) {
		w.t.Fatalf("%s has no effect", v)
	}
}

// screened records a verdict about a payment as it was asked about, and reports whether that has an effect.
func (w *world) screened(p ledger.PaymentRow, v invoice.Screening) bool {
	w.t.Helper()
	recorded, err := w.Screen(w.t.Context(), p.ChainKey, []ledger.Verdict{{Payment: p, To: v, Reason: "list A"}})
	w.must(err)
	return len(recorded) == 1
}

// quarantined returns the items about quarantined payments of the world's chain in the operator's inbox.
func (w *world) quarantined() (items []ledger.InboxItem) {
	w.t.Helper()
	all, _, err := w.Inbox(w.t.Context(), ledger.InboxFilter{Kind: invoice.ItemQuarantined, Limit: 100})
	w.must(err)
	for _, i := range all {
		if i.Payment.ChainKey == w.chainKey {
			items = append(items, i)
		}
	}
	return items
}

// operator returns the context of the operator's person.
func (w *world) operator() context.Context {
	return access.WithPrincipal(w.t.Context(), access.Principal{KeyID: "key_op", Name: "olga", Scopes: access.Admin})
}

// decide has the operator release or reject the quarantined payment of a transfer.
func (w *world) decide(t invoice.Transfer, o invoice.Outcome) (invoice.Decision, error) {
	w.t.Helper()
	p := w.payment(t)
	items, _, err := w.Inbox(w.t.Context(), ledger.InboxFilter{ObjectID: p.ID})
	w.must(err)
	if len(items) != 1 {
		w.t.Fatalf("%d items are about the payment, which is %s, %q", len(items), p.Status, p.Screening)
	}
	return w.Decide(w.operator(), ledger.DecisionRequest{
		Kind: invoice.ItemQuarantined, ObjectID: p.ID, Version: items[0].Version, Outcome: o, Reason: "Checked by phone",
	})
}

// wantPayment checks the state of the payment of a transfer.
func (w *world) wantPayment(what string, t invoice.Transfer, status invoice.PaymentStatus, s invoice.Screening) {
	w.t.Helper()
	if p := w.payment(t); p.Status != status || p.Screening != s || p.Attributed() && s == invoice.ScreeningRejected {
		w.t.Errorf("%s: the payment is %s, %q, of %q, want %s, %q", what, p.Status, p.Screening, p.InvoiceID, status, s)
	}
}

// TestScreening plays what becomes of an invoice whose payment in time is screened.
func TestScreening(t *testing.T) {
	t.Parallel()
	const created, received, paid, expired = "invoice.created", "payment.received", "invoice.paid", "invoice.expired"
	must := func(_ invoice.Decision, err error) {
		expect.NoError(t, err)
	}
	each(t, func(t *testing.T, d *database) {
		for name, test := range map[string]struct {
			play      func(w *world, t invoice.Transfer)
			status    invoice.Status
			exception invoice.Exception
			payment   invoice.PaymentStatus
			screening invoice.Screening
			events    []string
		}{
			"accepted before its block is final": {func(w *world, t invoice.Transfer) {
				w.verdict(t, invoice.ScreeningAccepted)
				w.final()
			}, invoice.Paid, "", invoice.Confirmed, invoice.ScreeningAccepted, []string{created, received, paid}},
			"accepted after, without another block": {func(w *world, t invoice.Transfer) {
				w.final()
				w.verdict(t, invoice.ScreeningAccepted)
			}, invoice.Paid, "", invoice.Confirmed, invoice.ScreeningAccepted, []string{created, received, paid}},
			"accepted after the invoice's time": {func(w *world, t invoice.Transfer) {
				w.advance(start + 9999)
				w.verdict(t, invoice.ScreeningAccepted)
			}, invoice.Paid, "", invoice.Confirmed, invoice.ScreeningAccepted, []string{created, received, paid}},
			"accepted on a halted chain": {func(w *world, t invoice.Transfer) {
				w.final()
				w.must(w.Halt(w.t.Context(), w.chainKey, "test"))
				w.verdict(t, invoice.ScreeningAccepted)
			}, invoice.Paid, "", invoice.Confirmed, invoice.ScreeningAccepted, []string{created, received, paid}},
			"without a verdict": {func(w *world, _ invoice.Transfer) {
				w.advance(start + 9999)
			}, invoice.Open, "", invoice.Held, invoice.ScreeningWaiting, []string{created, received}},
			"quarantined": {func(w *world, t invoice.Transfer) {
				w.verdict(t, invoice.ScreeningQuarantined)
				w.final()
			}, invoice.Open, "", invoice.Held, invoice.ScreeningQuarantined, []string{created, received}},
			"quarantined, and expired": {func(w *world, t invoice.Transfer) {
				w.advance(start + 9999)
				w.verdict(t, invoice.ScreeningQuarantined)
				w.advance(start + 10000)
			}, invoice.Expired, "", invoice.Held, invoice.ScreeningQuarantined, []string{created, received, expired}},
			"released in time": {func(w *world, t invoice.Transfer) {
				w.final()
				w.verdict(t, invoice.ScreeningQuarantined)
				must(w.decide(t, invoice.Released))
			}, invoice.Paid, "", invoice.Confirmed, invoice.ScreeningReleased, []string{created, received, paid}},
			"released before its block is final": {func(w *world, t invoice.Transfer) {
				w.verdict(t, invoice.ScreeningQuarantined)
				must(w.decide(t, invoice.Released))
				w.final()
			}, invoice.Paid, "", invoice.Confirmed, invoice.ScreeningReleased, []string{created, received, paid}},
			"released when the invoice had expired": {func(w *world, t invoice.Transfer) {
				w.verdict(t, invoice.ScreeningQuarantined)
				w.advance(start + 9999)
				must(w.decide(t, invoice.Released))
			}, invoice.Expired, invoice.Late, invoice.Confirmed, invoice.ScreeningReleased, []string{created, received, expired}},
			"rejected": {func(w *world, t invoice.Transfer) {
				w.final()
				w.verdict(t, invoice.ScreeningQuarantined)
				must(w.decide(t, invoice.Rejected))
			}, invoice.Open, "", invoice.Confirmed, invoice.ScreeningRejected, []string{created, received}},
			"rejected before its block is final": {func(w *world, t invoice.Transfer) {
				w.verdict(t, invoice.ScreeningQuarantined)
				must(w.decide(t, invoice.Rejected))
				w.reorg(1)
				w.mine(start+11, t)
				w.final()
			}, invoice.Open, "", invoice.Confirmed, invoice.ScreeningRejected, []string{created, received}},
			"refunded while it was quarantined": {func(w *world, t invoice.Transfer) {
				w.final()
				w.verdict(t, invoice.ScreeningQuarantined)
				w.mine(start+20, w.back(t.Amount))
				w.final()
				must(w.decide(t, invoice.Released))
			}, invoice.Open, "", invoice.Confirmed, invoice.ScreeningReleased, []string{created, received, "payment.refunded"}},
		} {
			w := d.screening(t)
			inv := w.create()
			paying := w.pay(inv.Amount)
			w.mine(start+10, paying)
			w.wantPayment(name+", seen", paying, invoice.Pending, invoice.ScreeningWaiting)
			test.play(w, paying)
			w.wantPayment(name, paying, test.payment, test.screening)
			is := w.invoice(inv.ID)
			if is.Status != test.status || is.Exception != test.exception {
				t.Errorf("%s: the invoice is %s, %q, want %s, %q", name, is.Status, is.Exception, test.status, test.exception)
			}
			if counts := !is.AmountPaid.IsZero(); counts != (test.payment == invoice.Confirmed && test.screening != invoice.ScreeningRejected) {
				t.Errorf("%s: the invoice has %s", name, is.AmountPaid)
			}
			expect.NoDiff(t, cmp.Diff(test.events, w.eventTypes(inv)), "%s: events", name)
			if pending, _, err := w.Pending(t.Context(), w.chainKey, w.head().Number); err != nil || len(pending) > 0 && w.payment(paying).Status == invoice.Held {
				t.Errorf("%s: the indexer is to verify %v, %v", name, pending, err)
			}
		}
	})
}

// TestQuarantine: only the operator sees the item and decides, once. A rejected payment is refunded and goes to no
// invoice.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.screening(t)
		inv := w.create()
		paying := w.pay(inv.Amount)
		w.mine(start+10, paying)
		w.final()
		p := w.payment(paying)
		expect.Error(t, ledger.ErrPaymentPending, "refunding a payment that waits")(w.prepare(p, 1000))
		w.verdict(paying, invoice.ScreeningQuarantined)
		if w.screened(p, invoice.ScreeningAccepted) {
			t.Error("a second verdict has an effect")
		}
		expect.Len(t, w.inbox(invoice.ItemQuarantined), 0, "the merchant's inbox has")
		item := w.quarantined()[0]
		if item.Payment.ScreeningReason != "list A" {
			t.Errorf("the item is %+v", item)
		}
		req := w.dismissal(item)
		req.Outcome = invoice.Released
		_, err := w.Decide(access.WithPrincipal(t.Context(), access.Principal{KeyID: "key_m", MerchantID: w.merchant}), req)
		expect.Error(t, ledger.ErrOperatorDecides, "released by the merchant")(err)
		decision, err := w.decide(paying, invoice.Rejected)
		if err != nil || decision.MerchantID != w.merchant || decision.AppliedAt != decision.At || len(w.quarantined()) != 0 {
			t.Errorf("rejected: %+v, %v", decision, err)
		}
		expect.Error(t, ledger.ErrItemChanged, "decided twice")(w.Decide(w.operator(), req))
		expect.Error(t, ledger.ErrScreened, "undone")(w.UndoDecision(w.operator(), decision.ID, ""))
		p = w.payment(paying)
		expect.List(t, w.unattributedIDs, []string{p.ID}, "announced as payments without an invoice:")
		expect.Error(t, ledger.ErrRejected, "attributed by hand")(w.attribute(p, inv))
		if p.InOtherCurrency() || !slices.Equal(w.unattributed(), []string{p.ID}) || w.only(invoice.ItemUnattributed).Payment.ID != p.ID {
			t.Errorf("the merchant does not see the rejected payment as one without an invoice: %v", w.unattributed())
		}
		w.mustPrepare(p, 1_000_000)
	})
}

// TestScreeningAfterReorg: a verdict stays if the same movement is mined again, and another movement is screened again.
func TestScreeningAfterReorg(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.screening(t)
		inv := w.create()
		paying := w.pay(inv.Amount)
		w.mine(start+10, paying)
		asked := w.payment(paying)
		w.verdict(paying, invoice.ScreeningQuarantined)
		w.reorg(1)
		expect.Len(t, w.quarantined(), 0, "an orphaned payment is in the inbox:")
		w.mine(start+11, paying)
		w.wantPayment("mined again", paying, invoice.Pending, invoice.ScreeningQuarantined)
		expect.Len(t, w.quarantined(), 1, "mined again, the inbox has")
		w.reorg(1)
		other := paying
		other.From = invoice.Address{0xdd}
		w.mine(start+12, other)
		w.wantPayment("from another account", other, invoice.Pending, invoice.ScreeningWaiting)
		if w.screened(asked, invoice.ScreeningAccepted) {
			t.Error("a verdict about the account before has an effect")
		}
		w.reorg(1)
		w.seconds.Add(1)
		w.verdict(other, invoice.ScreeningAccepted) // while it is orphaned
		w.mine(start+13, other)
		w.final()
		w.wantPayment("final", other, invoice.Confirmed, invoice.ScreeningAccepted)
	})
}

// TestScreeningOfDeposits: held money is in the balance of a deposit address once it is not held any more.
func TestScreeningOfDeposits(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w = w.db.screening(t)
		for _, verdict := range []invoice.Screening{invoice.ScreeningAccepted, invoice.ScreeningRejected} {
			inv := w.create(deposited)
			paying := w.deposit(inv, 1_000_000)
			w.mine(w.head().Time.Unix()+1, paying)
			w.final()
			expect.Equal(t, w.unswept(usdc)[inv.ID], 0, "held, to be swept:")
			if verdict == invoice.ScreeningRejected {
				w.verdict(paying, invoice.ScreeningQuarantined)
				w.must(w.decide(paying, invoice.Rejected))
			} else {
				w.verdict(paying, verdict)
			}
			expect.Equal(t, w.unswept(usdc)[inv.ID], 1_000_000, "%s, to be swept:", verdict)
		}
	})
}

// TestScreeningWhileOff: without the setting no payment is screened. What waits since it was set does not expire.
func TestScreeningWhileOff(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		before, during := w.pay(invoice.NewAmount(1)), w.pay(inv.Amount)
		w.mine(start+10, before)
		w.Service = w.service(func(c *ledger.Config) { c.Screens = true })
		w.mine(start+11, during)
		w.Service = w.service()
		w.advance(start + 9999)
		w.wantPayment("before", before, invoice.Confirmed, "")
		w.wantPayment("during", during, invoice.Held, invoice.ScreeningWaiting)
		w.verdict(during, invoice.ScreeningAccepted)
		if got := w.invoice(inv.ID); got.Status != invoice.Paid {
			t.Errorf("the invoice is %s", got.Status)
		}
	})
}

// TestScreeningOfFinalBlocks: a payment in a block that is read when it is final is held as any other, and reading the
// block again changes nothing.
func TestScreeningOfFinalBlocks(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		d := w.db
		w = d.unstarted(t)
		w.Service = w.service(func(c *ledger.Config) { c.Screens = true })
		inv := w.create()
		paying := w.pay(inv.TransferAmount)
		first := w.next(start+1, paying)
		w.blocks = append(w.blocks, first)
		w.must(w.Start(t.Context(), w.chainKey, first.Header, first.Number))
		w.must(w.Fill(t.Context(), w.chainKey, first.Number, []ledger.Block{first}, first.Header))
		w.wantPayment("filled", paying, invoice.Held, invoice.ScreeningWaiting)
		w.verdict(paying, invoice.ScreeningQuarantined)
		w.must(w.Supplement(t.Context(), w.chainKey, first, first.Header))
		w.wantPayment("read again", paying, invoice.Held, invoice.ScreeningQuarantined)
		w.must(w.decide(paying, invoice.Released))
		if got := w.invoice(inv.ID); got.Status != invoice.Paid {
			t.Errorf("the invoice is %s", got.Status)
		}
	})
}

// TestLeaseScreenings: payments are leased fairly over merchants, and again after a pause.
func TestLeaseScreenings(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		w := d.screening(t)
		big, small := w.create(), w.create(func(d *invoice.Draft) { d.MerchantID, d.Merchant = "small-"+d.MerchantID, invoice.Address{0x55} })
		var many []invoice.Transfer
		for range 20 {
			many = append(many, tagged(w.pay(invoice.NewAmount(20_000)), invoice.Evidence{Calldata: big.CommitmentID}))
		}
		one := tagged(w.pay(small.Amount), invoice.Evidence{Calldata: small.CommitmentID})
		one.To = small.Merchant
		w.mine(start+10, append(many, one)...)
		lease := func() (ids []string) {
			due, waiting, err := w.LeaseScreenings(t.Context())
			w.must(err)
			expect.Equal(t, waiting, 21, "waiting:")
			for _, p := range due {
				ids = append(ids, p.ID)
			}
			return ids
		}
		firsts := lease()
		if len(firsts) != 8 || !slices.Contains(firsts, w.payment(one).ID) {
			t.Errorf("leased %d: %v", len(firsts), firsts)
		}
		for range 2 {
			if more := lease(); len(more) == 0 || slices.ContainsFunc(more, func(id string) bool { return slices.Contains(firsts, id) }) {
				t.Errorf("leased again: %v", more)
			}
		}
		expect.Len(t, lease(), 0, "left:")
		w.seconds.Add(10)
		if more := lease(); !slices.Contains(more, w.payment(one).ID) {
			t.Errorf("after the pause: %v", more)
		}
		overdue, err := w.OverdueScreenings(t.Context(), at(start+1))
		if err != nil || len(overdue) != 21 {
			t.Errorf("%d are overdue: %v", len(overdue), err)
		}
		if overdue, err = w.OverdueScreenings(t.Context(), at(start)); err != nil || len(overdue) != 0 {
			t.Errorf("%d are overdue in the second in which they came: %v", len(overdue), err)
		}
	})
}
