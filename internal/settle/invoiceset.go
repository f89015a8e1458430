package settle

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// invoiceSet holds in memory the invoices with payments that a transaction changes. Their sums are
// never stale. The chain's cursor must be locked: every transaction that changes a payment of the
// chain locks it, so the sums cannot change in between.
type invoiceSet struct {
	tx      *db.Tx
	byID    map[string]invoice.Invoice
	changed map[string]bool // ids of the invoices to be written

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

func newInvoiceSet(tx *db.Tx) *invoiceSet {
	return &invoiceSet{
		tx: tx, byID: make(map[string]invoice.Invoice), changed: make(map[string]bool),
		remainders: make(map[string][]invoice.Amount), byRemainder: make(map[invoice.Amount][]string), outOfOrder: make(map[string]bool),
		histories: make(map[string]*invoice.History), toRecount: make(map[string]bool),
	}
}

// load reads the invoices with the ids that are not in the set. It must be
// called before any of their payments is written, because stale sums are
// recounted from the stored payments.
func (set *invoiceSet) load(ctx context.Context, ids ...string) error {
	missing := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(ids))), func(id string) bool {
		_, ok := set.byID[id]
		return ok
	})
	invoices, err := InvoicesWithoutLines(ctx, set.tx, missing)
	if err != nil {
		return err
	}
	return set.add(ctx, invoices)
}

// add adds invoices that are not in the set, and recounts those with stale sums.
func (set *invoiceSet) add(ctx context.Context, invoices []invoice.Invoice) error {
	var stale []string
	for _, inv := range invoices {
		if _, ok := set.byID[inv.ID]; ok {
			continue
		}
		set.byID[inv.ID] = inv
		if inv.Sums.Stale {
			stale = append(stale, inv.ID)
			set.outOfOrder[inv.ID] = true
		}
	}
	return set.recount(ctx, stale)
}

// recount computes the sums of the invoices with the ids from all their
// payments.
func (set *invoiceSet) recount(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	payments, err := set.payments(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		set.put(set.byID[id].Recount(payments[id]))
	}
	return nil
}

// payments reads the payments of the invoices with the ids, by invoice.
func (set *invoiceSet) payments(ctx context.Context, ids []string) (map[string][]invoice.Payment, error) {
	rows, err := NewReader(set.tx).PaymentsOfInvoices(ctx, ids)
	payments := make(map[string][]invoice.Payment)
	for _, p := range rows {
		payments[p.InvoiceID] = append(payments[p.InvoiceID], p.Payment)
	}
	return payments, err
}

// history returns the history of an invoice of the set. The first time it is
// read, with the payments that are not written yet, given by id.
func (set *invoiceSet) history(ctx context.Context, id string, unsaved map[string]PaymentRow) (*invoice.History, error) {
	if h := set.histories[id]; h != nil {
		return h, nil
	}
	inv := set.byID[id]
	rows, err := PaymentsInTime(ctx, set.tx, inv)
	if err != nil {
		return nil, err
	}
	var payments []invoice.Payment
	for _, row := range rows {
		if _, ok := unsaved[row.ID]; !ok {
			payments = append(payments, row.Payment)
		}
	}
	for _, p := range unsaved {
		if p.InvoiceID == id {
			payments = append(payments, p.Payment)
		}
	}
	set.histories[id] = invoice.NewHistory(inv, payments)
	return set.histories[id], nil
}

// put replaces an invoice of the set.
func (set *invoiceSet) put(inv invoice.Invoice) {
	set.byID[inv.ID] = inv
	set.changed[inv.ID] = true
}

// replace updates the sums after a payment changed. The invoices that it
// belonged to and belongs to must be in the set.
func (set *invoiceSet) replace(was, is invoice.Payment) {
	if h := set.histories[was.InvoiceID]; h != nil {
		h.Remove(was)
	}
	if h := set.histories[is.InvoiceID]; h != nil {
		h.Add(is)
	}
	if was.Attributed() {
		before := set.byID[was.InvoiceID]
		if before.CountsInTime(was) && before.HasParts() {
			set.outOfOrder[before.ID] = true
		}
		set.put(before.WithoutPayment(was))
	}
	if !is.Attributed() {
		return
	}
	before := set.byID[is.InvoiceID]
	inv := before.WithPayment(is)
	if before.Sums.Newest.Before(is.Position) {
		if inv = inv.WithRemainderAfter(is); inv.Remaining != before.Remaining && !inv.Remaining.IsZero() {
			set.remainders[inv.ID] = append(set.remainders[inv.ID], inv.Remaining)
			set.byRemainder[inv.Remaining] = append(set.byRemainder[inv.Remaining], inv.ID)
		}
	} else if inv.CountsInTime(is) && inv.HasParts() {
		set.outOfOrder[inv.ID] = true
	}
	set.put(inv)
}

// partlyPaid returns the invoices with a remainder made by this transaction that a transfer may pay.
func (set *invoiceSet) partlyPaid(t invoice.Transfer) []invoice.Invoice {
	ids := slices.Clone(set.byRemainder[t.Amount])
	for id := range set.outOfOrder {
		ids = append(ids, id)
	}
	var found []invoice.Invoice
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if inv := set.byID[id]; inv.Accepts(t) {
			found = append(found, inv)
		}
	}
	return found
}

// confirm counts newly confirmed payments, given in the chain's order.
func (set *invoiceSet) confirm(payments []invoice.Payment) {
	for _, p := range payments {
		if !p.Attributed() || set.toRecount[p.InvoiceID] {
			continue
		}
		inv, ok := set.byID[p.InvoiceID].WithConfirmed(p)
		if !ok {
			set.toRecount[p.InvoiceID] = true
			continue
		}
		set.putConfirmed(inv)
	}
}

// recountConfirmed counts the payments that confirm could not add to earlier counted ones. The
// payments must have been written.
func (set *invoiceSet) recountConfirmed(ctx context.Context) error {
	ids := slices.Sorted(maps.Keys(set.toRecount))
	clear(set.toRecount)
	payments, err := set.payments(ctx, ids)
	for _, id := range ids {
		set.putConfirmed(set.byID[id].Recount(payments[id]))
	}
	return err
}

// settleBelow finds out whether an open invoice in toRecount was paid by confirmed payments below a
// block, which must have been written.
func (set *invoiceSet) settleBelow(ctx context.Context, id string, block uint64) error {
	if !set.toRecount[id] || set.byID[id].Status != invoice.Open {
		return nil
	}
	payments, err := set.payments(ctx, []string{id})
	below := slices.DeleteFunc(payments[id], func(p invoice.Payment) bool { return p.BlockNumber >= block })
	if inv := set.byID[id].Settle(below); inv.Status != invoice.Open {
		set.putConfirmed(inv)
	}
	return err
}

// putConfirmed replaces an invoice of the set after payments were counted.
func (set *invoiceSet) putConfirmed(inv invoice.Invoice) {
	if set.byID[inv.ID].Status != inv.Status {
		set.paid = append(set.paid, inv.ID)
		// Payments above the block at which it ended were late while it was open.
		inv.Sums.Stale = inv.Sums.Stale || set.byID[inv.ID].EndedInLostPast()
	}
	set.put(inv)
}

// save writes the changed invoices. Sums that became stale are recounted when
// they are loaded again.
func (set *invoiceSet) save(ctx context.Context) error {
	changed := make([]invoice.Invoice, 0, len(set.changed))
	for _, id := range slices.Sorted(maps.Keys(set.changed)) {
		changed = append(changed, set.byID[id])
	}
	clear(set.changed)
	clear(set.remainders)
	clear(set.byRemainder)
	return UpdateInvoices(ctx, set.tx, changed)
}
