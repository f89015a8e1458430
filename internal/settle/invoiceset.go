package settle

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// invoices are the invoices whose payments a transaction changes. Their sums
// are not stale when they are loaded. The chain's cursor must be locked: every
// transaction that changes a payment of the chain locks it, so the sums cannot
// change meanwhile.
type invoiceSet struct {
	tx       *store.Tx
	invoices map[string]invoice.Invoice // by id, as they are by now
	changed  map[string]bool            // to be written, by id

	// parts are what was left of invoices after payments of a part that were
	// added on top of all others, in the order of the chain. Of those that are
	// outOfOrder it is not known, nor is Remaining: payments were added below
	// others, or taken away.
	parts      map[string][]invoice.Amount
	left       map[invoice.Amount][]string // the same, by amount: of which invoices
	outOfOrder map[string]bool
}

func newInvoiceSet(tx *store.Tx) *invoiceSet {
	return &invoiceSet{tx: tx, invoices: make(map[string]invoice.Invoice), changed: make(map[string]bool),
		parts: make(map[string][]invoice.Amount), left: make(map[invoice.Amount][]string), outOfOrder: make(map[string]bool)}
}

// load reads the invoices with the ids that are not there yet. It must be
// called before any of their payments is written, since stale sums are
// recounted from what is stored.
func (a *invoiceSet) load(ctx context.Context, ids ...string) error {
	missing := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(ids))), func(id string) bool {
		_, ok := a.invoices[id]
		return ok
	})
	invoices, err := a.tx.InvoicesByID(ctx, missing)
	if err != nil {
		return err
	}
	return a.add(ctx, invoices)
}

// add takes invoices that were read already, and recounts those whose sums are
// stale. One that is there stays as it is.
func (a *invoiceSet) add(ctx context.Context, invoices []invoice.Invoice) error {
	var stale []string
	for _, inv := range invoices {
		if _, ok := a.invoices[inv.ID]; ok {
			continue
		}
		a.invoices[inv.ID] = inv
		if inv.Sums.Stale {
			stale = append(stale, inv.ID)
			a.outOfOrder[inv.ID] = true
		}
	}
	return a.recount(ctx, stale)
}

// recount adds up all payments of the invoices with the ids again.
func (a *invoiceSet) recount(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	rows, err := a.tx.PaymentsOfInvoices(ctx, ids)
	if err != nil {
		return err
	}
	of := make(map[string][]invoice.Payment)
	for _, p := range rows {
		of[p.InvoiceID] = append(of[p.InvoiceID], p.Payment)
	}
	for _, id := range ids {
		a.put(a.invoices[id].Recount(of[id]))
	}
	return nil
}

// put replaces an invoice that is there.
func (a *invoiceSet) put(inv invoice.Invoice) {
	a.invoices[inv.ID] = inv
	a.changed[inv.ID] = true
}

// replace moves the sums from a payment as it was to the payment as it is.
// Where it belongs to an invoice, that one must have been loaded.
func (a *invoiceSet) replace(was, is invoice.Payment) {
	if was.Attributed() {
		inv := a.invoices[was.InvoiceID].WithoutPayment(was)
		a.outOfOrder[inv.ID] = a.outOfOrder[inv.ID] || was.Status != invoice.Orphaned
		a.put(inv)
	}
	if !is.Attributed() {
		return
	}
	before := a.invoices[is.InvoiceID]
	inv := before.WithPayment(is)
	if before.Sums.Newest.Before(is.Position) {
		if inv = inv.WithRemainderAfter(is); inv.Remaining != before.Remaining && !inv.Remaining.IsZero() {
			a.parts[inv.ID] = append(a.parts[inv.ID], inv.Remaining)
			a.left[inv.Remaining] = append(a.left[inv.Remaining], inv.ID)
		}
	} else if is.Status != invoice.Orphaned && inv.HasParts() {
		a.outOfOrder[inv.ID] = true
	}
	a.put(inv)
}

// partlyPaid returns the invoices whose remainder a transfer may be, of those
// that parts were paid of since they were loaded.
func (a *invoiceSet) partlyPaid(t invoice.Transfer) []invoice.Invoice {
	ids := slices.Clone(a.left[t.Amount])
	for id, is := range a.outOfOrder {
		if is {
			ids = append(ids, id)
		}
	}
	var found []invoice.Invoice
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		if inv := a.invoices[id]; inv.Accepts(t) {
			found = append(found, inv)
		}
	}
	return found
}

// confirm counts payments that are confirmed now, given in the order of the
// chain, and returns the ids of their invoices, each once. The payments must
// have been written.
func (a *invoiceSet) confirm(ctx context.Context, payments []invoice.Payment) ([]string, error) {
	outOfOrder := make(map[string]bool)
	touched := make(map[string]bool)
	for _, p := range payments {
		if !p.Attributed() {
			continue
		}
		touched[p.InvoiceID] = true
		inv, ok := a.invoices[p.InvoiceID].WithConfirmed(p)
		if !ok {
			outOfOrder[p.InvoiceID] = true
			continue
		}
		a.put(inv)
	}
	return slices.Sorted(maps.Keys(touched)), a.recount(ctx, slices.Sorted(maps.Keys(outOfOrder)))
}

// save writes the invoices that were changed. Sums that became stale are
// written as such, and recounted when they are needed again.
func (a *invoiceSet) save(ctx context.Context) error {
	changed := make([]invoice.Invoice, 0, len(a.changed))
	for _, id := range slices.Sorted(maps.Keys(a.changed)) {
		changed = append(changed, a.invoices[id])
	}
	clear(a.changed)
	return a.tx.UpdateInvoices(ctx, changed)
}
