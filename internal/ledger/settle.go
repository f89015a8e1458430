package ledger

import (
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// finish counts what was confirmed, and finds out which invoices were paid and what remains of the others. An invoice is
// announced as paid before its refunds are.
func (ch *Changes) finish() {
	ch.recountMarked()
	ch.recountReturned(ch.returning...)
	ch.recountEarly(ch.effects.reattributed...)
	ch.countConfirmed(maxBlock)
	ch.finishPaid()
	ch.countRefunds(ch.refunded)
	ch.recountRemainders()
}

// finishPaid announces the invoices that confirmed payments paid. The commitments of those that were paid without the
// registry are to be closed. It recounts invoices first, so it runs once in a decision.
func (ch *Changes) finishPaid() {
	ch.recountConfirmed()
	slices.Sort(ch.paid)
	for _, id := range ch.paid {
		inv := ch.invoice(id)
		ch.effects.emit(event{kind: invoice.EventPaid, subject: id, invoice: inv})
		if inv.CloseIntent(ch.isPaidThroughRegistry(id)) {
			ch.effects.closed = append(ch.effects.closed, inv)
		}
	}
}

// countRefunds counts newly confirmed refunds and announces them.
func (ch *Changes) countRefunds(refunds []invoice.Refund) {
	for _, r := range refunds {
		inv := ch.invoice(r.InvoiceID).WithRefunds(r)
		ch.putInvoice(inv)
		p, _ := ch.payment(r.PaymentID)
		ch.effects.emit(event{kind: invoice.EventRefunded, subject: r.ID, invoice: inv, payment: p.Payment, refund: r})
	}
}

// isPaidThroughRegistry reports whether an invoice has a confirmed payment through the registry.
func (ch *Changes) isPaidThroughRegistry(invoiceID string) bool {
	for id := range ch.ofInvoice[invoiceID] {
		if p := ch.payments[id]; p.InvoiceID == invoiceID && p.Method == invoice.ByRegistry && p.Status == invoice.Confirmed {
			return true
		}
	}
	return ch.before.registered.get(invoiceID)
}

// countConfirmed counts the payments of the decision that are final and below a block. A refund in that block
// does not undo them, just as if each block were read separately.
func (ch *Changes) countConfirmed(below uint64) {
	for ; ch.counted < len(ch.confirmed) && ch.confirmed[ch.counted].BlockNumber < below; ch.counted++ {
		p := ch.confirmed[ch.counted]
		if !p.Attributed() || ch.toRecount[p.InvoiceID] {
			continue
		}
		if inv, ok := ch.invoice(p.InvoiceID).WithConfirmed(p); ok {
			ch.putConfirmed(inv)
		} else {
			ch.toRecount[p.InvoiceID] = true
		}
	}
}

// recountConfirmed counts the payments that countConfirmed could not add to those that were counted before.
func (ch *Changes) recountConfirmed() {
	for _, id := range slices.Sorted(maps.Keys(ch.toRecount)) {
		ch.putConfirmed(ch.invoice(id).Recount(ch.paymentsOf(id)))
	}
	clear(ch.toRecount)
}

// settleBelow finds out whether an open invoice in toRecount was paid by confirmed payments below a
// block. That is done once for each block.
func (ch *Changes) settleBelow(id string, block uint64) {
	if !ch.toRecount[id] || ch.settled[id] || ch.invoice(id).Status != invoice.Open {
		return
	}
	ch.settled[id] = true
	below := slices.DeleteFunc(ch.paymentsOf(id), func(p invoice.Payment) bool { return p.BlockNumber >= block })
	if inv := ch.invoice(id).Settle(below); inv.Status != invoice.Open {
		ch.putConfirmed(inv)
	}
}

// putConfirmed replaces an invoice after payments were counted.
func (ch *Changes) putConfirmed(inv invoice.Invoice) {
	was := ch.invoice(inv.ID)
	if was.Status != inv.Status {
		ch.paid = append(ch.paid, inv.ID)
		// Payments above the block at which it ended were late while it was open.
		inv.Sums.Stale = inv.Sums.Stale || was.EndedInLostPast()
	}
	ch.putInvoice(inv)
}
