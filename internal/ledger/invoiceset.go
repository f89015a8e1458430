package ledger

import (
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// invoiceSet holds in memory the invoices with payments that a transaction changes. Their sums are
// never stale. The chain's cursor must be locked: every transaction that changes a payment of the
// chain locks it, so the sums cannot change in between.
type invoiceSet struct {
	byID    map[string]invoice.Invoice // that were looked at
	changed map[string]bool            // ids of the invoices to be written

	// remainders are the remainders that partial payments left, by invoice, for payments that were added
	// above all others of their invoice. outOfOrder marks invoices with payments that were added below
	// others, or removed: recountRemainders has to compute their remainders and their Remaining.
	remainders  map[string][]invoice.Amount
	byRemainder map[invoice.Amount][]string // the ids of the invoices in remainders
	outOfOrder  map[string]bool

	// histories are the payments of invoices, by invoice. They are read on demand, if an invoice's sums do
	// not determine the amount due before a payment.
	histories map[string]*invoice.History
	// toRecount marks invoices with newly confirmed payments below others that were
	// counted. They are recounted once, by recountConfirmed.
	toRecount map[string]bool
	paid      []string // ids of the invoices that newly confirmed payments paid
}

func newInvoiceSet() invoiceSet {
	return invoiceSet{
		byID: make(map[string]invoice.Invoice), changed: make(map[string]bool),
		remainders: make(map[string][]invoice.Amount), byRemainder: make(map[invoice.Amount][]string), outOfOrder: make(map[string]bool),
		histories: make(map[string]*invoice.History), toRecount: make(map[string]bool),
	}
}

// invoice returns the invoice with the id, or a zero one. Stale sums are added up again.
func (ch *Changes) invoice(id string) invoice.Invoice {
	if inv, ok := ch.byID[id]; ok {
		return inv
	}
	if id == "" {
		return invoice.Invoice{}
	}
	inv := ch.before.invoices.get(id)
	if inv.ID == "" {
		return inv
	}
	ch.byID[id] = inv
	if inv.Sums.Stale {
		ch.outOfOrder[id] = true
		ch.putInvoice(inv.Recount(asRead(ch.before.paymentsOf.get(id))))
	}
	return ch.byID[id]
}

// asRead returns payments as they were before the decision.
func asRead(rows []PaymentRow) []invoice.Payment {
	payments := make([]invoice.Payment, len(rows))
	for i, row := range rows {
		payments[i] = row.Payment
	}
	return payments
}

// putInvoice replaces an invoice.
func (ch *Changes) putInvoice(inv invoice.Invoice) {
	ch.byID[inv.ID] = inv
	ch.changed[inv.ID] = true
}

// changedInvoices returns the invoices to be written, in the order of their ids. Sums that became stale are recounted
// when they are looked at again.
func (ch *Changes) changedInvoices() []invoice.Invoice {
	var changed []invoice.Invoice
	for _, id := range slices.Sorted(maps.Keys(ch.changed)) {
		changed = append(changed, ch.byID[id])
	}
	return changed
}

// history returns the payments of an invoice in time.
func (ch *Changes) history(id string) *invoice.History {
	if h := ch.histories[id]; h != nil {
		return h
	}
	inv := ch.invoice(id)
	if inv.ID == "" {
		return invoice.NewHistory(inv, nil) // it is read next, and then its payments
	}
	var rows []PaymentRow
	for _, paymentID := range ch.before.inTime.get(expiryKey{id, invoice.UnixSeconds(inv.ExpiresAt)}) {
		rows = append(rows, ch.before.payments.get(paymentID))
	}
	h := invoice.NewHistory(inv, ch.asChanged(rows, id))
	ch.histories[id] = h
	return h
}

// replace updates the sums after a payment changed.
func (ch *Changes) replace(was, is invoice.Payment) {
	if h := ch.histories[was.InvoiceID]; h != nil {
		h.Remove(was)
	}
	if h := ch.histories[is.InvoiceID]; h != nil {
		h.Add(is)
	}
	if was.Attributed() {
		before := ch.invoice(was.InvoiceID)
		if before.CountsInTime(was) && before.HasParts() {
			ch.outOfOrder[before.ID] = true
		}
		ch.putInvoice(before.WithoutPayment(was))
	}
	if !is.Attributed() {
		return
	}
	before := ch.invoice(is.InvoiceID)
	inv := before.WithPayment(is)
	if before.Sums.Newest.Before(is.Position) {
		if inv = inv.WithRemainderAfter(is); inv.Remaining != before.Remaining && !inv.Remaining.IsZero() {
			ch.remainders[inv.ID] = append(ch.remainders[inv.ID], inv.Remaining)
			ch.byRemainder[inv.Remaining] = append(ch.byRemainder[inv.Remaining], inv.ID)
		}
	} else if inv.CountsInTime(is) && inv.HasParts() {
		ch.outOfOrder[inv.ID] = true
	}
	ch.putInvoice(inv)
}

// partlyPaid returns the invoices of which a transfer may pay a remainder that this decision made.
func (ch *Changes) partlyPaid(t invoice.Transfer) []invoice.Invoice {
	ids := slices.AppendSeq(slices.Clone(ch.byRemainder[t.Amount]), maps.Keys(ch.outOfOrder))
	var found []invoice.Invoice
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if inv := ch.invoice(id); inv.Accepts(t) {
			found = append(found, inv)
		}
	}
	return found
}

// recountRemainders computes the remainders of the invoices that are out of order from their payments in time. A closed
// invoice has no Remaining, but it had remainders between its payments.
func (ch *Changes) recountRemainders() {
	for _, id := range slices.Sorted(maps.Keys(ch.outOfOrder)) {
		inv, h := ch.invoice(id), ch.history(id)
		if ch.remainders[id] = h.Remainders(); inv.Status == invoice.Open {
			inv.Remaining = h.Remainder()
		}
		ch.putInvoice(inv)
	}
	clear(ch.outOfOrder)
}

// allRemainders returns the remainders of an invoice, Remaining included, in ascending order.
func (ch *Changes) allRemainders(inv invoice.Invoice) []invoice.Amount {
	remainders := slices.Clone(ch.remainders[inv.ID])
	if inv.Status == invoice.Open && !inv.Remaining.IsZero() {
		remainders = append(remainders, inv.Remaining)
	}
	slices.SortFunc(remainders, invoice.Amount.Cmp)
	return slices.Compact(remainders)
}
