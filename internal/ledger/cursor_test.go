package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestStartAndCursor(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		if cur, err := w.Cursor(t.Context(), "unregistered"); err != nil || cur != (ledger.Progress{}) {
			t.Errorf("the cursor of a chain that was never read is %+v, %v", cur, err)
		}
		if err := w.Observe(t.Context(), "unregistered", []ledger.Block{w.next(start + 1)}); err == nil {
			t.Error("a chain that was never started is read")
		}
		if err := w.Start(t.Context(), w.chainKey, w.next(start+1).Header, 0); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("a second start gives %v, want ErrCursorMoved", err)
		}
		genesis := w.head()
		genesis.Parent = invoice.Hash{}
		want := ledger.Progress{Started: true, Indexed: genesis, Confirmed: genesis}
		if cur, err := w.Cursor(t.Context(), w.chainKey); err != nil || cur != want {
			t.Errorf("the cursor after the start is %+v, %v, want %+v", cur, err, want)
		}
		line := w.mine(start + 1)
		w.final()
		head := w.mine(start + 2)
		line.Parent, head.Parent = invoice.Hash{}, invoice.Hash{}
		want = ledger.Progress{Started: true, Indexed: head, Confirmed: line}
		if cur, err := w.Cursor(t.Context(), w.chainKey); err != nil || cur != want {
			t.Errorf("the cursor is %+v, %v, want %+v", cur, err, want)
		}
	})
}

func TestObserveRequiresConsecutiveBlocks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.mine(start + 1)
		good := w.next(start+10, w.pay(inv.Amount))
		for name, by := range map[string]func(*ledger.Block){
			"another parent":  func(b *ledger.Block) { b.Parent = w.hash("other") },
			"the same height": func(b *ledger.Block) { b.Number-- },
			"a lower height":  func(b *ledger.Block) { b.Number = 1 },
			// Another replica may have rolled back, so the blocks in between are unread.
			"a gap above the cursor": func(b *ledger.Block) { b.Number++ },
		} {
			bad := good
			by(&bad)
			expect.Error(t, ledger.ErrCursorMoved, "%s", name)(w.Observe(t.Context(), w.chainKey, []ledger.Block{bad}))
		}
		broken := w.next(start + 20)
		broken.Number, broken.Parent = good.Number+1, w.hash("other")
		if err := w.Observe(t.Context(), w.chainKey, []ledger.Block{good, broken}); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("a break within: %v, want ErrCursorMoved", err)
		}
		w.must(w.Observe(t.Context(), w.chainKey, nil))
		expect.Len(t, w.eventTypes(inv), 1, "what was refused has been announced:")
		w.observe(good)
		if err := w.Observe(t.Context(), w.chainKey, []ledger.Block{good}); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("the same block again: %v, want ErrCursorMoved", err)
		}
		near := w.next(start + 25)
		far := w.next(start+30, w.pay(inv.TransferAmount))
		far.Number, far.Parent = far.Number+50, w.hash("left out")
		far.Transfers[0].BlockNumber = far.Number
		back := far
		back.Time = invoice.Unix(start)
		if err := w.Observe(t.Context(), w.chainKey, []ledger.Block{near, back}); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("a gap back through time: %v, want ErrCursorMoved", err)
		}
		// Blocks without transfers may be omitted, except for the first.
		w.must(w.Observe(t.Context(), w.chainKey, []ledger.Block{near, far}))
		w.blocks = append(w.blocks, near, far)
		between := invoice.Header{Number: near.Number + 10, Hash: w.hash("between"), Parent: w.hash("x"), Time: invoice.Unix(start + 26)}
		if err := w.Confirm(t.Context(), w.chainKey, between); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("a line between two blocks that were read: %v, want ErrCursorMoved", err)
		}
		w.final()
		if got := w.invoice(inv.ID); got.Status != invoice.Paid || got.Exception != invoice.Duplicate {
			t.Errorf("the invoice is %s, %q", got.Status, got.Exception)
		}
	})
}

func TestRollbackAndConfirmErrors(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.mine(start + 1)
		line := w.mine(start+2, w.pay(inv.Amount))
		w.final()
		third := w.mine(start+3, w.pay(inv.TransferAmount))
		head := w.mine(start + 4)
		other := func(h invoice.Header) invoice.Header { h.Hash = w.hash("other"); return h }
		for name, test := range map[string]struct {
			to   invoice.Header
			want error
		}{
			"below the line":            {w.blocks[1].Header, ledger.ErrFinalityViolated},
			"another block at the line": {other(line), ledger.ErrFinalityViolated},
			"a block that was not read": {other(third), ledger.ErrCursorMoved},
			"the head":                  {head, ledger.ErrCursorMoved},
			"above the head":            {w.next(start + 9).Header, ledger.ErrCursorMoved},
		} {
			expect.Error(t, test.want, "roll back to %s", name)(w.Rollback(t.Context(), w.chainKey, test.to))
		}
		for name, h := range map[string]invoice.Header{"another block": other(third), "above the head": w.next(start + 9).Header, "another head": other(head)} {
			expect.Error(t, ledger.ErrCursorMoved, "confirm %s", name)(w.Confirm(t.Context(), w.chainKey, h))
		}
		if got := w.invoice(inv.ID); got.Status != invoice.Paid || got.Exception != "" {
			t.Errorf("after what was refused the invoice is %s, %q", got.Status, got.Exception)
		}
		w.reorg(2) // to the finalized block itself
		if got := w.invoice(inv.ID); got.Status != invoice.Paid {
			t.Errorf("after a reorg above the line the invoice is %s", got.Status)
		}
	})
}

func TestHaltedChainErrors(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		w.mine(start+1, w.pay(inv.Amount))
		before, err := w.Cursor(t.Context(), w.chainKey)
		w.must(err)
		w.must(w.Halt(t.Context(), w.chainKey, "block 7 is gone"))
		for name, err := range map[string]error{
			"observe":  w.Observe(t.Context(), w.chainKey, []ledger.Block{w.next(start + 2)}),
			"rollback": w.Rollback(t.Context(), w.chainKey, w.blocks[0].Header),
			"confirm":  w.Confirm(t.Context(), w.chainKey, w.head()),
			"expire":   w.Confirm(t.Context(), w.chainKey, w.blocks[0].Header),
		} {
			expect.Error(t, ledger.ErrHalted, "%s", name)(err)
		}
		before.Halted = "block 7 is gone"
		if after, err := w.Cursor(t.Context(), w.chainKey); err != nil || after != before {
			t.Errorf("the cursor is %+v, %v, want %+v", after, err, before)
		}
		if got := w.invoice(inv.ID); got.Status != invoice.Open {
			t.Errorf("the invoice is %s", got.Status)
		}
		w.create() // creates do not wait
	})
}

func TestHeaders(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		var batch []ledger.Block
		for i := range 300 {
			b := w.next(start + int64(i))
			w.blocks = append(w.blocks, b)
			batch = append(batch, b)
		}
		w.must(w.Observe(t.Context(), w.chainKey, batch))
		line := w.blocks[290].Header // number 390
		w.must(w.Confirm(t.Context(), w.chainKey, line))
		got, err := w.Headers(t.Context(), w.chainKey, 0, 1_000_000)
		w.must(err)
		var want []invoice.Header
		for _, b := range w.blocks {
			if b.Number >= line.Number-256 {
				want = append(want, b.Header)
			}
		}
		expect.NoDiff(t, cmp.Diff(want, got), "headers kept")
		got, err = w.Headers(t.Context(), w.chainKey, 380, 382)
		w.must(err)
		if len(got) != 3 || got[0].Number != 380 || got[2].Number != 382 {
			t.Errorf("headers 380 to 382: %+v", got)
		}
	})
}

// TestReadAgainWithAnotherTime reads a block, and its payment, again with the same hash and another time.
func TestReadAgainWithAnotherTime(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.pay(inv.Amount)
		wrong := w.next(start+9999, p)
		w.observe(wrong)
		w.reorg(1)
		right := wrong
		right.Time = invoice.Unix(start + 1)
		right.Transfers = slices.Clone(wrong.Transfers)
		right.Transfers[0].BlockTime = right.Time
		w.observe(right)
		if kept, err := w.Headers(t.Context(), w.chainKey, right.Number, right.Number); err != nil || len(kept) != 1 || kept[0] != right.Header {
			t.Errorf("kept are %+v, %v; want %+v", kept, err, right.Header)
		}
		if err := w.Confirm(t.Context(), w.chainKey, wrong.Header); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("with the other time: %v", err)
		}
		w.final()
		if got := w.invoice(inv.ID); got.Status != invoice.Paid || got.Exception != "" {
			t.Errorf("the invoice is %s, %q", got.Status, got.Exception)
		}
	})
}

func TestPendingAndWatched(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		stranger := invoice.Address{0xee}
		among := []invoice.Address{stranger, w.address, payer}
		for i := range 1200 { // more than one statement loads
			among = append(among, invoice.Address{0xdd, byte(i >> 8), byte(i)})
		}
		watched, err := w.Watched(t.Context(), w.chainKey, among)
		if err != nil || len(watched) != 1 || !watched[w.address] {
			t.Errorf("watched %v, %v, want the merchant's address alone", watched, err)
		}
		if watched, err = w.Watched(t.Context(), "unregistered", among); err != nil || len(watched) != 0 {
			t.Errorf("watched on another chain: %v, %v", watched, err)
		}
		paid, unknown := w.pay(inv.Amount), w.pay(invoice.NewAmount(3))
		elsewhere := w.pay(inv.Amount)
		elsewhere.To = stranger
		w.mine(start+1, paid, elsewhere)
		w.mine(start+2, w.back(inv.Amount), unknown)
		for through, want := range map[uint64]int{100: 0, 101: 1, 102: 3, 999: 3} {
			if got, _, err := w.Pending(t.Context(), w.chainKey, through); err != nil || len(got) != want {
				t.Errorf("pending through %d: %d, %v, want %d", through, len(got), err, want)
			}
		}
		// A transfer without a matching invoice is stored without an invoice and without an event.
		if p := w.payment(unknown); p.Attributed() || p.MerchantID != "" || p.Method != "" || p.Status != invoice.Pending {
			t.Errorf("the unknown transfer is %+v", p)
		}
		if _, err := ledger.NewReader(w.db.store).Payment(t.Context(), invoice.TransferID(invoice.PrefixPayment, w.chainKey, elsewhere.TxHash, 0)); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("a stranger's payment: %v, want ErrNotFound", err)
		}
		w.final()
		if got, _, err := w.Pending(t.Context(), w.chainKey, 999); err != nil || len(got) != 0 {
			t.Errorf("pending after all is final: %d, %v", len(got), err)
		}
	})
}

// TestOrphaned rolls blocks back and reads them again, with and without a payment.
func TestOrphaned(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		p := w.pay(inv.Amount)
		b := w.next(start+1, p)
		want := func(when string, through uint64, count int) {
			t.Helper()
			if got, err := w.Orphaned(t.Context(), w.chainKey, through); err != nil || len(got) != count || count > 0 && got[0] != b.Transfers[0] {
				t.Errorf("%s: orphaned through %d are %+v, %v; want %d", when, through, got, err, count)
			}
		}
		w.observe(b)
		want("read", 999, 0)
		w.reorg(1)
		want("rolled back", 999, 1)
		want("rolled back", 100, 0)
		w.observeEmpty(b)
		want("read again without it", 101, 1)
		w.reorg(1)
		w.observe(b)
		want("read again", 999, 0)
		w.reorg(1)
		w.observeEmpty(b)
		w.final()
		want("final", 999, 0)
	})
}

// TestTwoReplicasReadTheSameChain observes the same blocks at two replicas at once. One
// gets ErrCursorMoved, and everything is stored once.
func TestTwoReplicasReadTheSameChain(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		other := w.service()
		for round := range 10 {
			inv := w.create(amount(uint64(5_000_000 + 10_000*round)))
			b := w.next(start+int64(round), w.pay(inv.Amount))
			errs := make([]error, 2)
			var wg sync.WaitGroup
			for i, s := range []*ledger.Service{w.Service, other} {
				wg.Go(func() {
					if errs[i] = s.Observe(t.Context(), w.chainKey, []ledger.Block{b}); errs[i] == nil {
						errs[i] = confirm(t.Context(), s, w.chainKey, b.Header)
					}
				})
			}
			wg.Wait()
			moved := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, ledger.ErrCursorMoved) })
			if moved < 0 || errs[1-moved] != nil {
				t.Fatalf("reading the same block at the same time gives %v", errs)
			}
			w.blocks = append(w.blocks, b)
			expect.Len(t, w.eventTypes(inv), 3, "events")
		}
	})
}

func TestIntentsFollowTheChain(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		check := func(what string, inv invoice.Invoice, want ...string) {
			t.Helper()
			expect.NoDiff(t, cmp.Diff(want, w.intents(inv)), "%s", what)
		}
		inv := w.create()
		opened := w.announce(inv, ledger.RegistryOpened)
		seen := fmt.Sprint(opened.Number)
		check("opened", inv, "open due "+seen)
		w.reorg(1)
		check("left by a reorg", inv, "open due 0")
		w.announce(inv, ledger.RegistryOpened)
		w.mine(w.head().Time.Unix() + 1)
		// The event Paid implies that the commitment was opened. Rolling it back must not
		// remove the block of the event Opened.
		w.announce(inv, ledger.RegistryPaid)
		check("paid", inv, "open due "+seen)
		w.reorg(1)
		check("paid left by a reorg", inv, "open due "+seen)
		w.final()
		check("final", inv, "open done "+seen)
		w.announce(inv, ledger.RegistryOpened)
		check("opened again", inv, "open done "+seen)

		w.mine(start + 3601)
		w.final()
		check("expired", inv, "open done "+seen, "close due 0")
		closed := w.announce(inv, ledger.RegistryClosed)
		check("closed", inv, "open done "+seen, fmt.Sprint("close due ", closed.Number))
		w.mine(w.head().Time.Unix() + 1)
		w.reorg(2)
		check("closing left by a reorg", inv, "open done "+seen, "close due 0")
		closed = w.announce(inv, ledger.RegistryClosed)
		w.final()
		check("closed for good", inv, "open done "+seen, fmt.Sprint("close done ", closed.Number))

		// A commitment that was closed first need not be opened.
		w.seconds.Store(w.head().Time.Unix())
		late := w.create()
		closed = w.announce(late, ledger.RegistryClosed)
		w.final()
		check("closed without being opened", late, fmt.Sprint("open done ", closed.Number))
	})
}

// TestReadThrough finds the block up to which no transfer is missing.
func TestReadThrough(t *testing.T) {
	t.Parallel()
	final, unread := invoice.Header{Number: 9, Hash: invoice.Hash{9}}, uint64(3)
	for name, test := range map[string]struct {
		cursor ledger.Cursor
		want   invoice.Header
	}{
		"nothing is read":       {ledger.Cursor{}, invoice.Header{}},
		"all is read":           {ledger.Cursor{Confirmed: final}, final},
		"a gap":                 {ledger.Cursor{Confirmed: final, Gap: &ledger.Gap{Next: 4, Last: 12}}, invoice.Header{Number: 3}},
		"a gap of newer blocks": {ledger.Cursor{Confirmed: final, Gap: &ledger.Gap{Next: 11, Last: 12}}, final},
		"a gap of all blocks":   {ledger.Cursor{Confirmed: final, Gap: &ledger.Gap{Last: 12}}, invoice.Header{}},
		"payments wait":         {ledger.Cursor{Confirmed: final, Unread: &unread}, invoice.Header{}},
		"an unread transaction": {ledger.Cursor{Confirmed: final, UnreadTx: 3}, invoice.Header{}},
	} {
		expect.Equal(t, test.cursor.ReadThrough(), test.want, "%s:", name)
	}
}
