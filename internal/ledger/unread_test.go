package ledger_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// due returns the unread transactions that are to be read now.
func (w *world) dueUnread() []ledger.UnreadTransaction {
	w.t.Helper()
	due, err := w.DueUnread(w.t.Context(), w.chainKey, 10, true)
	w.must(err)
	return due
}

// TestSupplement finds a payment after its block was read. Near the head it becomes pending. In a final
// block it is confirmed immediately and pays its invoice. Until then the invoice does not expire.
func TestSupplement(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for _, final := range []bool{false, true} {
			w := d.world(t)
			inv, other := w.create(), w.create()
			paid := w.pay(inv.TransferAmount)
			b := w.observeEmpty(w.next(start+1, paid))
			w.signals()
			w.must(w.ReportUnread(t.Context(), w.chainKey, paid.TxHash, b.Number, ledger.UnreadLookup))
			w.must(w.ReportUnread(t.Context(), w.chainKey, paid.TxHash, b.Number, ledger.UnreadReceipt)) // is known
			expect.List(t, w.signals(), []string{"look " + w.chainKey}, "signals are")
			if due := w.dueUnread(); len(due) != 1 || due[0].TxHash != paid.TxHash || due[0].Block != b.Number || due[0].Reason != ledger.UnreadLookup {
				t.Errorf("due are %+v", due)
			}
			if final {
				w.advance(inv.ExpiresAt.Unix() + 100)
				if got := w.invoice(inv.ID).Status; got != invoice.Open {
					t.Fatalf("while its payment is unread, the invoice is %s", got)
				}
			}
			_, before, err := w.Pending(t.Context(), w.chainKey, w.head().Number)
			w.must(err)
			w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}, paid.TxHash))
			want := map[bool]invoice.PaymentStatus{false: invoice.Pending, true: invoice.Confirmed}[final]
			if p := w.payment(paid); p.Status != want || p.InvoiceID != inv.ID {
				t.Errorf("final %t: the payment is %s of %q", final, p.Status, p.InvoiceID)
			}
			expect.Len(t, w.dueUnread(), 0, "final %t: due are", final)
			if got := w.invoice(other.ID).Status; final && got != invoice.Expired {
				t.Errorf("once the payment is read, another invoice that waited for it is %s", got)
			}
			if !final {
				if _, err := w.Service.Confirm(t.Context(), w.chainKey, w.head(), before, 0); !errors.Is(err, ledger.ErrCursorMoved) {
					t.Errorf("a confirmation of what was verified before: %v", err)
				}
				w.final()
			}
			expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "final %t: the invoice is", final)
			w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{})) // again
		}
	})
}

// TestRefundOfAnUnreadPayment sends a payment back before its transaction can be read: one that is reported later, and one
// that a reorg moves to a block from which it cannot be read.
func TestRefundOfAnUnreadPayment(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, moved := range []bool{false, true} {
			w := w.db.world(t)
			inv := w.create()
			paid := w.pay(inv.TransferAmount)
			if moved {
				w.mine(start+1, paid)
				w.reorg(1)
			}
			b := w.next(start+2, paid)
			without := b
			without.Transfers = nil
			if moved {
				without.Unread = []ledger.UnreadTransaction{{TxHash: paid.TxHash, Block: b.Number, Reason: ledger.UnreadUnreadable}}
			}
			w.observe(without)
			if !moved {
				w.must(w.ReportUnread(t.Context(), w.chainKey, paid.TxHash, b.Number, ledger.UnreadReceipt))
			}
			w.mine(start+3, w.back(inv.TransferAmount))
			above := w.blocks[len(w.blocks)-1]
			w.mine(start + 4)
			w.final()
			w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}, paid.TxHash))
			w.fill(b.Number+1, w.head(), above)
			expect.Equal(t, w.refunds()[inv.ID], 1, "moved %t: refunds were announced:", moved)
			if got := w.invoice(inv.ID).AmountRefunded; got != inv.TransferAmount {
				t.Errorf("moved %t: of the invoice %s are refunded, want %s", moved, got, inv.TransferAmount)
			}
		}
	})
}

// TestRefundAboveAGap finds a payment in a gap, and its refund above.
func TestRefundAboveAGap(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		paid := w.pay(inv.TransferAmount)
		b := w.observeEmpty(w.next(start+1, paid))
		gap := w.rescan()
		w.mine(start+2, w.back(inv.TransferAmount))
		above := w.blocks[len(w.blocks)-1]
		w.final()
		w.fill(gap.Next, b.Header, b)
		w.fill(b.Number+1, above.Header, above)
		expect.Equal(t, w.invoice(inv.ID).AmountRefunded, inv.TransferAmount, "refunded of the invoice:")
		cur, err := w.Cursor(t.Context(), w.chainKey)
		if w.must(err); cur.Gap != nil {
			t.Errorf("the gap is %+v, want none", cur.Gap)
		}
	})
}

// TestFilledTransactionsAreRead fills a gap with a block. A transaction of it could not be read before.
func TestFilledTransactionsAreRead(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		paid := w.pay(inv.TransferAmount)
		b := w.next(start+1, paid)
		without := b
		without.Transfers, without.Unread = nil, []ledger.UnreadTransaction{{TxHash: paid.TxHash, Block: b.Number, Reason: ledger.UnreadUnreadable}}
		w.observe(without)
		w.rescan()
		w.final()
		empty := b
		empty.Transfers = nil
		w.fill(101, b.Header, empty) // by a node that omits the log
		if counts, err := w.CountUnread(t.Context(), w.chainKey); err != nil || ledger.TotalUnread(counts) != 1 {
			t.Errorf("while no transfer of it is read, unread are %v, %v", counts, err)
		}
		w.rescan()
		w.fill(101, b.Header, b)
		if counts, err := w.CountUnread(t.Context(), w.chainKey); err != nil || ledger.TotalUnread(counts) != 0 {
			t.Errorf("unread are %v, %v", counts, err)
		}
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "the invoice is")
	})
}

// TestLookupReadsNothingAgain looks up a payment. Anybody can, so the blocks above are not read again, and other invoices
// expire as before.
func TestLookupReadsNothingAgain(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		paid := w.pay(inv.TransferAmount)
		b := w.observeEmpty(w.next(start+1, paid))
		w.mine(start + 2)
		w.final()
		w.must(w.ReportUnread(t.Context(), w.chainKey, paid.TxHash, b.Number, ledger.UnreadLookup))
		w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}, paid.TxHash))
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "the invoice is")
		if cur, err := w.Cursor(t.Context(), w.chainKey); err != nil || cur.Gap != nil {
			t.Errorf("the gap is %+v, %v", cur.Gap, err)
		}
	})
}

// TestUnknownTransferKeepsNoGapOpen fills a gap with transfers that pay no invoice. Anybody can send them before an invoice
// names their address, so the gap does not grow for them.
func TestUnknownTransferKeepsNoGapOpen(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create()
		b := w.observeEmpty(w.next(start+1, w.pay(invoice.NewAmount(7))))
		gap := w.rescan()
		w.mine(start + 2)
		w.final()
		w.fill(gap.Next, b.Header, b)
		if cur, err := w.Cursor(t.Context(), w.chainKey); err != nil || cur.Gap != nil {
			t.Errorf("the gap is %+v, %v", cur.Gap, err)
		}
	})
}

// TestFillWithUnread closes a gap with blocks that have an unread transaction.
func TestFillWithUnread(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		paid := w.pay(inv.TransferAmount)
		b := w.observeEmpty(w.next(start+1, paid))
		gap := w.rescan()
		w.advance(inv.ExpiresAt.Unix() + 100)
		without := b
		without.Transfers, without.Unread = nil, []ledger.UnreadTransaction{{TxHash: paid.TxHash, Block: b.Number, Reason: ledger.UnreadUnreadable}}
		w.fill(gap.Next, b.Header, without)
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Open, "while its payment is unread, the invoice is")
		w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}, paid.TxHash))
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "once its payment is read, the invoice is")
	})
}

// TestSupplementOfOtherBlocks names blocks that differ from the read ones.
func TestSupplementOfOtherBlocks(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		b := w.next(start + 1)
		if err := w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("a block that was not read: %v", err)
		}
		w.observe(b)
		other := b
		other.Hash = w.hash("other")
		if err := w.Supplement(t.Context(), w.chainKey, other, invoice.Header{}); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("another block: %v", err)
		}
		w.final()
		if err := w.Supplement(t.Context(), w.chainKey, other, invoice.Header{}); !errors.Is(err, ledger.ErrFinalityViolated) {
			t.Errorf("another final block: %v", err)
		}
		w.rescan()
		if err := w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("a block that is read again: %v", err)
		}
	})
}

// TestSupplementBetween finds a payment in a block that was read between others, so that its header is
// not kept. The payment is recorded if a block above is named that was read.
func TestSupplementBetween(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d *database) {
		for _, replaced := range []bool{false, true} {
			w := d.world(t)
			inv := w.create()
			paid := w.pay(inv.TransferAmount)
			var read []ledger.Block
			for i, transfers := range [][]invoice.Transfer{nil, {paid}, nil} {
				b := w.next(start+1+int64(i), transfers...)
				read, w.blocks = append(read, b), append(w.blocks, b)
			}
			first, middle, last := read[0], read[1], read[2]
			w.must(w.Observe(t.Context(), w.chainKey, []ledger.Block{first, last}))
			other := last.Header
			other.Hash = w.hash("other")
			beyond := last.Header
			beyond.Number++
			for _, above := range []invoice.Header{{}, first.Header, middle.Header, other, beyond} {
				if err := w.Supplement(t.Context(), w.chainKey, middle, above); !errors.Is(err, ledger.ErrCursorMoved) {
					t.Errorf("above is block %d: %v", above.Number, err)
				}
			}
			w.must(w.Supplement(t.Context(), w.chainKey, middle, last.Header, paid.TxHash))
			if p := w.payment(paid); p.Status != invoice.Pending || p.InvoiceID != inv.ID {
				t.Errorf("the payment is %s of %q", p.Status, p.InvoiceID)
			}
			kept, err := w.Headers(t.Context(), w.chainKey, middle.Number, middle.Number)
			w.must(err)
			if len(kept) != 1 || kept[0].Hash != middle.Hash {
				t.Errorf("kept are %+v", kept)
			}
			if replaced {
				w.must(w.Rollback(t.Context(), w.chainKey, first.Header))
				if p := w.payment(paid); p.Status != invoice.Orphaned {
					t.Errorf("after a reorg the payment is %s", p.Status)
				}
				continue
			}
			w.final()
			expect.Equal(t, w.invoice(inv.ID).Status, invoice.Paid, "the invoice is")
		}
	})
}

// TestReportUnreadBounds reports transactions of blocks that are still to be read, and more than the limit.
func TestReportUnreadBounds(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.must(w.ReportUnread(t.Context(), "unregistered", w.hash("tx"), 1, ledger.UnreadLookup))
		w.must(w.ReportUnread(t.Context(), w.chainKey, w.hash("tx"), w.head().Number+1, ledger.UnreadLookup))
		expect.Len(t, w.dueUnread(), 0, "due are")
		named := make([]ledger.UnreadTransaction, ledger.MaxUnread-1)
		for i := range named {
			named[i] = ledger.UnreadTransaction{TxHash: w.hash("tx", i), Reason: ledger.UnreadNode}
		}
		b := w.next(start + 1)
		b.Unread = named
		w.observe(b)
		for i := range 3 {
			w.must(w.ReportUnread(t.Context(), w.chainKey, w.hash("more", i), 100, ledger.UnreadLookup))
		}
		counts, err := w.CountUnread(t.Context(), w.chainKey)
		w.must(err)
		if counts[ledger.UnreadLookup] != 1 || counts[ledger.UnreadNode] != ledger.MaxUnread-1 {
			t.Errorf("counts are %v", counts)
		}
	})
}

// TestLookupOfASweep looks up a transaction that is recorded as a sweep. Its block is not read again for that.
func TestLookupOfASweep(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create(deposited)
		sweep := w.sweep(inv, 7)
		b := w.next(start+1, w.deposit(inv, 7), sweep)
		w.observe(b)
		for reason, want := range map[ledger.UnreadReason]int{ledger.UnreadLookup: 0, ledger.UnreadReceipt: 1} {
			w.must(w.ReportUnread(t.Context(), w.chainKey, sweep.TxHash, b.Number, reason))
			if counts, err := w.CountUnread(t.Context(), w.chainKey); err != nil || counts[reason] != want {
				t.Errorf("%s: unread are %v, %v; want %d", reason, counts, err, want)
			}
			w.reorg(1)
			w.observe(b)
		}
	})
}

// TestUnreadNamedLater has a block name transactions that are known to be unread already, in another block. They are unreadable
// then, so that they are not forgotten while no node has their receipts.
func TestUnreadNamedLater(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.mine(start + 1)
		b := w.next(start + 2)
		for i, reason := range ledger.UnreadReasons[:3] {
			w.must(w.ReportUnread(t.Context(), w.chainKey, w.hash("tx", i), 101, reason))
			b.Unread = append(b.Unread, ledger.UnreadTransaction{TxHash: w.hash("tx", i), Block: b.Number, Reason: ledger.UnreadUnreadable, Detail: "no receipt"})
		}
		w.observe(b)
		all, err := w.UnreadTransactions(t.Context(), w.chainKey)
		w.must(err)
		expect.Equal(t, len(all), 3, "unread are")
		for _, u := range all {
			if u.Reason != ledger.UnreadUnreadable || u.Block != b.Number || u.Detail != "no receipt" {
				t.Errorf("unread is %+v", u)
			}
		}
	})
}

// TestReorgDropsUnread drops the block of unread transactions. The ones that the block named are forgotten, so that
// invoices expire; ones that became known otherwise, and one that was dismissed, stay.
func TestReorgDropsUnread(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		b := w.next(start + 1)
		for i, reason := range ledger.UnreadReasons {
			b.Unread = append(b.Unread, ledger.UnreadTransaction{TxHash: w.hash("tx", i), Block: b.Number, Reason: reason})
		}
		b.Unread = append(b.Unread, ledger.UnreadTransaction{TxHash: w.hash("dismissed"), Block: b.Number, Reason: ledger.UnreadUnreadable})
		w.observe(b)
		w.must(w.DismissUnread(t.Context(), w.chainKey, w.hash("dismissed")))
		w.reorg(1)
		left, err := w.UnreadTransactions(t.Context(), w.chainKey)
		w.must(err)
		if _, err := ledger.FindUnreadTransaction(t.Context(), w.db.store, w.chainKey, w.hash("dismissed")); err != nil || len(left) != 3 {
			t.Errorf("left are %+v, and the dismissed one: %v", left, err)
		}
		for _, u := range left {
			if u.Reason.IsOfBlock() {
				t.Errorf("left is %+v", u)
			}
			w.must(w.ForgetUnread(t.Context(), w.chainKey, u.TxHash))
		}
		w.mine(start + 2)
		w.advance(inv.ExpiresAt.Unix() + 100)
		if got := w.invoice(inv.ID).Status; got != invoice.Expired {
			t.Errorf("the invoice is %s", got)
		}
	})
}

// TestSkippedTransactions reads blocks with transactions that no node returns. Up to a number of them,
// the chain is still read. Invoices that they could pay expire once a person dismisses them.
func TestSkippedTransactions(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		b := w.next(start + 1)
		long := ledger.UnreadTransaction{TxHash: w.hash("long"), Block: b.Number, Reason: ledger.UnreadOversized}
		w.observe(ledger.Block{Header: b.Header, Unread: []ledger.UnreadTransaction{long}}) // does not count
		b = w.next(start + 1)
		for i := range ledger.MaxUnreadable {
			w.must(w.CanSkipTransaction(t.Context(), w.chainKey, ledger.UnreadUnreadable))
			u := ledger.UnreadTransaction{TxHash: w.hash("tx", i), Block: b.Number, Reason: ledger.UnreadUnreadable, Detail: fmt.Sprint("failed ", i), Attempts: 1}
			w.observe(ledger.Block{Header: w.next(start + 1).Header, Unread: []ledger.UnreadTransaction{u}})
		}
		expect.Error(t, ledger.ErrTooManyUnreadable, "one more")(w.CanSkipTransaction(t.Context(), w.chainKey, ledger.UnreadUnreadable))
		w.advance(inv.ExpiresAt.Unix() + 100)
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Open, "the invoice is")
		u, err := ledger.FindUnreadTransaction(t.Context(), w.db.store, w.chainKey, w.hash("tx", 7))
		w.must(err)
		if u.Detail != "failed 7" || u.Attempts != 1 || u.NextAt.Sub(u.FoundAt) != ledger.FirstUnreadRetry {
			t.Errorf("stored is %+v", u)
		}
		for i := range ledger.MaxUnreadable {
			w.must(w.DismissUnread(t.Context(), w.chainKey, w.hash("tx", i)))
		}
		w.must(w.DismissUnread(t.Context(), w.chainKey, long.TxHash))
		w.advance(inv.ExpiresAt.Unix() + 200)
		expect.Equal(t, w.invoice(inv.ID).Status, invoice.Expired, "after the dismissal the invoice is")
		expect.Len(t, w.dueUnread(), 0, "due are")
		w.must(w.RetryUnread(t.Context(), w.chainKey, w.hash("tx", 7)))
		if due := w.dueUnread(); len(due) != 1 || !due[0].DismissedAt.IsZero() {
			t.Errorf("due are %+v", due)
		}
		for _, err := range []error{
			w.RetryUnread(t.Context(), w.chainKey, w.hash("unknown")), w.DismissUnread(t.Context(), w.chainKey, w.hash("unknown")),
		} {
			expect.Error(t, db.ErrNotFound, "an unknown transaction")(err)
		}
	})
}

// TestOversizedTransactions reads blocks with transactions that are too long, which anyone can make: a bounded number, which
// neither keeps others from being reported nor counts for the ones that no node returns, whatever a later attempt says.
func TestOversizedTransactions(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		b := w.next(start + 1)
		reported := ledger.UnreadTransaction{TxHash: w.hash("reported"), Block: b.Number, Reason: ledger.UnreadNode}
		w.observe(ledger.Block{Header: b.Header, Unread: []ledger.UnreadTransaction{reported}})
		b = w.next(start + 2)
		for i := range ledger.MaxOversized {
			b.Unread = append(b.Unread, ledger.UnreadTransaction{TxHash: w.hash("tx", i), Block: b.Number, Reason: ledger.UnreadOversized, Detail: "too long"})
		}
		w.must(w.CanSkipTransaction(t.Context(), w.chainKey, ledger.UnreadOversized))
		w.observe(b)
		expect.Error(t, ledger.ErrTooManyUnreadable, "one more")(w.CanSkipTransaction(t.Context(), w.chainKey, ledger.UnreadOversized))
		w.must(w.PostponeUnread(t.Context(), w.chainKey, b.Unread[0], "connection refused"))
		w.must(w.CanSkipTransaction(t.Context(), w.chainKey, ledger.UnreadUnreadable))
		w.must(w.ReportUnread(t.Context(), w.chainKey, w.hash("looked up"), b.Number, ledger.UnreadReceipt))
		w.seconds.Add(60)
		due, err := w.DueUnread(t.Context(), w.chainKey, 10, false)
		w.must(err)
		if len(due) != 2 || due[0].TxHash != reported.TxHash || due[1].Reason != ledger.UnreadReceipt {
			t.Errorf("due without oversized ones are %+v", due)
		}
		expect.Len(t, w.dueUnread(), 10, "due with oversized ones are")
		all, err := w.UnreadTransactions(t.Context(), w.chainKey)
		w.must(err)
		expect.Equal(t, len(all), ledger.MaxOversized+2, "listed are")
	})
}

// TestOversizedTakeTurns has 100 transactions stay too long, and one above them that is readable. One is read in a
// minute: the readable one is, within 101 minutes. One that a person asks for is the next.
func TestOversizedTakeTurns(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		b := w.next(start + 1)
		for i := range 100 {
			b.Unread = append(b.Unread, ledger.UnreadTransaction{TxHash: w.hash("tx", i), Block: b.Number, Reason: ledger.UnreadOversized})
		}
		w.observe(b)
		readable := ledger.UnreadTransaction{TxHash: w.hash("readable"), Block: b.Number + 1, Reason: ledger.UnreadOversized}
		w.observe(ledger.Block{Header: w.next(start + 2).Header, Unread: []ledger.UnreadTransaction{readable}})
		reads := func(minutes int) bool {
			t.Helper()
			for range minutes {
				w.seconds.Add(60)
				next := w.dueUnread()[0]
				w.must(w.PostponeUnread(t.Context(), w.chainKey, next, "too long"))
				if next.TxHash == readable.TxHash {
					return true
				}
			}
			return false
		}
		for _, round := range []string{"first", "second"} {
			expect.Equal(t, reads(101), true, "%s round: the readable one is read:", round)
		}
		reads(50)
		w.must(w.RetryUnread(t.Context(), w.chainKey, w.hash("tx", 7)))
		expect.Equal(t, w.dueUnread()[0].TxHash, w.hash("tx", 7), "after a retry, the next is")
	})
}

// TestUnreadRetries postpones a transaction again and again.
func TestUnreadRetries(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.must(w.ReportUnread(t.Context(), w.chainKey, w.hash("tx"), 100, ledger.UnreadLookup))
		var waits []time.Duration
		for range 10 {
			u := w.dueUnread()[0]
			w.must(w.PostponeUnread(t.Context(), w.chainKey, u, "no"))
			next, err := ledger.FindUnreadTransaction(t.Context(), w.db.store, w.chainKey, w.hash("tx"))
			w.must(err)
			waits = append(waits, next.NextAt.Sub(time.Unix(w.seconds.Load(), 0)))
			w.seconds.Store(next.NextAt.Unix())
		}
		if waits[0] != ledger.FirstUnreadRetry || waits[1] != 2*ledger.FirstUnreadRetry || waits[9] != ledger.LastUnreadRetry {
			t.Errorf("waits are %v", waits)
		}
	})
}

// TestUnlinkedNotices asks for notices of transfers that are not stored.
func TestUnlinkedNotices(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		inv := w.create()
		now := w.seconds.Load()
		w.mine(start+1, w.pay(inv.TransferAmount))
		elsewhere := w.notice("other chain", invoice.NewAmount(5))
		elsewhere.ChainKey = "unregistered"
		for _, n := range []invoice.Notice{w.notice("linked", inv.TransferAmount), elsewhere, w.notice("unlinked", invoice.NewAmount(5))} {
			n.Provider = w.merchant // notices of other tests have the same ids
			w.receive(n)
		}
		for _, test := range []struct {
			from, before int64
			want         int
		}{{now, now + 1, 1}, {now + 1, now + 2, 0}, {now - 1, now, 0}} {
			got, err := w.UnlinkedNotices(t.Context(), w.chainKey, at(test.from), at(test.before))
			w.must(err)
			if len(got) != test.want {
				t.Errorf("from %d before %d: %v, want %d", test.from-now, test.before-now, got, test.want)
			}
		}
	})
}
