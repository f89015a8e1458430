package settle_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// TestTheSameChainSaysTheSame has one chain, with payments of invoices that
// are there before it is read, be read in several ways: block by block; in
// batches of any size, with restarts; from a block in the middle on, with what
// lies below filled in at any time; and with blocks read again at any time.
// Each time every payment goes to the same invoice, by the same method, every
// refund pays back the same payment, and every invoice comes to the same end.
func TestTheSameChainSaysTheSame(t *testing.T) {
	t.Parallel()
	properties(t, func(db *database, r *rand.Rand) string {
		s := newStory(r)
		want := s.read(db.world(t), r, reading{})
		for _, how := range []reading{
			{batches: true},
			{batches: r.IntN(2) == 0, late: true},
			{batches: r.IntN(2) == 0, rescans: true},
			{batches: true, late: true, rescans: true},
		} {
			if diff := cmp.Diff(want, s.read(db.world(t), r, how)); diff != "" {
				return fmt.Sprintf("%+v (-in order +so):\n%s", how, diff)
			}
		}
		return ""
	})
}

// story is a chain above block 100, and the invoices that it pays.
type story struct {
	terms  []terms
	blocks []storyBlock
	begin  int // a late reader starts at this index of blocks
}

// terms are those of an invoice. A bound one was created when the chain had
// been read up to the block where a late reader starts.
type terms struct {
	amount, transfer uint64
	expires          int64 // seconds after start
	lenient, bound   bool
}

type storyBlock struct {
	at        int64 // seconds after start
	transfers []storyTransfer
}

// storyTransfer is of an amount, and names an invoice in its calldata, if of
// is not negative. One that is back goes from the merchant to the payer.
type storyTransfer struct {
	amount uint64
	of     int
	back   bool
}

// newStory makes a story of few amounts, so that they collide.
func newStory(r *rand.Rand) story {
	var s story
	taken := make(map[uint64]bool)
	for range 2 + r.IntN(6) {
		t := terms{amount: pick(r, uint64(1_000_000), 1_000_000, 2_000_000, 3_000_000), expires: 5 + r.Int64N(120), lenient: r.IntN(4) == 0, bound: r.IntN(3) == 0}
		if len(s.terms) > 0 && r.IntN(6) == 0 {
			t.amount = s.terms[0].transfer // another's transfer amount
		}
		t.transfer = t.amount + 1 + uint64(r.IntN(60))
		for taken[t.transfer] {
			t.transfer++
		}
		taken[t.transfer] = true
		s.terms = append(s.terms, t)
	}
	at := int64(0)
	for range 4 + r.IntN(12) {
		b := storyBlock{at: at}
		for range r.IntN(4) {
			t := pick(r, s.terms...)
			move := storyTransfer{of: -1, amount: pick(r, t.amount, t.amount, t.transfer, t.transfer, 1_000_000, 2_000_000, t.amount-30_000)}
			if r.IntN(4) == 0 {
				move = storyTransfer{of: r.IntN(len(s.terms)), amount: pick(r, uint64(400_000), 600_000, 1_000_000, 3_000)}
				if s.terms[move.of].bound { // nobody knew its id before
					move.of = -1
				}
			}
			if r.IntN(8) == 0 {
				move = storyTransfer{of: -1, amount: pick(r, uint64(400_000), 600_000, 1_400_000, 1_600_000)}
			}
			if r.IntN(4) == 0 {
				move = storyTransfer{of: -1, amount: pick(r, t.amount, t.transfer, 400_000, 1_000_000, 3_000), back: true}
			}
			b.transfers = append(b.transfers, move)
		}
		s.blocks = append(s.blocks, b)
		at += r.Int64N(15)
	}
	s.begin = r.IntN(len(s.blocks))
	return s
}

// reading is how a story is read.
type reading struct{ batches, late, rescans bool }

// outcome is what became of a story: of each transfer the number of its
// invoice and the method, of each invoice its state and what it got.
type outcome struct {
	Transfers []string
	Invoices  []string
}

// read has a world read the story.
func (s story) read(w *world, r *rand.Rand, how reading) outcome {
	w.random = narrow{r, 2, 200} // far above the suffixes of the story
	if how.late {
		w.chainKey += "-late"
	}
	w.Service = w.service()
	invoices := s.insert(w)
	all := s.chain(w, invoices)
	next := 0
	if how.late {
		w.blocks = append(w.blocks, all[:s.begin+1]...)
		w.must(w.Start(w.t.Context(), w.chainKey, all[s.begin].Header, 101))
		next = s.begin + 1
	}
	for next < len(all) || w.gap() != nil {
		switch n := r.IntN(6); {
		case next < len(all) && n < 3:
			size := 1
			if how.batches {
				size += r.IntN(4)
			}
			part := all[next:min(next+size, len(all))]
			w.must(w.Observe(w.t.Context(), w.chainKey, part))
			w.blocks, next = append(w.blocks, part...), next+len(part)
		case n == 3:
			w.confirmSome(r)
		case n == 4 && how.rescans && next < len(all) && len(w.blocks) > 1:
			_, err := w.Rescan(w.t.Context(), w.chainKey, 101+uint64(r.IntN(len(w.blocks)-1)))
			w.must(err)
		case n == 5 && how.batches:
			w.Service = w.service()
		default:
			if next == len(all) {
				w.final()
			}
			w.fillSome(r)
		}
	}
	w.final()
	end := w.next(w.head().Time + 1000)
	w.observe(end)
	w.final()
	return s.outcome(w, invoices, all)
}

// confirmSome confirms some of what is read.
func (w *world) confirmSome(r *rand.Rand) {
	cur, err := w.Cursor(w.t.Context(), w.chainKey)
	w.must(err)
	if b := w.blocks[r.IntN(len(w.blocks))]; b.Number > cur.Confirmed.Number {
		w.must(w.Confirm(w.t.Context(), w.chainKey, b.Header))
	}
}

// fillSome reads some of the gap's blocks that are final.
func (w *world) fillSome(r *rand.Rand) {
	cur, err := w.Cursor(w.t.Context(), w.chainKey)
	w.must(err)
	if cur.Gap == nil || cur.Gap.Next > cur.Confirmed.Number {
		return
	}
	last := min(cur.Gap.Last, cur.Confirmed.Number)
	through := cur.Gap.Next + uint64(r.IntN(int(last-cur.Gap.Next)+1))
	var blocks []settle.Block
	for _, b := range w.blocks {
		if cur.Gap.Next <= b.Number && b.Number <= through {
			blocks = append(blocks, b)
		}
	}
	w.fill(cur.Gap.Next, blocks[len(blocks)-1].Header, blocks...)
}

// insert stores the story's invoices.
func (s story) insert(w *world) []invoice.Invoice {
	all := make([]invoice.Invoice, len(s.terms))
	for i, t := range s.terms {
		inv := w.insertable(uint64(i + 1))
		inv.FromBlock = 0
		if t.bound {
			inv.FromBlock = 101 + uint64(s.begin)
		}
		inv.Amount, inv.TransferAmount, inv.ExpiresAt = invoice.NewAmount(t.amount), invoice.NewAmount(t.transfer), start+t.expires
		if t.lenient {
			inv.Tolerance = invoice.NewAmount(50_000)
		}
		all[i] = inv
	}
	w.insert(all)
	return all
}

// chain makes the story's blocks.
func (s story) chain(w *world, invoices []invoice.Invoice) []settle.Block {
	var all []settle.Block
	for _, b := range s.blocks {
		var transfers []invoice.Transfer
		for _, t := range b.transfers {
			move := w.pay(invoice.NewAmount(t.amount))
			if t.back {
				move.From, move.To = move.To, move.From
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

func (s story) outcome(w *world, invoices []invoice.Invoice, all []settle.Block) outcome {
	var out outcome
	number := map[string]int{"": -1}
	for i, inv := range invoices {
		number[inv.ID] = i
		got := w.invoice(inv.ID)
		out.Invoices = append(out.Invoices, fmt.Sprintf("%d over %s, told %s, until %d, from %d: %s %q with %s, refunded %s", i, inv.Amount,
			inv.TransferAmount, inv.ExpiresAt-start, inv.FromBlock, got.Status, got.Exception, got.AmountPaid, got.AmountRefunded))
	}
	paid := make(map[string]string)
	for _, b := range all {
		for _, t := range b.Transfers {
			if t.From == w.address {
				out.Transfers = append(out.Transfers, w.paysBack(t, paid))
				continue
			}
			p := w.payment(t)
			paid[p.ID] = fmt.Sprint(p.Amount, " in block ", b.Number)
			named := !t.Evidence.Calldata.IsZero()
			out.Transfers = append(out.Transfers, fmt.Sprintf("%s in block %d at %d, named %t: %d by %q, %s", t.Amount, b.Number, b.Time-start,
				named, number[p.InvoiceID], p.Method, p.Status))
		}
	}
	return out
}

// paysBack says which of the payments a transfer pays back, if it is a refund.
func (w *world) paysBack(t invoice.Transfer, payments map[string]string) string {
	w.t.Helper()
	refunds, err := w.db.store.RefundsByID(w.t.Context(), []string{invoice.TransferID(invoice.PrefixRefund, t.ChainKey, t.TxHash, t.Ordinal)})
	w.must(err)
	if len(refunds) == 0 {
		return fmt.Sprintf("%s sent in block %d pays back nothing", t.Amount, t.BlockNumber)
	}
	r := refunds[0]
	return fmt.Sprintf("%s sent in block %d pays back %s, %s", t.Amount, t.BlockNumber, payments[r.PaymentID], r.Status)
}
