package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/expect"
)

// ended returns the copy of an invoice with a status.
func ended(t *testing.T, inv invoice.Invoice, status apitypes.InvoiceStatus) ledger.InvoiceCopy {
	t.Helper()
	c := copyOf(t, inv, 0, "")
	c.Invoice.Status = status
	return c
}

// readGap reads the gap, and the next block.
func (w *world) readGap() {
	w.t.Helper()
	if cur, err := w.Cursor(w.t.Context(), w.chainKey); err == nil && cur.Gap != nil {
		w.fill(cur.Gap.Next, w.head(), slices.DeleteFunc(slices.Clone(w.blocks), func(b ledger.Block) bool { return b.Number < cur.Gap.Next })...)
	}
	w.mine(w.head().Time.Unix() + 1)
	w.final()
}

// TestClosedInvoice closes the commitment of an open invoice that the service has not closed, like a writer in a past
// that the database has lost. A payment above that block does not pay it, and it becomes void; one below pays it.
func TestClosedInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.lose()
		void, paid, byHand := w.create(), w.create(amount(2_000_000)), w.create(amount(500_000))
		pays, stray := w.pay(paid.TransferAmount), w.pay(invoice.NewAmount(501_000))
		w.mine(start+1, pays, stray)
		b := w.next(start + 2)
		for _, inv := range []invoice.Invoice{void, paid, byHand} {
			b.Registry = append(b.Registry, ledger.RegistryEvent{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: inv.CommitmentID})
		}
		closed := w.observe(b)
		late, lateToo := w.pay(void.TransferAmount), w.pay(byHand.TransferAmount)
		w.mine(start+3, late, lateToo)
		if got := w.invoice(void.ID); got.Status != invoice.Open || !got.EndedInLostPast() {
			t.Errorf("before the close is final, the invoice is %+v", got)
		}
		w.final()
		w.advance(start + 1_000_000)
		for _, c := range []struct {
			inv    invoice.Invoice
			status invoice.Status
			events []string
			why    invoice.Exception
		}{
			{void, invoice.Void, []string{"invoice.created", "payment.received"}, invoice.Late},
			{paid, invoice.Paid, []string{"invoice.created", "payment.received", "invoice.paid"}, ""},
			{byHand, invoice.Open, []string{"invoice.created", "payment.received"}, invoice.Late}, // the stray payment may have paid it
		} {
			got := w.invoice(c.inv.ID)
			if got.Status != c.status || got.Exception != c.why || got.Status != invoice.Paid && got.ClosedBlock != closed.Number {
				t.Errorf("invoice over %s is %s, %s, closed in block %d; want %s, %s, %d", got.Amount, got.Status, got.Exception, got.ClosedBlock, c.status, c.why, closed.Number)
			}
			expect.List(t, w.eventTypes(c.inv), c.events, "its events are")
		}
		if p := w.payment(late); p.InvoiceID != void.ID {
			t.Errorf("the late payment belongs to %q", p.InvoiceID)
		}
		expect.Success(t)(w.attribute(w.payment(stray), byHand))
		if got := w.invoice(byHand.ID); got.Status != invoice.Paid || number(got.AmountPaid) != 501_000+number(byHand.TransferAmount) {
			t.Errorf("after the decision, the invoice is %+v", got)
		}
		again := w.pay(invoice.NewAmount(5))
		w.mine(w.head().Time.Unix()+1, tagged(again, invoice.Evidence{Calldata: byHand.CommitmentID}))
		w.final()
		if got := w.invoice(byHand.ID); got.Sums.Stale || got.Sums.Late.Plus(got.Sums.InTime) != got.AmountPaid {
			t.Errorf("its sums are %+v", got.Sums)
		}
	})
}

// TestClosedInReplacedBlock closes commitments in a block that a reorg drops: an invoice expires as if
// it had not been closed, and one that is closed again in another block becomes void. An invoice that
// was closed because it had expired, expires.
func TestClosedInReplacedBlock(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.lose()
		dropped, again := w.create(), w.create(amount(2_000_000))
		b := w.next(start + 1)
		closes := func(inv invoice.Invoice) ledger.RegistryEvent {
			return ledger.RegistryEvent{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: inv.CommitmentID}
		}
		b.Registry = []ledger.RegistryEvent{closes(dropped), closes(again)}
		w.observe(b)
		w.reorg(1)
		if got := w.invoice(dropped.ID); got.EndedInLostPast() {
			t.Errorf("after the reorg, the invoice is closed in block %d", got.ClosedBlock)
		}
		b = w.next(start + 2)
		b.Registry = []ledger.RegistryEvent{closes(again)}
		w.observe(b)
		b = w.next(dropped.ExpiresAt.Unix() + 1)
		b.Registry = []ledger.RegistryEvent{closes(dropped)}
		w.observe(b)
		w.final()
		if a, b := w.invoice(dropped.ID), w.invoice(again.ID); a.Status != invoice.Expired || b.Status != invoice.Void {
			t.Errorf("the invoices are %s and %s", a.Status, b.Status)
		}
	})
}

// TestManyClosedInvoices closes more invoices than one transaction decides about. One becomes void
// unless there were more payments without an invoice before its end than are read.
func TestManyClosedInvoices(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		w.lose()
		var all []invoice.Invoice
		for i := range uint64(25) {
			all = append(all, w.create(amount(2_000_000+10_000*i)))
		}
		dust := func(n int) (all []invoice.Transfer) {
			for range n {
				all = append(all, w.pay(invoice.NewAmount(1)))
			}
			return all
		}
		w.mine(start+1, dust(ledger.ClosedPayments-1)...)
		b := w.next(start + 2)
		for _, inv := range all {
			b.Registry = append(b.Registry, ledger.RegistryEvent{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: inv.CommitmentID})
		}
		w.observe(b)
		w.final()
		for _, inv := range all {
			expect.Equal(t, w.invoice(inv.ID).Status, invoice.Void, "invoice over %s is", inv.Amount)
		}
		held := w.create(amount(3_000_000))
		w.mine(start+3, dust(1)...)
		w.announce(held, ledger.RegistryClosed)
		w.final()
		expect.Equal(t, w.invoice(held.ID).Status, invoice.Open, "with %d payments, the invoice is", ledger.ClosedPayments)
	})
}

// TestPersonEndsHeldInvoice makes an invoice void that is held because payments may have paid it by hand.
func TestPersonEndsHeldInvoice(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.lose()
		inv := w.create()
		w.mine(start+1, w.pay(invoice.NewAmount(number(inv.Amount)+1_000)))
		closed := w.announce(inv, ledger.RegistryClosed)
		w.final()
		w.advance(start + 1_000_000)
		if got := w.invoice(inv.ID).Status; got != invoice.Open {
			t.Fatalf("the invoice is %s", got)
		}
		voided, err := w.Void(t.Context(), w.own(), inv.ID)
		if err != nil || voided.Status != invoice.Void || voided.ClosedBlock != closed.Number {
			t.Errorf("got %+v, %v", voided, err)
		}
	})
}

// TestImportEndedInvoices imports invoices that ended in the lost past, from copies of every status.
// In the end each has its former status, and no event contradicts an earlier one.
func TestImportEndedInvoices(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		unique := func(inv *invoice.Invoice) { inv.Details.Reference, inv.Details.UniqueReference = "order 1", true }
		price := func(n uint64) func(*invoice.Invoice) {
			return func(inv *invoice.Invoice) { inv.Amount = invoice.NewAmount(n) }
		}
		replaced, replacement := w.lostInvoice(unique), w.lostInvoice(func(inv *invoice.Invoice) { unique(inv); price(2_000_000)(inv) })
		voidOnChain, expired, byHand := w.lostInvoice(price(3_000_000)), w.lostInvoice(price(4_000_000)), w.lostInvoice(price(5_000_000))
		openLater, existing := w.lostInvoice(price(6_000_000)), w.create(amount(7_000_000))
		w.lose(replaced, replacement, voidOnChain, expired, byHand, openLater)
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		b := w.next(start + 1)
		b.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: voidOnChain.CommitmentID}}
		w.observe(b)
		late := w.pay(voidOnChain.TransferAmount)
		w.mine(start+2, late, w.payFor(existing, 500_000))
		w.mine(expired.ExpiresAt.Unix() + 10)
		w.final()
		for range 2 {
			for _, c := range []ledger.InvoiceCopy{
				ended(t, replaced, "void"), ended(t, replaced, "open"), ended(t, replacement, "open"), ended(t, voidOnChain, "open"),
				ended(t, expired, "expired"), ended(t, expired, "open"), ended(t, byHand, "open"), ended(t, byHand, "paid"),
				ended(t, openLater, "open"), ended(t, openLater, "void"), ended(t, existing, "void"),
			} {
				if _, err := w.ImportInvoice(ctx, c, nil); err != nil {
					t.Fatalf("%s of %s: %v", c.Invoice.Status, c.Invoice.Amount, err)
				}
			}
		}
		var differs *ledger.StatusDiffersError
		if _, err := w.ImportInvoice(ctx, ended(t, replaced, "paid"), nil); !errors.As(err, &differs) || differs.Stored != invoice.Void {
			t.Errorf("a paid copy of a void invoice: %v", err)
		}
		w.Service = w.service()
		w.readGap()
		for _, c := range []struct {
			inv    invoice.Invoice
			status invoice.Status
			events []string
		}{
			{replaced, invoice.Void, []string{"invoice.created"}},
			{replacement, invoice.Expired, []string{"invoice.created", "invoice.expired"}},
			{voidOnChain, invoice.Void, []string{"invoice.created", "payment.received"}},
			{expired, invoice.Expired, []string{"invoice.created", "invoice.expired"}},
			{byHand, invoice.Open, []string{"invoice.created"}},
			{openLater, invoice.Void, []string{"invoice.created"}},
			{existing, invoice.Void, []string{"invoice.created", "payment.received"}},
		} {
			if got := w.invoice(c.inv.ID); got.Status != c.status || !slices.Equal(w.eventTypes(c.inv), c.events) {
				t.Errorf("the invoice over %s is %s with the events %v, want %s and %v", c.inv.Amount, got.Status, w.eventTypes(c.inv), c.status, c.events)
			}
		}
		if p := w.payment(late); p.InvoiceID != voidOnChain.ID {
			t.Errorf("the payment after the close belongs to %q", p.InvoiceID)
		}
		if got := w.invoice(existing.ID).Exception; got != invoice.Late {
			t.Errorf("a part that the backup lacks is %q for an invoice that became void since", got)
		}
	})
}

// TestImportKeepsFirstStatus refuses a copy with status void of an invoice that was paid since the backup.
func TestImportKeepsFirstStatus(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		inv := w.create()
		expect.Error(t, ledger.ErrNoRecovery, "before a recovery")(w.ImportInvoice(t.Context(), ended(t, inv, "void"), nil))
		w.lose()
		w.mine(start+1, w.pay(inv.TransferAmount))
		w.final()
		var differs *ledger.StatusDiffersError
		if _, err := w.ImportInvoice(t.Context(), ended(t, inv, "void"), nil); !errors.As(err, &differs) || w.invoice(inv.ID).Status != invoice.Paid {
			t.Errorf("got %v", err)
		}
	})
}

// TestLostInvoices reads a chain after a restored backup that lacks an invoice with a deposit address. A payment
// arrived there before the commitment was announced, and was swept. The service reads the blocks again, and records the
// payment but not the sweep. An invoice that was closed before it expired becomes void.
func TestLostInvoices(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		open := w.create(amount(1000))
		closed := w.create(amount(2000))
		lost := w.hash("lost")
		deposit := chain.Chain{Key: w.chainKey, ID: 1337, Registry: registry, DepositFactory: factory}.DepositAddress(w.address, lost)
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		begun := w.head().Number + 1
		at := func() int64 { return w.head().Time.Unix() + 1 }
		pay := w.pay(invoice.NewAmount(7))
		pay.To = deposit
		sweep := tagged(w.pay(invoice.NewAmount(7)), invoice.Evidence{Registry: invoice.SweptElsewhere})
		sweep.From = deposit
		w.mine(at(), pay)
		w.mine(at(), sweep)
		b := w.next(at())
		b.Registry = []ledger.RegistryEvent{
			{Registry: registry, Kind: ledger.RegistryOpened, CommitmentID: lost}, {Registry: registry, Kind: ledger.RegistryClosed, CommitmentID: closed.CommitmentID},
		}
		w.observe(b)
		w.mine(at() + 1_000_000) // both invoices are past their end
		w.final()
		if w.isPaymentOrRefund(pay) {
			t.Error("the payment is recorded before its address is watched")
		}
		if n, err := w.WatchLost(t.Context(), w.chainKey); err != nil || n != 1 {
			t.Fatalf("%d addresses are watched, %v", n, err)
		}
		found, err := ledger.LostInvoices(t.Context(), w.db.store, w.chainKey)
		w.must(err)
		if len(found) != 2 || found[0].CommitmentID == found[1].CommitmentID {
			t.Errorf("found %+v", found)
		}
		for _, l := range found {
			if want := map[invoice.Hash]string{lost: "", closed.CommitmentID: closed.ID}[l.CommitmentID]; l.InvoiceID != want || (l.ClosedBlock > 0) != (want != "") {
				t.Errorf("found %+v", l)
			}
		}
		watched, err := w.Watched(t.Context(), w.chainKey, []invoice.Address{deposit, {0x98}})
		if err != nil || !watched[deposit] || len(watched) != 1 {
			t.Errorf("watched are %v, %v", watched, err)
		}
		w.must(w.ReadAgain(t.Context(), w.chainKey, begun))
		w.fill(begun, w.head(), w.blocks[len(w.blocks)-4:]...)
		p := w.payment(pay)
		if p.Attributed() || p.Status != invoice.Confirmed || number(p.Amount) != 7 {
			t.Errorf("the payment of the lost invoice is %+v", p)
		}
		named := p.Payment
		named.ID, named.To, named.Evidence.Calldata = "named", w.address, lost
		none := named
		none.ID, none.Evidence.Calldata = "none", closed.CommitmentID // which an invoice has
		if ids, err := ledger.NewReader(w.db.store).LostPayments(t.Context(), []invoice.Payment{p.Payment, named, none}); err != nil || len(ids) != 2 || ids[p.ID] != lost || ids["named"] != lost {
			t.Errorf("the payments are for %v, %v", ids, err)
		}
		if p := w.payment(sweep); p.Attributed() {
			t.Errorf("the sweep pays %s", p.InvoiceID)
		}
		if listed, err := ledger.UnattributedSince(t.Context(), w.db.store, w.chainKey, begun, 10); err != nil || len(listed) != 1 || listed[0].ID != p.ID {
			t.Errorf("payments without an invoice are %+v, %v, want %s and not its sweep", listed, err, p.ID)
		}
		for _, inv := range []invoice.Invoice{open, closed} {
			expect.Equal(t, w.invoice(inv.ID).Status, invoice.Open, "during the recovery an invoice is")
		}
		w.Service = w.service()
		w.mine(at())
		w.final()
		expect.Equal(t, w.invoice(open.ID).Status, invoice.Expired, "an invoice of which nothing was found is")
		if got := w.invoice(closed.ID); got.Status != invoice.Void || got.ClosedBlock != begun+2 {
			t.Errorf("an invoice that was closed on chain is %+v", got)
		}
	})
}

// TestSweepThatBecameKnown reads a sweep as a payment before it knows the deposit address, by a recovery or by an import,
// and reads the block again before it is final. No orphaned payment is left that the indexer would wait for.
func TestSweepThatBecameKnown(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		for _, imports := range []bool{false, true} {
			w := w.db.world(t)
			w.create()
			lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Collection = invoice.Deposit })
			w.lose(lost)
			w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
			begun := w.head().Number + 1
			w.mine(start+1, w.deposit(lost, 7), tagged(w.sweep(lost, 7), invoice.Evidence{Registry: invoice.SweptElsewhere}))
			again := []ledger.Block{w.blocks[len(w.blocks)-1]}
			if _, err := w.WatchLost(t.Context(), w.chainKey); err != nil {
				t.Fatal(err)
			}
			if imports {
				expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			}
			w.must(w.ReadAgain(t.Context(), w.chainKey, begun))
			w.must(w.Observe(t.Context(), w.chainKey, again))
			if got, err := w.Orphaned(t.Context(), w.chainKey, w.head().Number); err != nil || len(got) != 0 {
				t.Errorf("imported %t: orphaned are %+v, %v", imports, got, err)
			}
			if found, err := w.LostDeposits(t.Context(), w.chainKey, []invoice.Address{lost.DepositAddress, w.address}); err != nil || found[lost.DepositAddress] == imports || found[w.address] {
				t.Errorf("imported %t: deposit addresses of lost invoices are %v, %v", imports, found, err)
			}
		}
	})
}

// wantPaidAndRefunded wants an invoice to be paid once, with a refund that changes only the refunded amount.
func (w *world) wantPaidAndRefunded(what, id string, refunded uint64) {
	w.t.Helper()
	inv := w.invoice(id)
	if inv.Status != invoice.Paid || inv.Exception != "" || number(inv.AmountRefunded) != refunded || w.paidEvents(inv) != 1 {
		w.t.Errorf("%s: the invoice is %s with the exception %q, %s refunded and %d events", what, inv.Status, inv.Exception, inv.AmountRefunded, w.paidEvents(inv))
	}
	w.wantDue(id, invoice.Paid, 0)
}

// TestPaidInLostPast reads, in a recovery, payments that were final before they were refunded. Their invoices were paid
// then, and remain so. A payment that was refunded before it was final does not pay its invoice.
func TestPaidInLostPast(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		whole, part, early := w.create(amount(700_000)), w.create(), w.create(amount(500_000))
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		at := func() int64 { return w.head().Time.Unix() + 1 }
		first, second, third := w.payFor(whole, 700_000), w.payFor(part, 1_000_000), w.payFor(early, 500_000)
		w.mine(at(), first, second)
		w.mine(at())
		w.mine(at(), w.back(first.Amount), w.back(invoice.NewAmount(250_000)))
		w.mine(at(), third)
		through := w.head()
		w.mine(at(), w.back(third.Amount))
		w.must(w.Confirm(w.t.Context(), w.chainKey, through))
		w.wantDue(early.ID, invoice.Open, 500_000)
		w.final()
		w.wantPaidAndRefunded("in full", whole.ID, 700_000)
		w.wantPaidAndRefunded("in part", part.ID, 250_000)
		w.wantDue(early.ID, invoice.Open, 500_000)
	})
}

// TestCatchUpInRecovery reads many final blocks at once in a recovery, and confirms all of them. The number of the
// chain's newest blocks that are not final determines which payment was sent back before it was final.
func TestCatchUpInRecovery(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		early, paid := w.create(amount(500_000)), w.create(amount(700_000))
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		at := func() int64 { return w.head().Time.Unix() + 1 }
		first, second := w.payFor(early, 500_000), w.payFor(paid, 700_000)
		w.mine(at(), first, second)
		w.mine(at())
		w.mine(at(), w.back(first.Amount))
		w.mine(at(), w.back(second.Amount))
		_, revision, err := w.Pending(t.Context(), w.chainKey, w.head().Number)
		w.must(err)
		expect.Success(t)(w.Service.Confirm(t.Context(), w.chainKey, w.head(), revision, 2))
		if n := w.paidEvents(w.invoice(early.ID)); n != 0 {
			t.Errorf("there are %d events that the invoice is paid whose payment was sent back before it was final", n)
		}
		w.wantDue(early.ID, invoice.Open, 500_000)
		w.wantPaidAndRefunded("after it was final", paid.ID, 700_000)
	})
}

// TestImportOfRefundedDeposit creates a lost invoice again that was paid at its deposit address. The refund of its
// payment names it and goes to another account, which has paid, too. The recovery knows the deposit address as one of
// the merchant only with the invoice, and may have read the refund before it knew that address at all.
func TestImportOfRefundedDeposit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, late := range []bool{false, true} {
			w := w.db.world(t)
			other := w.create(amount(2_000_000))
			lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Collection = invoice.Deposit })
			w.lose(lost)
			w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
			watch := func() {
				w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error {
					return ledger.InsertLostAddresses(t.Context(), tx, w.chainKey, map[invoice.Address]invoice.Hash{lost.DepositAddress: lost.CommitmentID})
				}))
			}
			if !late {
				watch()
			}
			begun := w.head().Number + 1
			paid, received := w.deposit(lost, 1_000_000), w.payFor(other, 500_000)
			back := w.refundOf(paid, 400_000)
			received.From = back.To
			for _, transfer := range []invoice.Transfer{paid, received, back} {
				w.mine(w.head().Time.Unix()+1, transfer)
			}
			w.final()
			read := func() { w.fill(begun, w.head(), w.blocks[len(w.blocks)-3:]...) }
			if late {
				watch()
				w.must(w.ReadAgain(t.Context(), w.chainKey, begun))
				read()
			}
			w.Service = w.service()
			expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			read()
			w.mine(w.head().Time.Unix() + 1)
			w.final()
			w.wantPaidAndRefunded("imported", lost.ID, 400_000)
			if got := w.invoice(other.ID).AmountRefunded; !got.IsZero() {
				t.Errorf("known late %v: %s of another payment was refunded", late, got)
			}
		}
	})
}

// TestSweepOfLostDeposit reads the sweep of a lost invoice's deposit, as a payment, before the recovery watches its
// address. Read again, it is no payment, and it is not taken for one that a node left out.
func TestSweepOfLostDeposit(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create(amount(2_000_000))
		lost := w.lostInvoice(func(inv *invoice.Invoice) { inv.Collection = invoice.Deposit })
		w.lose(lost)
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		w.mine(w.head().Time.Unix()+1, w.deposit(lost, 1_000_000))
		swept := w.next(w.head().Time.Unix()+1, w.sweep(lost, 1_000_000))
		w.observe(swept)
		w.reorg(1)
		missed := func() []invoice.Transfer {
			got, err := w.Orphaned(t.Context(), w.chainKey, swept.Number)
			w.must(err)
			return got
		}
		expect.Equal(t, len(missed()), 1, "orphaned payments before the address is known")
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error {
			return ledger.InsertLostAddresses(t.Context(), tx, w.chainKey, map[invoice.Address]invoice.Hash{lost.DepositAddress: lost.CommitmentID})
		}))
		w.observe(swept)
		expect.Equal(t, len(missed()), 0, "orphaned payments in blocks that were read again")
	})
}

// TestRefundOfPaymentFoundLate reads, in a recovery, the prepared refund of a payment without an invoice, which is found
// only later in an older block. The refund is not offered again.
func TestRefundOfPaymentFoundLate(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		at := func() int64 { return w.head().Time.Unix() + 1 }
		w.create(amount(2_000_000))
		paid := w.pay(invoice.NewAmount(5_000_000))
		b := w.observeEmpty(w.next(at(), paid))
		w.final()
		w.lose()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		w.mine(at(), w.refundOf(paid, 400_000))
		above := w.blocks[len(w.blocks)-1]
		w.mine(at())
		w.final()
		w.must(w.ReportUnread(t.Context(), w.chainKey, paid.TxHash, b.Number, ledger.UnreadReceipt))
		w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}, paid.TxHash))
		w.fill(above.Number, w.head(), above)
		w.wantRefunded("found late", w.payment(paid), 400_000)
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
		w.Service = w.service()
		since := w.pay(invoice.NewAmount(6_000_000))
		b = w.observeEmpty(w.next(at(), since))
		w.mine(at())
		w.must(w.ReportUnread(t.Context(), w.chainKey, since.TxHash, b.Number, ledger.UnreadReceipt))
		w.must(w.Supplement(t.Context(), w.chainKey, b, invoice.Header{}, since.TxHash))
		cur, err := w.Cursor(t.Context(), w.chainKey)
		w.must(err)
		if cur.Gap != nil {
			t.Errorf("a payment above the lost past has blocks read again: %+v", cur.Gap)
		}
	})
}

// TestRefundAfterImport creates a lost invoice again. The refund of its payment was prepared in the lost past, and is in
// a block after it, or in none because of a reorg, when the payment gets its invoice.
func TestRefundAfterImport(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, dropped := range []bool{false, true} {
			w := d.world(t)
			w.create(amount(2_000_000))
			lost := w.lostInvoice(nil)
			w.lose(lost)
			paid := w.pay(lost.TransferAmount)
			w.mine(w.head().Time.Unix()+1, paid)
			read := w.blocks[len(w.blocks)-1]
			w.final()
			w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
			expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			refund := w.refundOf(paid, number(paid.Amount))
			w.mine(w.head().Time.Unix()+1, refund)
			if dropped {
				w.reorg(1)
			} else {
				w.final()
			}
			w.fill(read.Number, read.Header, read)
			if dropped {
				w.wantPaidAndRefunded("imported, the refund is in no block", lost.ID, 0)
				w.mine(w.head().Time.Unix()+1, refund)
				w.final()
			}
			w.wantPaidAndRefunded("imported", lost.ID, number(lost.TransferAmount))
		}
	})
}

// TestRefundDroppedInRecovery reads a payment and its prepared refund in a recovery. A reorg leaves the refund in no block
// before the payment is confirmed, or has its verdict.
func TestRefundDroppedInRecovery(t *testing.T) {
	eachWorldOnBoth(t, func(t *testing.T, w *world) {
		for _, screens := range []bool{false, true} {
			w := w.db.screening(t)
			inv := w.create()
			paid := w.pay(inv.TransferAmount)
			w.lose()
			w.Service = w.service(func(c *ledger.Config) { c.Recovery, c.Screens = true, screens })
			w.mine(start+10, paid)
			w.mine(start + 11)
			refund := w.refundOf(paid, number(paid.Amount))
			w.mine(start+12, refund)
			w.reorg(1)
			_, revision, err := w.Pending(t.Context(), w.chainKey, w.head().Number)
			w.must(err)
			expect.Success(t)(w.Service.Confirm(t.Context(), w.chainKey, w.head(), revision, 1))
			if screens {
				w.verdict(paid, invoice.ScreeningAccepted)
			}
			w.wantPaidAndRefunded("the refund is in no block", inv.ID, 0)
			w.mine(start+13, refund)
			w.final()
			w.wantPaidAndRefunded("it is mined again", inv.ID, number(paid.Amount))
		}
	})
}

// TestLostPastIsNoEvidence reads blocks with transactions of the lost past again, after the recovery. They are no evidence
// of another restore; later ones of this service that it does not know are.
func TestLostPastIsNoEvidence(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.mine(w.head().Time.Unix() + 1)
		w.lose()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		opened := func(n byte) ledger.Block {
			b := w.next(w.head().Time.Unix() + 1)
			b.Registry = []ledger.RegistryEvent{{Registry: registry, Kind: ledger.RegistryOpened, CommitmentID: invoice.Hash{n}, TxHash: invoice.Hash{n}}}
			return b
		}
		past := opened(1)
		w.observe(past)
		w.final()
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
		var judged []invoice.Hash
		w.Service = w.service(func(c *ledger.Config) {
			c.Signals.OnForeignTx = func(_ string, tx invoice.Hash) { judged = append(judged, tx) }
		})
		w.must(w.ReadAgain(t.Context(), w.chainKey, past.Number))
		w.fill(past.Number, past.Header, past)
		w.observe(opened(2))
		if !slices.Equal(judged, []invoice.Hash{{2}}) {
			t.Errorf("judged are %v, want the second", judged)
		}
	})
}

// TestImportAfterReorg creates a lost invoice again that was paid in a block which replaced a block of the backup.
func TestImportAfterReorg(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create(amount(2_000_000))
		at := func() int64 { return w.head().Time.Unix() + 1 }
		w.mine(at())
		kept := w.head()
		w.mine(at())
		w.mine(at())
		lost := w.lostInvoice(nil)
		w.lose(lost)
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		w.reorg(2)
		w.mine(at(), w.pay(lost.TransferAmount))
		w.mine(at())
		w.mine(at())
		w.final()
		if from, err := ledger.RecoveredFrom(t.Context(), w.db.store); err != nil || from[w.chainKey] != kept.Number+1 {
			t.Errorf("the lost past begins with %v, %v; want the first replaced block, %d", from, err, kept.Number+1)
		}
		w.Service = w.service()
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
		w.readGap()
		w.wantPaidAndRefunded("imported", lost.ID, 0)
	})
}

// TestReorgAboveTheLostPast replaces the newest block after an import. A payment in the block that replaces it waits for
// the lost past, too, where a payment of the same amount pays the imported invoice.
func TestReorgAboveTheLostPast(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.create(amount(2_000_000))
		lost := w.lostInvoice(nil)
		w.lose(lost)
		first := w.pay(lost.Amount)
		w.mine(start+1, first)
		read := w.blocks[len(w.blocks)-1]
		w.final()
		w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
		later := w.create()
		w.mine(start + 2)
		expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
		w.reorg(1)
		second := w.pay(later.Amount)
		w.mine(start+3, second)
		if got := w.payment(second).InvoiceID; got != "" {
			t.Errorf("the second payment belongs to %q before the lost past is read", got)
		}
		w.fill(read.Number, read.Header, read)
		w.mine(start + 4)
		w.final()
		for transfer, inv := range map[*invoice.Transfer]invoice.Invoice{&first: lost, &second: later} {
			if got := w.payment(*transfer).InvoiceID; got != inv.ID || w.invoice(inv.ID).Status != invoice.Paid {
				t.Errorf("the payment belongs to %q, and %s is %s", got, inv.ID, w.invoice(inv.ID).Status)
			}
		}
	})
}

// TestImportOfPaymentBetweenMerchants creates a lost invoice again, whose account the recovery did not know. A merchant
// had received money from that account, and paid the invoice with as much. The recovery read that as a refund.
func TestImportOfPaymentBetweenMerchants(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for _, recovered := range []bool{false, true} { // the refund was final in the recovery
			w := d.world(t)
			theirs := w.create(amount(2_000_000))
			lost := w.lostInvoice(func(inv *invoice.Invoice) {
				inv.Merchant = invoice.Address{0: 0xcd, 18: w.address[18], 19: w.address[19]}
			})
			w.lose(lost)
			w.holds(lost.Merchant)
			begun := w.head().Number + 1
			received, paid := w.payFor(theirs, number(lost.TransferAmount)), w.pay(lost.TransferAmount)
			received.From, paid.From, paid.To = lost.Merchant, w.address, lost.Merchant
			w.finalized(received)
			w.mine(w.head().Time.Unix()+1, paid)
			if recovered {
				w.final()
			}
			w.wantDue(theirs.ID, invoice.Open, 2_000_000)
			expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			w.final()
			w.fill(begun, w.head(), w.blocks[len(w.blocks)-2:]...)
			if got := w.storedAs(paid); got != "payment by transfer_amount" {
				t.Errorf("final in the recovery %v: the transfer is a %s", recovered, got)
			}
			w.wantDue(theirs.ID, invoice.Open, 2_000_000-number(received.Amount))
			if got := w.invoice(theirs.ID).AmountRefunded; !got.IsZero() {
				t.Errorf("final in the recovery %v: %s was refunded", recovered, got)
			}
			w.wantPaidAndRefunded("imported", lost.ID, 0)
		}
	})
}

// refundOf returns a prepared refund of a payment to another account, which names it.
func (w *world) refundOf(paid invoice.Transfer, n uint64) invoice.Transfer {
	w.t.Helper()
	back := w.back(invoice.NewAmount(n))
	back.To = invoice.Address{0xee}
	id := invoice.NewIDs(func() time.Time { return w.head().Time }, w.random).New(invoice.PrefixRefund)
	tag, err := invoice.RefundTag(invoice.TransferID(invoice.PrefixPayment, w.chainKey, paid.TxHash, paid.Ordinal), id)
	w.must(err)
	back.Evidence.Calldata = tag
	return back
}

// TestImportAfterTheRecovery creates a lost invoice again. A payment that fits it came after the recovery, or in the
// lost past, and the merchant sent it back after the recovery. It did not count in the lost past, so it stays refunded.
func TestImportAfterTheRecovery(t *testing.T) {
	t.Parallel()
	onSQLite(t, func(t *testing.T, d *database) {
		for inThePast := range 2 { // of the two transfers
			w := d.world(t)
			w.create(amount(2_000_000))
			lost := w.lostInvoice(nil)
			w.lose(lost)
			begun := w.head().Number + 1
			w.mine(w.head().Time.Unix() + 1)
			transfers := []invoice.Transfer{w.pay(lost.TransferAmount), w.back(lost.TransferAmount)}
			for n, transfer := range transfers {
				if n == inThePast {
					w.must(w.db.store.Update(t.Context(), func(tx *db.Tx) error { return ledger.EndRecovery(t.Context(), tx) }))
				}
				w.mine(w.head().Time.Unix()+1, transfer)
			}
			w.final()
			expect.Success(t)(w.ImportInvoice(t.Context(), copyOf(t, lost, 0, ""), nil))
			w.fill(begun, w.head(), w.blocks[len(w.blocks)-3:]...)
			if got := w.invoice(lost.ID); got.Status != invoice.Open || !got.AmountPaid.IsZero() || !got.AmountRefunded.IsZero() {
				t.Errorf("%d transfers in the lost past: the invoice is %s with %s paid and %s refunded", inThePast, got.Status, got.AmountPaid, got.AmountRefunded)
			}
		}
	})
}

// TestLostPreparedRefund reads a refund that was prepared for its payment, and so was sent after the
// payment was final. It does not matter how many blocks are not final.
func TestLostPreparedRefund(t *testing.T) {
	eachWorld(t, func(_ *testing.T, w *world) {
		inv := w.create()
		w.Service = w.service(func(c *ledger.Config) { c.Recovery = true })
		pay := w.payFor(inv, 1_000_000)
		back := w.refundOf(pay, 400_000)
		w.mine(w.head().Time.Unix()+1, pay)
		paidIn := w.head()
		w.mine(w.head().Time.Unix()+1, back)
		w.must(w.Confirm(w.t.Context(), w.chainKey, paidIn))
		w.final()
		w.wantPaidAndRefunded("prepared", inv.ID, 400_000)
	})
}
