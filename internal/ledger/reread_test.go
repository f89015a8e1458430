package ledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// TestTheSameChainSaysTheSame reads one chain, with payments of invoices that exist before, in several ways: block by
// block; in batches with restarts; from a block in the middle, with the gap below filled at any time; with rescans at
// any time; and with rollbacks to unchanged blocks while the gap is filled. Some invoices are made void at a block.
// Each way must give the same attributions, methods, refunds and states of invoices.
func TestTheSameChainSaysTheSame(t *testing.T) {
	t.Parallel()
	properties(t, (*propertyCount+1)/2, func(open func() *reader, r *rand.Rand) string {
		s := newStory(r)
		want := s.read(open(), r, reading{})
		for _, how := range []reading{
			{batches: true},
			{batches: r.IntN(2) == 0, late: true},
			{batches: r.IntN(2) == 0, rescans: true},
			{batches: true, late: true, rescans: true},
			{batches: true, rollbacks: true},
			{batches: true, late: true, rollbacks: true},
			{batches: true, late: true, rescans: true, rollbacks: true},
		} {
			if diff := cmp.Diff(want, s.read(open(), r, how)); diff != "" {
				return fmt.Sprintf("%+v (-in order +so):\n%s\n%s", how, diff, strings.Join(want.Transfers, "\n"))
			}
		}
		return ""
	})
}

// story is a chain above block 100, and the invoices that it pays.
type story struct {
	terms  []terms
	blocks []storyBlock
	begin  int // index of the block at which a late reader starts
}

// terms are the terms of an invoice. A bound one was created when the chain was indexed up
// to the block at which a late reader starts. A partner's belongs to another merchant.
type terms struct {
	amount, transfer        uint64
	expires                 int64 // seconds after start
	lenient, bound, partner bool
	void                    int  // it is made void when the block of this index is the newest; 0 for never
	deposit                 bool // paid at a deposit address
}

type storyBlock struct {
	at        int64 // seconds after start
	transfers []storyTransfer
}

// party is an account of a story.
type party int

const (
	theMerchant party = iota
	thePartner        // another merchant, or a payer if he has no invoice
	thePayer
)

// storyTransfer is a transfer of an amount. Its calldata names the invoice of, unless that
// is negative. If deposit is not nil, it goes to or comes from a deposit address.
type storyTransfer struct {
	amount   uint64
	of       int
	from, to party
	deposit  *storyDeposit
}

// storyDeposit marks a transfer that goes to the deposit address of an invoice, in another currency
// than the invoice's if other is set, or a sweep to the merchant.
type storyDeposit struct {
	of           int
	other, sweep bool
}

// newStory returns a story with few amounts, so that they collide.
func newStory(r *rand.Rand) story {
	var s story
	taken := make(map[uint64]bool)
	partners := r.IntN(3) > 0
	for range 2 + r.IntN(6) {
		t := terms{amount: pick(r, uint64(1_000_000), 1_000_000, 2_000_000, 3_000_000), expires: 5 + r.Int64N(120), lenient: r.IntN(4) == 0, bound: r.IntN(3) == 0}
		if len(s.terms) > 0 && r.IntN(6) == 0 {
			t.amount = s.terms[0].transfer // the transfer amount of another invoice
		}
		t.transfer = t.amount + 1 + uint64(r.IntN(60))
		for taken[t.transfer] {
			t.transfer++
		}
		taken[t.transfer] = true
		t.partner = partners && r.IntN(3) == 0
		t.deposit = r.IntN(3) == 0
		s.terms = append(s.terms, t)
	}
	at := int64(0)
	for range 4 + r.IntN(12) {
		b := storyBlock{at: at}
		for range r.IntN(4) {
			t := pick(r, s.terms...)
			move := storyTransfer{of: -1, from: thePartner, amount: pick(r, t.amount, t.amount, t.transfer, t.transfer, 1_000_000, 2_000_000, t.amount-30_000)}
			if r.IntN(4) == 0 {
				move.amount = pick(r, uint64(400_000), 600_000, 1_000_000, 3_000)
				if move.of = r.IntN(len(s.terms)); s.terms[move.of].bound { // the invoice does not exist yet
					move.of = -1
				}
			}
			if r.IntN(8) == 0 {
				move.amount = pick(r, uint64(400_000), 600_000, 1_400_000, 1_600_000)
			}
			switch r.IntN(5) {
			case 0:
				move.from = thePayer
			case 1, 2:
				move.from, move.to = theMerchant, pick(r, thePartner, thePartner, thePayer)
				move.amount = pick(r, t.amount, t.transfer, 400_000, 1_000_000, 3_000)
			}
			if d := r.IntN(len(s.terms)); s.terms[d].deposit && !s.terms[d].bound { // its address was unknown before
				move.deposit = &storyDeposit{of: d, other: r.IntN(5) == 0, sweep: r.IntN(3) == 0}
			}
			b.transfers = append(b.transfers, move)
		}
		s.blocks = append(s.blocks, b)
		at += r.Int64N(15)
	}
	s.begin = min(r.IntN(len(s.blocks)), s.lastBeforeLateRefund())
	for i := range s.terms {
		// Confirm never expires an invoice before it is made void.
		at := s.begin + r.IntN(len(s.blocks)-s.begin)
		if at > s.begin && r.IntN(2) == 0 && s.blocks[at].at <= s.terms[i].expires {
			s.terms[i].void = at
		}
	}
	return s
}

// reading is the way of reading a story.
type reading struct{ batches, late, rescans, rollbacks bool }

// outcome is the result of a story: the invoice and method of each transfer, and the state and sums of each invoice.
type outcome struct {
	Transfers []string
	Invoices  []string
}

// read makes a ledger read the story.
func (s story) read(w *reader, r *rand.Rand, how reading) outcome {
	restart := func() { w.book.Restart(narrow{r, 2, 200}) } // far above the suffixes of the story
	restart()
	invoices := s.invoices(w)
	w.must(w.book.Insert(invoices...))
	all := s.chain(w, invoices)
	next := 0
	if how.late {
		next = s.begin + 1
		w.blocks = append(w.blocks, all[:next]...)
		w.must(w.book.Start(w.head(), 101))
	} else {
		w.must(w.book.Start(w.head(), w.head().Number+1))
	}
	for next < len(all) || w.gap() != nil {
		switch n := r.IntN(7); {
		case next < len(all) && n < 3:
			size := 1
			if how.batches {
				size += r.IntN(4)
			}
			part := all[next:min(next+size, s.nextVoid(next)+1, s.nextBack(next+1), len(all))]
			if s.nextBack(next) == next {
				w.settle(r)
			}
			w.observe(part...)
			next += len(part)
			s.void(w, r, invoices, next-1)
		case n == 3:
			w.confirmSome(r)
		case n == 4 && how.rescans && next < len(all) && len(w.blocks) > 1:
			w.must(w.book.Rescan(101 + uint64(r.IntN(len(w.blocks)-1))))
		case n == 5 && how.batches:
			restart()
		case n == 6 && how.rollbacks:
			w.readAgain(r, all[:next])
		default:
			if next == len(all) {
				w.final()
			}
			w.fillSome(r)
		}
	}
	w.final()
	w.observe(w.next(w.head().Time.Unix() + 1000))
	w.final()
	return s.outcome(w, invoices, all)
}

// nextVoid returns the index of the first block from one on at which an invoice is made void.
func (s story) nextVoid(from int) int {
	next := len(s.blocks)
	for _, t := range s.terms {
		if t.void >= from {
			next = min(next, t.void)
		}
	}
	return next
}

// nextBack returns the index of the first block from one on with a transfer of a merchant. All blocks
// below are final before it is read, because it matters whether a refunded payment was final first.
func (s story) nextBack(from int) int {
	for i := from; i < len(s.blocks); i++ {
		if slices.ContainsFunc(s.blocks[i].transfers, func(t storyTransfer) bool { return t.from != thePayer && t.deposit == nil }) {
			return i
		}
	}
	return len(s.blocks)
}

// lastBeforeLateRefund returns the index of the last block before a merchant moves money after the expiry of an invoice.
// A late reader starts below: whether a refund leaves the invoice underpaid depends on which of the two is stored first.
func (s story) lastBeforeLateRefund() int {
	for i := s.nextBack(0); i < len(s.blocks); i = s.nextBack(i + 1) {
		if slices.ContainsFunc(s.terms, func(t terms) bool { return t.expires < s.blocks[i].at }) {
			return i - 1
		}
	}
	return len(s.blocks) - 1
}

// settle makes all read blocks final, and closes the gap.
func (w *reader) settle(r *rand.Rand) {
	w.final()
	for w.gap() != nil {
		w.fillSome(r)
	}
}

// void makes invoices of the newest block void, unless they are covered. It closes the gap first.
func (s story) void(w *reader, r *rand.Rand, invoices []invoice.Invoice, newest int) {
	for i, t := range s.terms {
		if t.void != newest || newest == 0 {
			continue
		}
		if w.gap() != nil {
			w.settle(r)
		}
		if err := w.book.Void(invoices[i].ID); !errors.Is(err, invoice.ErrFinal) && !errors.Is(err, invoice.ErrCovered) {
			w.must(err)
		}
	}
}

// readAgain rolls back some of the blocks that were read, and reads them again.
func (w *reader) readAgain(r *rand.Rand, read []ledger.Block) {
	low := int(w.book.Cursor().Confirmed.Number) - 100
	if low >= len(read) {
		return
	}
	to := low + r.IntN(len(read)-low)
	w.blocks = w.blocks[:to+1]
	w.must(w.book.Rollback(w.head()))
	w.fillSome(r)
	for to < len(read) {
		part := read[to : to+1+r.IntN(len(read)-to)]
		w.observe(part...)
		to += len(part)
		if r.IntN(2) == 0 {
			w.fillSome(r)
		}
		if r.IntN(3) == 0 {
			w.confirmSome(r)
		}
	}
}

// confirmSome confirms some of the blocks that were read.
func (w *reader) confirmSome(r *rand.Rand) {
	if line := r.IntN(len(w.blocks)); w.blocks[line].Number > w.book.Cursor().Confirmed.Number {
		w.confirm(line)
	}
}

// invoices returns the story's invoices.
func (s story) invoices(w *reader) []invoice.Invoice {
	all := make([]invoice.Invoice, len(s.terms))
	for i, t := range s.terms {
		inv := w.insertable(uint64(i + 1))
		inv.FromBlock = 0
		if t.bound {
			inv.FromBlock = 101 + uint64(s.begin)
		}
		inv.Amount, inv.TransferAmount, inv.ExpiresAt = invoice.NewAmount(t.amount), invoice.NewAmount(t.transfer), invoice.Unix(start+t.expires)
		if t.lenient {
			inv.Tolerance = invoice.NewAmount(50_000)
		}
		if t.partner {
			inv.Merchant = w.account(thePartner)
		}
		if t.deposit {
			inv.Collection, inv.DepositFactory, inv.TransferAmount = invoice.Deposit, factory, invoice.Amount{}
			inv.DepositAddress = invoice.Address{0: 0xd0, 1: byte(i), 18: w.address[18], 19: w.address[19]}
		}
		all[i] = inv
	}
	return all
}

// account returns the account of a party.
func (w *world) account(p party) invoice.Address {
	return []invoice.Address{w.address, payer, {0xbc}}[p]
}

// chain makes the story's blocks.
func (s story) chain(w *reader, invoices []invoice.Invoice) []ledger.Block {
	var all []ledger.Block
	for _, b := range s.blocks {
		var transfers []invoice.Transfer
		for _, t := range b.transfers {
			move := w.pay(invoice.NewAmount(t.amount))
			move.From, move.To = w.account(t.from), w.account(t.to)
			if d := t.deposit; d != nil {
				if d.sweep {
					move.From, move.To = invoices[d.of].DepositAddress, invoices[d.of].Merchant
				} else {
					move.To = invoices[d.of].DepositAddress
				}
				if d.other {
					move = inEUR(move)
				}
			}
			if t.of >= 0 {
				move.Evidence.Calldata = invoices[t.of].CommitmentID
			}
			transfers = append(transfers, move)
		}
		w.blocks = append(w.blocks, w.next(start+b.at, transfers...))
		all = append(all, w.blocks[len(w.blocks)-1])
	}
	w.blocks = w.blocks[:1]
	return all
}

func (s story) outcome(w *reader, invoices []invoice.Invoice, all []ledger.Block) outcome {
	var out outcome
	number := map[string]int{"": -1}
	held, heldEUR := w.book.Held(usdc), w.book.Held(eurc)
	for i, inv := range invoices {
		number[inv.ID] = i
		got := w.book.Invoice(inv.ID)
		out.Invoices = append(out.Invoices, fmt.Sprintf("%d over %s, told %s, until %d, from %d: %s %q with %s, refunded %s", i, inv.Amount,
			inv.TransferAmount, inv.ExpiresAt.Unix()-start, inv.FromBlock, got.Status, got.Exception, got.AmountPaid, got.AmountRefunded))
		out.Invoices = append(out.Invoices, fmt.Sprintf("%d is swept: %t; holds %d and %d", i, !got.SweptTx.IsZero(), held[inv.ID], heldEUR[inv.ID]))
	}
	paid := make(map[string]string)
	for _, b := range all {
		for _, t := range b.Transfers {
			line := fmt.Sprintf("%s from %x to %x in block %d at %d, named %t", t.Amount, t.From[:1], t.To[:1], b.Number, b.Time.Unix()-start, !t.Evidence.Calldata.IsZero())
			if p := w.paymentOf(t); p.ID != "" {
				paid[p.ID] = fmt.Sprint(p.Amount, " in block ", b.Number)
				line += fmt.Sprintf(": pays %d by %q, %s", number[p.InvoiceID], p.Method, p.Status)
			}
			if f := w.refundOf(t); f.ID != "" && f.Status != invoice.Orphaned {
				line += fmt.Sprintf(": pays back %s, %s", paid[f.PaymentID], f.Status)
			}
			if s := w.sweepOf(t); s.ID != "" {
				line += fmt.Sprintf(": sweeps %d, %s", number[s.InvoiceID], s.Status)
			}
			out.Transfers = append(out.Transfers, line)
		}
	}
	return out
}

// TestPartsBelowWhatWasRead reads the second part of a payment before the first one and its refund, which are in blocks
// that were never read. The parts never paid the invoice together.
func TestPartsBelowWhatWasRead(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, deposit := range []bool{false, true} {
			w := onDatabase(d.unstarted(t))
			s := story{terms: []terms{{amount: 1_000_000, transfer: 1_000_007, expires: 1000, deposit: deposit}}}
			part := func(amount uint64) (b storyBlock) {
				move := storyTransfer{amount: amount, from: thePartner}
				if deposit {
					move.of, move.deposit = -1, &storyDeposit{}
				}
				b.transfers = append(b.transfers, move)
				return b
			}
			back := storyTransfer{amount: 400_000, of: -1, to: thePartner}
			s.blocks = []storyBlock{part(400_000), {transfers: []storyTransfer{back}}, part(600_000)}
			invoices := s.invoices(w)
			w.must(w.book.Insert(invoices...))
			blocks := s.chain(w, invoices)
			w.blocks = append(w.blocks, blocks[:2]...)
			w.must(w.book.Start(w.head(), 101))
			w.observe(blocks[2])
			w.final()
			for i := 1; w.gap() != nil; i++ {
				w.must(w.book.Fill(w.gap().Next, w.blocks[i].Header, w.blocks[i]))
			}
			if got := w.book.Invoice(invoices[0].ID); got.Status != invoice.Open {
				t.Errorf("at a deposit address %t: the invoice is %s", deposit, got.Status)
			}
		}
	})
}
