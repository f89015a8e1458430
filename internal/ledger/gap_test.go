package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// gap returns the gap of the world's chain, or nil.
func (w *world) gap() *ledger.Gap {
	w.t.Helper()
	cur, err := w.Cursor(w.t.Context(), w.chainKey)
	w.must(err)
	return cur.Gap
}

func (w *world) checkGap(want *ledger.Gap) {
	w.t.Helper()
	expect.NoDiff(w.t, cmp.Diff(want, w.gap()), "gap")
}

// observeEmpty observes a block without its transfers.
func (w *world) observeEmpty(b ledger.Block) ledger.Block {
	w.t.Helper()
	empty := b
	empty.Transfers, empty.Registry = nil, nil
	w.observe(empty)
	return b
}

// rescan opens a gap from the world's first indexed block.
func (w *world) rescan() ledger.Gap {
	w.t.Helper()
	gap, err := w.Rescan(w.t.Context(), w.chainKey, 101)
	w.must(err)
	return gap
}

func (w *world) fill(next uint64, through invoice.Header, blocks ...ledger.Block) {
	w.t.Helper()
	w.must(w.Fill(w.t.Context(), w.chainKey, next, blocks, through))
}

func TestStartLeavesAGap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for _, test := range []struct {
			from uint64
			want *ledger.Gap
		}{
			{0, &ledger.Gap{Next: 0, Last: 100, LastTime: invoice.Unix(start)}},
			{100, &ledger.Gap{Next: 100, Last: 100, LastTime: invoice.Unix(start)}},
			{101, nil},
			{1 << 40, nil},
		} {
			w := d.world(t)
			w.chainKey += "-late"
			w.must(w.Start(t.Context(), w.chainKey, w.head(), test.from))
			w.checkGap(test.want)
		}
	})
}

func TestRescanWidensTheGap(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for i := range int64(9) { // up to block 109
			w.mine(start + i)
		}
		for _, step := range []struct {
			from uint64
			want ledger.Gap
		}{
			{109, ledger.Gap{Next: 109, Last: 109, LastTime: invoice.Unix(start + 8)}},
			{105, ledger.Gap{Next: 105, Last: 109, LastTime: invoice.Unix(start + 8)}},
			{107, ledger.Gap{Next: 105, Last: 109, LastTime: invoice.Unix(start + 8)}},
		} {
			if got, err := w.Rescan(t.Context(), w.chainKey, step.from); err != nil || got != step.want {
				t.Errorf("rescan from %d gives %+v, %v, want %+v", step.from, got, err, step.want)
			}
			w.checkGap(&step.want)
		}
		if _, err := w.Rescan(t.Context(), w.chainKey, 110); err == nil || !strings.Contains(err.Error(), "up to block 109") {
			t.Errorf("rescan above the newest block gives %v", err)
		}
		w.checkGap(&ledger.Gap{Next: 105, Last: 109, LastTime: invoice.Unix(start + 8)})
		w.reorg(2) // the gap's last block was replaced
		w.checkGap(&ledger.Gap{Next: 105, Last: 107, LastTime: invoice.Unix(start + 6)})
		w.mine(start + 20)
		w.rescan()
		w.checkGap(&ledger.Gap{Next: 101, Last: 108, LastTime: invoice.Unix(start + 20)})
		w.reorg(8) // all blocks of the gap were replaced
		w.checkGap(nil)
		for name, err := range map[string]error{
			"rescan": func() error { _, err := w.Rescan(t.Context(), "unread", 1); return err }(),
			"resume": w.Resume(t.Context(), "unread"), "halt": w.Halt(t.Context(), "unread", "broken"),
		} {
			expect.Error(t, ledger.ErrNotStarted, "%s of a chain that was never read", name)(err)
		}
	})
}

// TestFillFindsMissedTransfers observes blocks without their transfers, and fills these in twice.
// Found transfers are settled once.
func TestFillFindsMissedTransfers(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		missed, seen := w.create(), w.create(amount(7_000_000))
		paid := w.next(start+10, w.pay(missed.TransferAmount), w.pay(invoice.NewAmount(3)))
		paid.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryOpened, CommitmentID: missed.CommitmentID}}
		w.observeEmpty(paid)
		known := w.next(start+11, w.pay(seen.Amount))
		w.observe(known)
		back := w.observeEmpty(w.next(start+12, tagged(w.back(invoice.NewAmount(400_000)), invoice.Evidence{Calldata: missed.CommitmentID})))
		w.final()
		if got := w.invoice(missed.ID); got.Status != invoice.Open {
			t.Fatalf("a transfer in an unread block is %s", got.Status)
		}
		events := map[*invoice.Invoice][]string{
			&missed: {"invoice.created", "payment.received", "invoice.paid", "payment.refunded"},
			&seen:   {"invoice.created", "payment.received", "invoice.paid"},
		}
		for range 2 {
			w.rescan()
			w.signals()
			w.fill(101, paid.Header, paid)
			w.checkGap(&ledger.Gap{Next: 102, Last: 103, LastTime: invoice.Unix(start + 12)})
			w.fill(102, back.Header, known, back)
			w.checkGap(nil)
			for inv, want := range events {
				got := w.invoice(inv.ID)
				if got.Status != invoice.Paid || got.Exception != "" || got.SettledAt.Unix() != map[*invoice.Invoice]int64{&missed: start + 10, &seen: start + 11}[inv] {
					t.Errorf("%s is %s, %q, settled at %s", got.ID, got.Status, got.Exception, got.SettledAt)
				}
				expect.NoDiff(t, cmp.Diff(want, w.eventTypes(*inv)), "events of %s", inv.ID)
			}
			expect.Equal(t, w.invoice(missed.ID).AmountRefunded, invoice.NewAmount(400_000), "refunded:")
			expect.NoDiff(t, cmp.Diff([]string{"open done 101", "close due 0"}, w.intents(missed)), "intents")
			for _, p := range []invoice.Transfer{paid.Transfers[0], paid.Transfers[1], known.Transfers[0]} {
				if got := w.payment(p); got.Status != invoice.Confirmed || got.Position != p.Position {
					t.Errorf("the payment of %s is %s at %+v", p.Amount, got.Status, got.Position)
				}
			}
			if p := w.payment(paid.Transfers[1]); p.Attributed() {
				t.Errorf("3 units nobody asked for went to %s", p.InvoiceID)
			}
		}
		if slices.Contains(w.signals(), "deliveries") {
			t.Error("filling the gap a second time announced something")
		}
	})
}

// TestFillConfirmsOrphanedPayments finds an orphaned transaction in a final block.
func TestFillConfirmsOrphanedPayments(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.pay(inv.Amount)
		w.mine(start+10, p)
		w.reorg(1)
		b := w.observeEmpty(w.next(start+11, p))
		w.final()
		w.rescan()
		w.fill(101, b.Header, b)
		if got := w.payment(p); got.Status != invoice.Confirmed || got.BlockHash != b.Hash {
			t.Errorf("it is %s in %s, want confirmed in %s", got.Status, got.BlockHash, b.Hash)
		}
		expect.NoDiff(t, cmp.Diff([]string{"invoice.created", "payment.received", "invoice.paid"}, w.eventTypes(inv)), "events")
	})
}

func TestFillErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		first := w.observeEmpty(w.next(start+1, w.pay(inv.Amount)))
		line := w.observeEmpty(w.next(start + 2))
		w.final()
		head := w.mine(start + 3)
		fill := func(next uint64, through invoice.Header, blocks ...ledger.Block) error {
			return w.Fill(t.Context(), w.chainKey, next, blocks, through)
		}
		expect.Error(t, ledger.ErrCursorMoved, "without a gap")(fill(101, line.Header))
		want := w.rescan()
		other := line.Header
		other.Hash = w.hash("other")
		for name, test := range map[string]struct {
			err  error
			want error
		}{
			"another begin":         {fill(102, line.Header), ledger.ErrCursorMoved},
			"above the line":        {fill(101, head), ledger.ErrCursorMoved},
			"another block":         {fill(101, other), ledger.ErrFinalityViolated},
			"backwards":             {fill(101, w.blocks[0].Header), nil},
			"a block outside":       {fill(101, first.Header, line), nil},
			"a block twice":         {fill(101, line.Header, first, first), nil},
			"a block of the past":   {fill(101, line.Header, ledger.Block{Header: w.blocks[0].Header}), nil},
			"in descending order":   {fill(101, line.Header, line, first), nil},
			"a chain without a gap": {w.Fill(t.Context(), "unread", 1, nil, line.Header), nil},
		} {
			if test.err == nil || test.want != nil && !errors.Is(test.err, test.want) {
				t.Errorf("%s: %v, want %v", name, test.err, test.want)
			}
		}
		w.must(w.Halt(t.Context(), w.chainKey, "block 7 is gone"))
		expect.Error(t, ledger.ErrHalted, "while the chain is halted")(fill(101, line.Header, first))
		w.checkGap(&want)
		expect.Len(t, w.eventTypes(inv), 1, "what was refused was announced:")
		w.must(w.Resume(t.Context(), w.chainKey))
		w.must(fill(101, line.Header, first))
		if got := w.invoice(inv.ID); got.Status != invoice.Paid {
			t.Errorf("resumed, the invoice is %s", got.Status)
		}
		expect.Error(t, ledger.ErrCursorMoved, "the same again")(fill(101, line.Header, first))
	})
}

// TestGapDefersExpiry checks that an invoice does not expire while blocks that may pay it are unread,
// whatever the clock showed when it was created.
func TestGapDefersExpiry(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		old := w.create()
		unpaid := w.create(amount(2_000_000))
		paid := w.observeEmpty(w.next(start+10, w.pay(old.TransferAmount)))
		w.seconds.Store(start + 3000)
		atTheEdge := w.create(amount(3_000_000))
		end := w.mine(start + 20)
		w.rescan()
		w.seconds.Store(start)
		young := w.create(amount(4_000_000))
		w.mine(atTheEdge.ExpiresAt.Unix() + 1)
		w.final()
		status := func(inv invoice.Invoice, want invoice.Status) {
			t.Helper()
			if got := w.invoice(inv.ID); got.Status != want {
				t.Errorf("the invoice over %s is %s, want %s", inv.Amount, got.Status, want)
			}
		}
		for _, inv := range []invoice.Invoice{old, unpaid, atTheEdge} {
			status(inv, invoice.Open)
		}
		status(young, invoice.Expired)
		w.fill(101, paid.Header, paid)
		status(old, invoice.Paid)
		status(unpaid, invoice.Open)
		w.fill(102, end)
		status(unpaid, invoice.Open) // the payment that was found may have a refund above
		w.fill(103, w.head())
		status(unpaid, invoice.Expired)
		status(atTheEdge, invoice.Expired)
	})
}

// TestRemainderFoundAfterExpiry rescans and finds the bare remainder of an invoice that
// has expired. The payment belongs to the invoice.
func TestRemainderFoundAfterExpiry(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.mine(start+1, tagged(w.pay(invoice.NewAmount(400_000)), invoice.Evidence{Calldata: inv.CommitmentID}))
		rest := w.pay(inv.Amount.Minus(invoice.NewAmount(400_000)))
		missed := w.observeEmpty(w.next(start+2, rest))
		w.mine(inv.ExpiresAt.Unix() + 1)
		w.final()
		w.rescan()
		w.fill(101, w.head(), missed)
		if p := w.payment(rest); p.InvoiceID != inv.ID || p.Method != invoice.ByAmount {
			t.Errorf("the remainder belongs to %q by %q, want %s", p.InvoiceID, p.Method, inv.ID)
		}
	})
}

// TestRescanKeepsAttributions rescans and finds payments below others that were attributed by their bare amount, or not
// attributed. Those keep their attribution, also if the new blocks are below the first indexed one.
func TestRescanKeepsAttributions(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for name, begin := range map[string]func(w *world, missed ledger.Block){
			"left out": func(w *world, missed ledger.Block) { w.observeEmpty(missed) },
			"below the first block": func(w *world, missed ledger.Block) {
				w.blocks = append(w.blocks, missed)
				w.must(w.Start(t.Context(), w.chainKey, w.head(), w.head().Number+1))
			},
		} {
			for _, test := range []struct {
				other uint64 // amount of a second invoice
				given bool   // the payment above is attributed
			}{{1_000_000, false}, {2_000_000, true}} {
				w := d.world(t)
				if name != "left out" {
					w.late()
				}
				inv := w.create()
				w.create(amount(test.other))
				missed := w.next(start+1, w.pay(inv.TransferAmount))
				begin(w, missed)
				bare := w.pay(inv.Amount)
				w.mine(start+2, bare)
				w.final()
				was := w.payment(bare)
				if was.Attributed() != test.given {
					t.Fatalf("%s: the payment went to %q", name, was.InvoiceID)
				}
				w.rescan()
				w.fill(101, w.head(), missed)
				if p := w.payment(missed.Transfers[0]); p.InvoiceID != inv.ID || p.Status != invoice.Confirmed {
					t.Errorf("%s: what was missed is %s and went to %q", name, p.Status, p.InvoiceID)
				}
				if p := w.payment(bare); p != was {
					t.Errorf("%s: the payment above was %+v and is %+v", name, was, p)
				}
			}
		}
	})
}
