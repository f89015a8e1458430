package ledger_test

import (
	"errors"
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
