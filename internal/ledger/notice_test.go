package ledger_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// notice announces a transfer of an amount to the world's merchant.
func (w *world) notice(id string, a invoice.Amount) invoice.Notice {
	return invoice.Notice{
		Provider: "circle", Type: "transfers.created", TransferID: id, AmountText: a.Major(6),
		ProviderCurrency: "USD", ProviderChain: "BASE", Destination: chain.Checksum(w.address),
		Amount: a, Currency: "USDC", ChainKey: w.chainKey,
	}
}

func (w *world) receive(n invoice.Notice) {
	w.t.Helper()
	w.must(w.ReceiveNotice(w.t.Context(), n))
}

// announced returns the provider's ids of the notices linked to a payment.
func (w *world) announced(t invoice.Transfer) []string {
	w.t.Helper()
	found, err := rowtest.NoticesOfPayment(w.t.Context(), w.db.store, w.payment(t).ID)
	w.must(err)
	ids := []string{}
	for _, n := range found {
		ids = append(ids, n.TransferID)
	}
	return ids
}

func TestNoticeIsLinkedToItsPayment(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for name, play := range map[string]func(w *world, n invoice.Notice, p invoice.Transfer){
			"before": func(w *world, n invoice.Notice, p invoice.Transfer) { w.receive(n); w.mine(start+1, p) },
			"after":  func(w *world, n invoice.Notice, p invoice.Transfer) { w.mine(start+1, p); w.receive(n) },
			"after it is final": func(w *world, n invoice.Notice, p invoice.Transfer) {
				w.mine(start+1, p)
				w.final()
				w.receive(n)
			},
			"twice": func(w *world, n invoice.Notice, p invoice.Transfer) {
				w.receive(n)
				w.receive(n)
				w.mine(start+1, p)
				w.receive(n)
			},
			"between the blocks of a reorg": func(w *world, n invoice.Notice, p invoice.Transfer) {
				w.mine(start+1, p)
				w.reorg(1)
				w.receive(n)
				w.mine(start+2, p)
			},
			"before a reorg": func(w *world, n invoice.Notice, p invoice.Transfer) {
				w.receive(n)
				w.mine(start+1, p)
				w.reorg(1)
				w.mine(start+2, p)
			},
		} {
			w := d.world(t)
			inv := w.create()
			p := w.pay(inv.TransferAmount)
			w.signals()
			play(w, w.notice(name, inv.TransferAmount), p)
			expect.List(t, w.announced(p), []string{name}, "%s: the payment was announced by", name)
			if !slices.Contains(w.signals(), "look "+w.chainKey) {
				t.Errorf("%s: the indexer was not woken", name)
			}
		}
	})
}

func TestNoticesAreNotMixedUp(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		one, two := w.pay(inv.TransferAmount), w.pay(inv.TransferAmount)
		for _, id := range []string{"t1", "t2"} {
			w.receive(w.notice(id, inv.TransferAmount))
		}
		completed := w.notice("t1", inv.TransferAmount)
		completed.Type = "transfers.completed"
		w.receive(completed)
		w.mine(start+1, one)
		expect.List(t, w.announced(one), []string{"t1", "t1"}, "one of two transfers was announced by")
		// Mined again, the payment keeps its notices and must not take another's.
		w.reorg(1)
		w.mine(start+2, one)
		w.mine(start+3, two)
		expect.List(t, w.announced(one), []string{"t1", "t1"}, "mined again, the first was announced by")
		expect.List(t, w.announced(two), []string{"t2"}, "the second was announced by")
		// A third notice finds no payment without a notice of its type.
		w.receive(w.notice("t3", inv.TransferAmount))
		if one, two := w.announced(one), w.announced(two); len(one) != 2 || len(two) != 1 {
			t.Errorf("a third notice was linked: %v, %v", one, two)
		}
	})
}

func TestNoticeWithoutAPayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.pay(inv.Amount)
		w.mine(start+1, p)
		w.signals()
		for i, by := range []func(*invoice.Notice){
			func(n *invoice.Notice) { n.Amount = invoice.NewAmount(1) },
			func(n *invoice.Notice) { n.Amount, n.Currency = invoice.Amount{}, "" },
			func(n *invoice.Notice) { n.ChainKey = "unregistered" },
			func(n *invoice.Notice) { n.ChainKey = "" },
			func(n *invoice.Notice) { n.ChainKey = "no chain of ours" },
			func(n *invoice.Notice) { n.Destination = "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy" },
			func(n *invoice.Notice) { n.Destination = chain.Checksum(payer) },
		} {
			n := w.notice(string(rune('a'+i)), inv.Amount)
			by(&n)
			w.receive(n)
		}
		expect.Len(t, w.announced(p), 0, "the payment was announced by")
		if got := w.eventTypes(inv); len(got) != 2 {
			t.Errorf("events %v: a notice must not add any", got)
		}
		if w.signals()[0] != "look "+w.chainKey {
			t.Error("the chain's indexer was not woken")
		}
	})
}

// TestNoticeAndPaymentConcurrently stores a notice and its payment at the same time, many
// times. They are linked whichever is first.
func TestNoticeAndPaymentConcurrently(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.create()
		for round := range 60 {
			a := invoice.NewAmount(uint64(3_000_000 + round))
			p := w.pay(a)
			b := w.next(start+int64(round), p)
			var wg sync.WaitGroup
			errs := make([]error, 2)
			wg.Go(func() { errs[0] = w.ReceiveNotice(t.Context(), w.notice(a.String(), a)) })
			wg.Go(func() { errs[1] = w.Observe(t.Context(), w.chainKey, []ledger.Block{b}) })
			wg.Wait()
			w.must(errs[0])
			w.must(errs[1])
			w.blocks = append(w.blocks, b)
			if got := w.announced(p); len(got) != 1 {
				t.Fatalf("round %d: notice and payment missed each other", round)
			}
		}
	})
}

// TestNoticeOutsideTheWindow receives a notice of an amount that was paid to the address
// long before, and again soon after.
func TestNoticeOutsideTheWindow(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		old := w.pay(invoice.NewAmount(5_000_000))
		w.receive(w.notice("never paid", invoice.NewAmount(6_000_000)))
		w.create()
		w.mine(start+1, old)
		w.seconds.Add(int64(invoice.NoticeWindow.Seconds()) + 1)
		w.receive(w.notice("now", old.Amount))
		expect.Len(t, w.announced(old), 0, "a payment of the day before yesterday was announced by")
		fresh, other := w.pay(old.Amount), w.pay(invoice.NewAmount(6_000_000))
		w.mine(start+2, fresh, other)
		if got := w.announced(fresh); len(got) != 1 || got[0] != "now" {
			t.Errorf("the payment was announced by %v", got)
		}
		if got := w.announced(other); len(got) != 0 {
			t.Errorf("a payment is linked to %v, a notice of the day before yesterday", got)
		}
	})
}
