package settle

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// workbook stores a number of transfers, one after the other: what the first
// changes counts for the next. What they need to know it asks for all at once,
// and keeps up to date meanwhile.
type workbook struct {
	*observer
	entries []*entry

	payments map[string]store.PaymentRow // by id: those of the transfers, as far as they are known
	accounts *accounts                   // the invoices that could be meant, and those of known payments
	unsaved  []string                    // payments that are to be written, by id
	dirty    map[string]bool             // whether a payment is among those
	refunds  map[string]invoice.Refund   // by id: those of the transfers, as they were stored
	paid     map[store.Pair]bool         // accounts that could pay back

	// What was found to be final: it is to be reckoned.
	confirmed []invoice.Payment
	refunded  []invoice.Refund
}

// entry is a transfer, and what it could be: a payment when it goes to a
// settlement address, a refund when it comes from one. It can be both.
type entry struct {
	invoice.Transfer
	paymentID  string // empty when it is no payment
	refundID   string // empty when it is no refund
	candidates store.Candidates
}

// pair returns the accounts between which a payment was made, if the transfer
// pays one back.
func (e *entry) pair() store.Pair { return store.Pair{Payer: e.To, Receiver: e.From} }

func newWorkbook(o *observer, transfers []invoice.Transfer) *workbook {
	w := &workbook{
		observer: o,
		payments: make(map[string]store.PaymentRow), accounts: newAccounts(o.tx),
		dirty: make(map[string]bool), refunds: make(map[string]invoice.Refund),
	}
	for _, t := range transfers {
		w.entries = append(w.entries, &entry{Transfer: t})
	}
	return w
}

// store stores the transfers and what follows from them.
func (w *workbook) store(ctx context.Context) error {
	for _, load := range []func(context.Context) error{w.load, w.loadCandidates, w.loadRefunds} {
		if err := load(ctx); err != nil {
			return err
		}
	}
	for _, e := range w.entries {
		if e.paymentID != "" {
			if err := w.payment(ctx, e); err != nil {
				return err
			}
		}
		if err := w.out(ctx, e); err != nil {
			return err
		}
	}
	if err := w.save(ctx); err != nil {
		return err
	}
	return w.settle(ctx)
}

// out stores a transfer that goes out of a settlement address as a refund,
// unless it was attributed as a payment.
func (w *workbook) out(ctx context.Context, e *entry) error {
	switch {
	case e.refundID == "":
		return nil
	case w.payments[e.paymentID].Attributed():
		return w.noRefund(ctx, e)
	case w.paid[e.pair()]:
		return w.refund(ctx, e)
	}
	return nil
}

// load finds out what each transfer could be, and what is known of it.
func (w *workbook) load(ctx context.Context) error {
	var ends []invoice.Address
	for _, e := range w.entries {
		ends = append(ends, e.From, e.To)
	}
	slices.SortFunc(ends, func(a, b invoice.Address) int { return bytes.Compare(a[:], b[:]) })
	ours, err := w.tx.SettlementAddresses(ctx, w.chainKey, slices.Compact(ends))
	if err != nil {
		return err
	}
	var ids []string
	for _, e := range w.entries {
		if ours[e.To] {
			e.paymentID = invoice.TransferID(invoice.PrefixPayment, e.ChainKey, e.TxHash, e.Ordinal)
			ids = append(ids, e.paymentID)
		}
		if ours[e.From] {
			e.refundID = invoice.TransferID(invoice.PrefixRefund, e.ChainKey, e.TxHash, e.Ordinal)
		}
	}
	stored, err := w.tx.PaymentsByID(ctx, ids)
	for _, p := range stored {
		w.payments[p.ID] = p
	}
	return err
}

// loadCandidates finds the invoices that the transfers could be meant for, and
// those that known payments belong to.
func (w *workbook) loadCandidates(ctx context.Context) error {
	var asking []*entry
	var transfers []invoice.Transfer
	for _, e := range w.entries {
		if p := w.payments[e.paymentID]; e.paymentID != "" && p.Status != invoice.Confirmed && !keeps(p, e) {
			asking, transfers = append(asking, e), append(transfers, e.Transfer)
		}
	}
	found, err := w.tx.CandidateInvoices(ctx, w.chainKey, transfers)
	if err != nil {
		return err
	}
	for i, e := range asking {
		e.candidates = found[i]
		if err := w.accounts.add(ctx, e.candidates.Invoices); err != nil {
			return err
		}
	}
	var ids []string
	for _, p := range w.payments {
		if p.Attributed() && p.Status != invoice.Confirmed {
			ids = append(ids, p.InvoiceID)
		}
	}
	return w.accounts.load(ctx, ids...)
}

// keeps reports whether a payment that was seen before keeps its invoice now
// that it is told of again: as long as it moves the same money and the same
// evidence speaks for it, which a provider can have made up the first time.
// What somebody said does not depend on evidence.
func keeps(p store.PaymentRow, e *entry) bool {
	return p.Attributed() && p.SameMovement(e.Transfer) && (p.Evidence == e.Evidence || p.Method.ByWord())
}

// payment stores a transfer to a settlement address. One that was seen before,
// in a block that a reorg left, is the same payment.
func (w *workbook) payment(ctx context.Context, e *entry) error {
	p, known := w.payments[e.paymentID]
	if p.Status == invoice.Confirmed {
		return nil // final: reading the chain again changes nothing
	}
	if !known {
		p.SeenID = w.ids.New("")
		p.ID, p.ObservedAt = e.paymentID, w.Now().Unix()
	}
	was := p.Payment
	kept := keeps(p, e)
	w.moved = w.moved || p.Status == invoice.Pending && p.BlockHash != e.BlockHash
	p.Transfer = e.Transfer
	p.Status, p.ConfirmedAt = w.status()
	if !kept {
		if err := w.attribute(ctx, e, &p.Payment); err != nil {
			return err
		}
	}
	w.accounts.replace(was, p.Payment)
	if w.final {
		w.confirmed = append(w.confirmed, p.Payment)
	}
	if !w.dirty[p.ID] {
		w.dirty[p.ID] = true
		w.unsaved = append(w.unsaved, p.ID)
	}
	w.payments[p.ID] = p
	w.paid[store.Pair{Payer: p.From, Receiver: p.To}] = true
	return nil
}

// attribute finds the payment's invoice and announces the payment to its
// merchant. A transfer that pays back a payment exactly is no payment by an
// amount that its sender was not told.
func (w *workbook) attribute(ctx context.Context, e *entry, p *invoice.Payment) error {
	a, ok := invoice.Attribute(p.Transfer, w.weigh(e.candidates))
	if ok && a.Method.Guessed() && e.refundID != "" && w.paid[e.pair()] {
		m, back, err := w.paidBack(ctx, e)
		if err != nil {
			return err
		}
		if back && m.Exact {
			a, ok = invoice.Attribution{}, false
		}
	}
	*p = p.Of(a)
	if !ok {
		return nil
	}
	return w.announceReceived(w.changes, *p, a.Invoice)
}

// weigh says which of the candidates are covered, as things stand.
func (w *workbook) weigh(found store.Candidates) []invoice.Candidate {
	candidates := make([]invoice.Candidate, len(found.Invoices))
	for i, inv := range found.Invoices {
		candidates[i].Invoice = inv
		// In a crowd nobody is ruled out: there are others that were not seen.
		candidates[i].Covered = !found.Crowded && w.accounts.invoices[inv.ID].Covered()
	}
	return candidates
}

// settle reckons what was found to be final, and writes the invoices.
func (w *workbook) settle(ctx context.Context) error {
	if err := w.reckon(ctx, w.changes, w.accounts, w.confirmed, w.refunded); err != nil {
		return err
	}
	return w.accounts.save(ctx)
}

// save writes the payments that were not written yet, and links the notices
// that announced them.
func (w *workbook) save(ctx context.Context) error {
	if len(w.unsaved) == 0 {
		return nil
	}
	rows := make([]store.PaymentRow, len(w.unsaved))
	for i, id := range w.unsaved {
		rows[i] = w.payments[id]
	}
	w.unsaved = nil
	clear(w.dirty)
	if err := w.tx.SavePayments(ctx, rows); err != nil {
		return err
	}
	announced, err := w.tx.Announced(ctx, rows)
	for _, p := range announced {
		err = errors.Join(err, w.tx.LinkNotices(ctx, p.Payment))
	}
	return err
}
