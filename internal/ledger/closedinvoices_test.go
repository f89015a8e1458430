package ledger_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quittance/quittance/apitypes"
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
			if got := w.eventTypes(c.inv); !slices.Equal(got, c.events) {
				t.Errorf("its events are %v, want %v", got, c.events)
			}
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
			if got := w.invoice(inv.ID).Status; got != invoice.Void {
				t.Errorf("invoice over %s is %s", inv.Amount, got)
			}
		}
		held := w.create(amount(3_000_000))
		w.mine(start+3, dust(1)...)
		w.announce(held, ledger.RegistryClosed)
		w.final()
		if got := w.invoice(held.ID).Status; got != invoice.Open {
			t.Errorf("with %d payments, the invoice is %s", ledger.ClosedPayments, got)
		}
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
		if _, err := w.ImportInvoice(t.Context(), ended(t, inv, "void"), nil); !errors.Is(err, ledger.ErrNoRecovery) {
			t.Errorf("before a recovery: %v", err)
		}
		w.lose()
		w.mine(start+1, w.pay(inv.TransferAmount))
		w.final()
		var differs *ledger.StatusDiffersError
		if _, err := w.ImportInvoice(t.Context(), ended(t, inv, "void"), nil); !errors.As(err, &differs) || w.invoice(inv.ID).Status != invoice.Paid {
			t.Errorf("got %v", err)
		}
	})
}
