package ledger_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestConfirmFailsAfterATransferMoved lets another replica observe a verified payment, or a sweep, in a later block.
func TestConfirmFailsAfterATransferMoved(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for name, transfer := range map[string]func(*world, invoice.Invoice, uint64) invoice.Transfer{"payment": (*world).deposit, "sweep": (*world).sweep} {
			w := w.db.world(t)
			inv := w.create(deposited)
			moved := transfer(w, inv, 1_000_000)
			w.mine(start+1, moved)
			line := w.mine(inv.ExpiresAt.Unix() + 1)
			_, revision, err := w.Pending(t.Context(), w.chainKey, line.Number)
			w.must(err)
			again := w.next(inv.ExpiresAt.Unix()+2, moved)
			w.must(w.service().Observe(t.Context(), w.chainKey, []ledger.Block{again}))
			if _, err := w.Service.Confirm(t.Context(), w.chainKey, line, revision, 0); !errors.Is(err, ledger.ErrCursorMoved) {
				t.Errorf("confirming below the new block of a %s: %v, want ErrCursorMoved", name, err)
			}
		}
	})
}

// TestReplicasConfirmTheirRevisions interleaves two replicas at random, which verify, roll back, observe with or
// without the payments, and confirm. Exactly the payments that the confirming replica had verified may become final.
func TestReplicasConfirmTheirRevisions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		rapid.Check(t, func(r *rapid.T) {
			w := d.world(t)
			w.create() // so that the address is watched
			replicas := []*replica{{Service: w.Service}, {Service: w.service()}}
			pick := func() *replica { return replicas[rapid.IntRange(0, 1).Draw(r, "replica")] }
			blocks := w.blocks[:1]
			top := func() invoice.Header { return blocks[len(blocks)-1].Header }
			final, done := 0, make(map[invoice.Hash]bool)
			r.Repeat(map[string]func(*rapid.T){
				"observe": func(r *rapid.T) {
					w.blocks = blocks
					b := w.next(top().Time.Unix()+1, w.pay(invoice.NewAmount(7)))
					if rapid.Bool().Draw(r, "empty") {
						b.Transfers = nil
					}
					w.must(pick().Observe(t.Context(), w.chainKey, []ledger.Block{b}))
					blocks = append(blocks, b)
				},
				"read anew": func(r *rapid.T) {
					if len(blocks)-1 == final {
						r.Skip("all is final")
					}
					from := rapid.IntRange(final, len(blocks)-2).Draw(r, "from")
					p := pick()
					w.must(p.Rollback(t.Context(), w.chainKey, blocks[from].Header))
					for i := range blocks[from+1:] {
						if b := &blocks[from+1+i]; rapid.Bool().Draw(r, "without") {
							b.Transfers = nil
						}
					}
					w.must(p.Observe(t.Context(), w.chainKey, blocks[from+1:]))
				},
				"verify": func(*rapid.T) { pick().verify(t, w, top()) },
				"confirm": func(r *rapid.T) {
					p := pick()
					if p.line.Number <= blocks[final].Number {
						r.Skip("nothing was verified")
					}
					_, err := p.Confirm(t.Context(), w.chainKey, p.line, p.revision, 0)
					if errors.Is(err, ledger.ErrCursorMoved) {
						return
					}
					w.must(err)
					var became []invoice.Transfer
					for final < len(blocks)-1 && blocks[final].Number < p.line.Number {
						final++
						became = append(became, blocks[final].Transfers...)
					}
					p.wantVerified(r, became, done)
				},
			})
		})
	})
}

// replica is one of several services, with the transfers that it verified last.
type replica struct {
	*ledger.Service
	line     invoice.Header
	verified []invoice.Transfer
	revision int64
}

func (p *replica) verify(t *testing.T, w *world, line invoice.Header) {
	t.Helper()
	var err error
	p.line = line
	p.verified, p.revision, err = p.Pending(t.Context(), w.chainKey, line.Number)
	w.must(err)
}

// wantVerified fails the test unless the newly final transfers are exactly the ones that the replica
// verified and that were not final before.
func (p *replica) wantVerified(r *rapid.T, became []invoice.Transfer, final map[invoice.Hash]bool) {
	known := make(map[invoice.Hash]bool)
	for _, t := range p.verified {
		known[t.TxHash] = true
	}
	for _, t := range became {
		if !known[t.TxHash] {
			r.Fatalf("the transfer of %s became final, and was not verified", t.TxHash)
		}
		final[t.TxHash] = true
	}
	for _, t := range p.verified {
		if !final[t.TxHash] {
			r.Fatalf("the transfer of %s was verified, and is not final", t.TxHash)
		}
	}
}

// checkConfirmations checks which blocks confirm the payments of an invoice.
func (w *world) checkConfirmations(inv invoice.Invoice, want ...[]ledger.Confirmation) {
	w.t.Helper()
	h, err := ledger.NewReader(w.db.store).InvoiceHistory(w.t.Context(), inv.ID)
	w.must(err)
	var got [][]ledger.Confirmation
	for _, p := range h.Payments {
		got = append(got, p.Confirmations)
	}
	expect.NoDiff(w.t, cmp.Diff(want, got), "confirmations")
}

// TestConfirmations follows the blocks that confirm a payment: while it is pending, in a reorg,
// when it is final, and after the headers of its blocks are gone.
func TestConfirmations(t *testing.T) {
	eachWorldOnBoth(t, func(_ *testing.T, w *world) {
		inv := w.create()
		payment := w.pay(inv.TransferAmount)
		start := w.head().Time.Unix()
		w.mine(start+1, payment)
		w.mine(start + 3)
		first, second := ledger.Confirmation{Number: 1, Time: at(start + 1)}, ledger.Confirmation{Number: 2, Time: at(start + 3)}
		w.checkConfirmations(inv, []ledger.Confirmation{first, second})
		w.reorg(1)
		w.checkConfirmations(inv, []ledger.Confirmation{first})
		w.mine(start + 4)
		second.Time = at(start + 4)
		w.checkConfirmations(inv, []ledger.Confirmation{first, second})
		w.reorg(2)
		w.checkConfirmations(inv, nil)

		w.mine(start + 2)
		w.mine(start+5, payment)
		want := []ledger.Confirmation{{Number: 1, Time: at(start + 5)}}
		w.checkConfirmations(inv, want)
		for n := uint64(2); n <= 20; n++ {
			w.mine(start + 10*int64(n))
			if n <= 12 || n == 16 {
				want = append(want, ledger.Confirmation{Number: n, Time: at(start + 10*int64(n))})
			}
		}
		w.checkConfirmations(inv, want)
		w.final()
		w.checkConfirmations(inv, want)
		for range 300 {
			w.mine(w.head().Time.Unix() + 1)
		}
		w.final()
		w.checkConfirmations(inv, want)
	})
}

// TestRefundNamesItsPayment refunds a payer who paid two invoices of one amount.
func TestRefundNamesItsPayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		one, two := w.create(), w.create()
		tag := func(inv invoice.Invoice) invoice.Evidence { return invoice.Evidence{Calldata: inv.CommitmentID} }
		w.mine(start+1, tagged(w.pay(one.Amount), tag(one)), tagged(w.pay(two.Amount), tag(two)))
		w.final()
		w.mine(start+2, tagged(w.back(one.Amount), tag(one)))
		w.mine(start+3, w.back(invoice.NewAmount(70_000)), w.back(invoice.NewAmount(930_000)))
		stranger := w.back(one.Amount)
		stranger.To = invoice.Address{0xee}
		w.mine(start+4, stranger, w.back(invoice.NewAmount(1)))
		w.final()
		if got := w.invoice(one.ID); got.AmountRefunded != one.Amount {
			t.Errorf("the tagged refund of the first: %s", got.AmountRefunded)
		}
		if got := w.invoice(two.ID); got.AmountRefunded != two.Amount {
			t.Errorf("the refunds of the second, in two parts: %s", got.AmountRefunded)
		}
		for inv, want := range map[*invoice.Invoice]int{&one: 1, &two: 2} {
			refunds := 0
			for _, e := range dbtest.Events(t, w.db.sql, w.merchant) {
				if e.InvoiceID != inv.ID || e.Type != invoice.EventRefunded {
					continue
				}
				refunds++
				var body struct {
					Data struct {
						Refund  struct{ ID, PaymentID, InvoiceID, From, To, Amount string }
						Payment struct{ ID, InvoiceID, From, To, Status string }
					}
				}
				w.must(json.Unmarshal(e.Body, &body))
				r, p := body.Data.Refund, body.Data.Payment
				if r.PaymentID != p.ID || r.InvoiceID != inv.ID || p.InvoiceID != inv.ID || r.From != p.To || r.To != p.From || p.Status != "confirmed" || e.Subject != r.ID {
					t.Errorf("the event reads %s", e.Body)
				}
			}
			expect.Equal(t, refunds, want, "refunds are announced:")
		}
	})
}

// TestConfirmedInRecovery reads blocks again, a month later, that a backup had not read. What is final in them has the times
// of the blocks, in which it was confirmed before, and their periods are added up again.
func TestConfirmedInRecovery(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		const month = 31 * 24 * 3600
		inv, other := w.create(), w.create(amount(700_000))
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		w.seconds.Add(month)
		rollups := report.NewRollups(w.db.store, func() time.Time { return at(w.seconds.Load()) }, slog.New(slog.DiscardHandler))
		for more := true; more; {
			more = expect.Must(rollups.Advance(t.Context()))
		}
		paid, filled := w.pay(inv.TransferAmount), w.pay(other.TransferAmount)
		w.mine(start+10, paid)
		back := w.back(inv.TransferAmount)
		w.mine(start+1200, back)
		unread := w.next(start+2400, filled)
		w.observe(ledger.Block{Header: unread.Header})
		early := w.pay(invoice.NewAmount(333))
		w.mine(start+month+5, early) // by a chain with a clock that is ahead
		w.final()
		w.blocks[len(w.blocks)-2] = unread
		w.rescan()
		w.read()
		_, refund := w.storedRefund(back)
		for name, times := range map[string][2]time.Time{
			"payment": {w.payment(paid).ConfirmedAt, at(start + 10)}, "refund": {refund.ConfirmedAt, at(start + 1200)},
			"payment in a final block": {w.payment(filled).ConfirmedAt, at(start + 2400)}, "payment of the future": {w.payment(early).ConfirmedAt, at(start + month)},
		} {
			if !times[0].Equal(times[1]) {
				t.Errorf("the %s was confirmed at %s, want %s", name, times[0], times[1])
			}
		}
		var stale []time.Time
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) (err error) {
			stale, err = report.TakeStaleRollups(t.Context(), tx, 10)
			return err
		}))
		for _, second := range []int64{10, 1200, 2400} {
			if !slices.ContainsFunc(stale, ledger.RollupStart(at(start+second)).Equal) {
				t.Errorf("stale are %v, want the period of %s", stale, at(start+second))
			}
		}
	})
}
