package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// permutations returns all orders of the given steps.
func permutations(of []string) [][]string {
	if len(of) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i, first := range of {
		rest := append(append([]string{}, of[:i]...), of[i+1:]...)
		for _, p := range permutations(rest) {
			all = append(all, append([]string{first}, p...))
		}
	}
	return all
}

// read fills in the final part of the gap.
func (w *world) read() {
	w.t.Helper()
	cur, err := w.Cursor(w.t.Context(), w.chainKey)
	w.must(err)
	if cur.Gap == nil || cur.Gap.Next > cur.Confirmed.Number {
		return
	}
	last := min(cur.Gap.Last, cur.Confirmed.Number)
	w.fill(cur.Gap.Next, w.blocks[last-100].Header, w.blocks[cur.Gap.Next-100:last-99]...)
}

// refunds counts the events payment.refunded of each invoice.
func (w *world) refunds() map[string]int {
	w.t.Helper()
	told := make(map[string]int)
	for _, e := range dbtest.Events(w.t, w.db.sql, w.merchant) {
		if e.Type == invoice.EventRefunded {
			told[e.InvoiceID]++
		}
	}
	return told
}

// TestRefundOfAnUnattributedPayment pays an invoice, and sends 3.21, which matches no
// invoice. In every order, the merchant refunds the 3.21, attributes them manually to
// another invoice, and the chain is read again. A refunded amount is not attributed.
func TestRefundOfAnUnattributedPayment(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, order := range permutations([]string{"back", "by hand", "final", "rescan"}) {
			w := d.world(t)
			paid, other := w.create(amount(10_000_000)), w.create(amount(20_000_000))
			w.mine(start+1, w.pay(paid.TransferAmount))
			odd := w.unattributedPayment(start+2, invoice.NewAmount(3_210_000))
			sent, counted := false, false
			for _, step := range order {
				switch step {
				case "back":
					w.mine(w.head().Time.Unix()+1, w.back(odd.Amount))
					sent = true
				case "by hand":
					_, err := w.attribute(odd, other)
					var used *ledger.UsedError
					if counted = err == nil; counted == sent || err != nil && !errors.As(err, &used) {
						t.Errorf("%s: attributed: %v", strings.Join(order, ", "), err)
					}
				case "final":
					w.final()
				case "rescan":
					w.rescan()
				}
				w.read()
			}
			name := strings.Join(order, ", ")
			for range 2 {
				w.final()
				w.read()
				announced := 0
				if counted {
					announced = 1
				}
				for inv, want := range map[string]uint64{paid.ID: 0, other.ID: 3_210_000 * uint64(announced)} {
					if got := w.invoice(inv).AmountRefunded; got != invoice.NewAmount(want) {
						t.Errorf("%s: %s of %s are refunded, want %d", name, got, inv, want)
					}
				}
				if got := w.refunds(); len(got) != announced || got[other.ID] != announced {
					t.Errorf("%s: refunds were announced %v, want %d of %s", name, got, announced, other.ID)
				}
				expect.Equal(t, w.payment(odd.Transfer).Use, invoice.UseRefunded, "%s: the payment is", name)
				w.rescan()
			}
		}
	})
}

// shops are the settlement addresses of two merchants that pay each other.
type shops struct {
	*world
	second invoice.Address
}

// newShops returns two addresses, the first of which has paid an invoice of the second over 1,000,000.
func newShops(t *testing.T, d *database) (shops, invoice.Invoice) {
	t.Helper()
	s := shops{world: d.world(t)}
	s.second = s.address
	s.second[1] = 0xff
	s.prove(s.address, s.second)
	inv := s.create(s.of(1_000_000, s.second))
	s.mine(start+1, s.move(s.address, s.second, inv.TransferAmount))
	return s, inv
}

func (s shops) of(n uint64, at invoice.Address) func(*invoice.Draft) {
	return func(d *invoice.Draft) { d.Amount, d.Merchant = invoice.NewAmount(n), at }
}

// move returns a transfer from one address to another.
func (s shops) move(from, to invoice.Address, a invoice.Amount) invoice.Transfer {
	t := s.pay(a)
	t.From, t.To = from, to
	return t
}

// TestPaymentBetweenShopsIsNoRefund pays an invoice of the first shop from the second,
// over the amount that it received, in every way that names the invoice.
func TestPaymentBetweenShopsIsNoRefund(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, of := range map[string]func(inv invoice.Invoice) invoice.Evidence{
			"registry":        func(inv invoice.Invoice) invoice.Evidence { return invoice.Evidence{Registry: inv.CommitmentID} },
			"authorization":   func(inv invoice.Invoice) invoice.Evidence { return invoice.Evidence{Authorization: inv.CommitmentID} },
			"calldata":        func(inv invoice.Invoice) invoice.Evidence { return invoice.Evidence{Calldata: inv.CommitmentID} },
			"transfer amount": func(invoice.Invoice) invoice.Evidence { return invoice.Evidence{} },
		} {
			for _, late := range []bool{false, true} {
				s, theirs := newShops(t, d)
				ours := s.create(s.of(number(theirs.TransferAmount), s.address))
				paid := ours.Amount
				if name == "transfer amount" {
					paid = ours.TransferAmount
					s.mine(start+2, s.move(s.address, s.second, paid)) // which the payment would refund exactly
				}
				back := tagged(s.move(s.second, s.address, paid), of(ours))
				if late {
					b := s.next(start+3, back)
					s.observe(ledger.Block{Header: b.Header}) // without its transfers, as from a dishonest node
					s.final()
					s.blocks[len(s.blocks)-1] = b
					s.rescan()
					s.read()
				} else {
					s.mine(start+3, back)
					s.final()
				}
				s.wantInvoice(fmt.Sprintf("%s, late %t", name, late), ours, invoice.Paid, 0)
				s.wantInvoice(fmt.Sprintf("%s, late %t", name, late), theirs, invoice.Paid, 0)
			}
		}
	})
}

func (s shops) wantInvoice(name string, inv invoice.Invoice, status invoice.Status, refunded uint64) {
	s.t.Helper()
	got := s.invoice(inv.ID)
	if got.Status != status || got.AmountRefunded != invoice.NewAmount(refunded) {
		s.t.Errorf("%s: %s with %s refunded, want %s with %d", name, got.Status, got.AmountRefunded, status, refunded)
	}
	if told := s.refunds()[inv.ID]; (told > 0) != (refunded > 0) {
		s.t.Errorf("%s: %d refunds were announced of %d", name, told, refunded)
	}
}

// TestExactRefundIsNoPaymentByBareAmount sends a transfer between shops that matches the
// bare amount of an invoice and a refund.
func TestExactRefundIsNoPaymentByBareAmount(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		s, theirs := newShops(t, d)
		s.final() // it is paid before it is refunded
		ours := s.create(s.of(number(theirs.TransferAmount), s.address))
		exact := s.move(s.second, s.address, theirs.TransferAmount)
		s.mine(start+2, exact)
		s.final()
		s.wantInvoice("exactly what was paid", ours, invoice.Open, 0)
		s.wantInvoice("exactly what was paid", theirs, invoice.Paid, number(theirs.TransferAmount))
		if p := s.payment(exact); p.Attributed() {
			t.Errorf("the refund is also a payment by %s", p.Method)
		}
		s.rescan()
		s.read()
		s.wantInvoice("read again", ours, invoice.Open, 0)

		s, theirs = newShops(t, d)
		ours = s.create(s.of(400_000, s.address))
		s.mine(start+2, s.move(s.second, s.address, ours.Amount))
		s.final()
		s.wantInvoice("a part of what was paid", ours, invoice.Paid, 0)
		s.wantInvoice("a part of what was paid", theirs, invoice.Paid, 0)
		s.mine(start+3, s.move(s.second, s.address, invoice.NewAmount(300_000)))
		s.final()
		s.wantInvoice("a part that no invoice asks for", theirs, invoice.Paid, 300_000)
	})
}

// TestRefundIsNotRefunded sends the same amount back and forth between two shops. A refund is not a
// payment that can be refunded.
func TestRefundIsNotRefunded(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		s, _ := newShops(t, d)
		s.create(s.of(2_000_000, s.address)) // so that the first address is indexed
		odd := invoice.NewAmount(777_777)
		s.mine(start+2, s.move(s.address, s.second, odd))
		s.mine(start+3, s.move(s.second, s.address, odd)) // the refund
		asked := s.create(s.of(number(odd), s.second))
		second := s.move(s.address, s.second, odd)
		s.mine(start+4, second)
		s.final()
		s.wantInvoice("sent once more, and asked for", asked, invoice.Paid, 0)
		if p := s.payment(second); p.Method != invoice.ByAmount {
			t.Errorf("the second payment was attributed by %q", p.Method)
		}
	})
}

// TestManualAttributionOrphansRefund manually attributes a transfer that was read as a
// refund. Its events were sent; the sums are corrected.
func TestManualAttributionOrphansRefund(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, final := range []bool{false, true} {
			s, theirs := newShops(t, d)
			ours := s.create(s.of(number(theirs.TransferAmount), s.address))
			back := s.move(s.second, s.address, theirs.TransferAmount)
			s.mine(start+2, back)
			if final {
				s.final()
			}
			s.must(s.attribute(s.payment(back), ours))
			s.final()
			s.rescan()
			s.read()
			for inv, want := range map[string]invoice.Status{ours.ID: invoice.Paid, theirs.ID: invoice.Paid} {
				if got := s.invoice(inv); got.Status != want || !got.AmountRefunded.IsZero() {
					t.Errorf("final %t: %s with %s refunded", final, got.Status, got.AmountRefunded)
				}
			}
			if told := s.refunds()[theirs.ID]; (told > 0) != final {
				t.Errorf("final %t: %d refunds were announced", final, told)
			}
		}
	})
}

// TestRefundIsNotClaimed refunds another shop, and claims the refund as a payment of an own order, with a signature.
// Otherwise the other shop would lose both its money and its goods. The merchant decides.
func TestRefundIsNotClaimed(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		s := shops{world: d.world(t)}
		cheat := newAccount(t)
		s.second = cheat.address
		s.prove(s.second)
		theirs := s.create(s.of(1_000_000, s.second))
		s.mine(start+1, s.move(s.address, s.second, theirs.TransferAmount))
		s.final()
		order := s.create(s.of(5_000_000, s.address))
		back := s.move(s.second, s.address, theirs.TransferAmount)
		s.mine(start+2, back)
		s.final()
		if got, err := s.claimFor(order, s.payment(back), &cheat); got != ledger.ClaimKept || err != nil {
			t.Errorf("the claim of a refund: %q, %v; want it kept", got, err)
		}
		s.wantInvoice("claimed", theirs, invoice.Paid, number(theirs.TransferAmount))
		s.wantInvoice("claimed", order, invoice.Open, 0)
	})
}

// TestRefundThatTurnsOutToBeAPayment reads a refund again, with evidence that was missing the first time.
func TestRefundThatTurnsOutToBeAPayment(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		s, theirs := newShops(t, d)
		ours := s.create(s.of(5_000_000, s.address))
		back := s.move(s.second, s.address, theirs.TransferAmount)
		s.mine(start+2, back)
		s.reorg(1)
		s.mine(start+3, tagged(back, invoice.Evidence{Calldata: ours.CommitmentID}))
		s.final()
		s.wantInvoice("tagged", theirs, invoice.Paid, 0)
		expect.Equal(t, s.invoice(ours.ID).AmountPaid, theirs.TransferAmount, "the invoice it names has")
		refunds, err := ledger.RefundsByID(t.Context(), d.store, []string{invoice.TransferID(invoice.PrefixRefund, back.ChainKey, back.TxHash, 0)})
		if err != nil || len(refunds) != 1 || refunds[0].Status != invoice.Orphaned {
			t.Errorf("the refund is %+v, %v; want it orphaned", refunds, err)
		}
	})
}

// TestTaggedRefundToAnotherPayer refunds a payment from an exchange to an account that paid another invoice, and names
// the first invoice. The transfer is a refund of neither.
func TestTaggedRefundToAnotherPayer(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		one, two := w.create(amount(34_000_000)), w.create(amount(50_000_000))
		paid := w.pay(one.TransferAmount)
		paid.From = invoice.Address{0xee}
		w.mine(start+1, paid, w.pay(two.TransferAmount))
		w.mine(start+2, tagged(w.back(one.Amount), invoice.Evidence{Calldata: one.CommitmentID}))
		w.final()
		for _, inv := range []invoice.Invoice{one, two} {
			if got := w.invoice(inv.ID).AmountRefunded; !got.IsZero() {
				t.Errorf("of the invoice over %s, %s are refunded, want 0", inv.Amount, got)
			}
		}
		if got := w.refunds(); len(got) > 0 {
			t.Errorf("refunds were announced of %v", got)
		}
	})
}
