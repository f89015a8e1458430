package settle

import (
	"bytes"
	"context"
	"errors"
	"maps"
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

	payments map[string]store.PaymentRow            // by id: those of the transfers, as far as they are known
	invoices map[string]invoice.Invoice             // by id: those that could be meant
	ofTarget map[string]map[string]store.PaymentRow // by invoice and id: their payments
	unsaved  []string                               // payments that are to be written, by id
	dirty    map[string]bool                        // whether a payment is among those
	refunds  map[string]invoice.Refund              // by id: those of the transfers, as they were stored
	paid     map[store.Pair]bool                    // accounts that could pay back

	// What was found to be final: it is to be reckoned.
	touched  map[string]bool // invoices, by id
	refunded []invoice.Refund
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
		payments: make(map[string]store.PaymentRow), ofTarget: make(map[string]map[string]store.PaymentRow),
		invoices: make(map[string]invoice.Invoice), dirty: make(map[string]bool),
		refunds: make(map[string]invoice.Refund), touched: make(map[string]bool),
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
			if err := w.payment(e); err != nil {
				return err
			}
		}
		if e.refundID != "" && w.paid[e.pair()] {
			if err := w.save(ctx); err != nil { // so that the refund finds its payment
				return err
			}
			if err := w.refund(ctx, e); err != nil {
				return err
			}
		}
	}
	if err := w.save(ctx); err != nil {
		return err
	}
	return w.settle(ctx)
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
// what was paid to them.
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
	var ids []string
	for i, e := range asking {
		e.candidates = found[i]
		for _, inv := range e.candidates.Invoices {
			if w.ofTarget[inv.ID] == nil {
				w.ofTarget[inv.ID] = make(map[string]store.PaymentRow)
				ids = append(ids, inv.ID)
			}
			w.invoices[inv.ID] = inv
		}
	}
	payments, err := w.tx.PaymentsOfInvoices(ctx, ids)
	for _, p := range payments {
		w.ofTarget[p.InvoiceID][p.ID] = p
	}
	return err
}

// keeps reports whether a payment that was seen before keeps its invoice now
// that it is told of again: as long as it moves the same money and the same
// evidence speaks for it, which a provider can have made up the first time.
// What somebody said does not depend on evidence.
func keeps(p store.PaymentRow, e *entry) bool {
	return p.Attributed() && p.SameMovement(e.Transfer) && (p.Evidence == e.Evidence || p.Method == invoice.ByHand)
}

// payment stores a transfer to a settlement address. One that was seen before,
// in a block that a reorg left, is the same payment.
func (w *workbook) payment(e *entry) error {
	p, known := w.payments[e.paymentID]
	if p.Status == invoice.Confirmed {
		return nil // final: reading the chain again changes nothing
	}
	if !known {
		p.SeenID = w.ids.New("")
		p.ID, p.ObservedAt = e.paymentID, w.Now().Unix()
	}
	kept := keeps(p, e)
	w.moved = w.moved || p.Status == invoice.Pending && p.BlockHash != e.BlockHash
	p.Transfer = e.Transfer
	p.Status, p.ConfirmedAt = w.status()
	if !kept {
		if err := w.attribute(&p.Payment, e.candidates); err != nil {
			return err
		}
	}
	if of := w.ofTarget[p.InvoiceID]; of != nil {
		of[p.ID] = p
	}
	if w.final && p.Attributed() {
		w.touched[p.InvoiceID] = true
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
// merchant.
func (w *workbook) attribute(p *invoice.Payment, found store.Candidates) error {
	delete(w.ofTarget[p.InvoiceID], p.ID)
	a, ok := invoice.Attribute(p.Transfer, w.weigh(found))
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
		candidates[i].Covered = !found.Crowded && inv.Covered(w.paymentsOf(inv.ID))
	}
	return candidates
}

// paymentsOf returns the payments of an invoice that could be meant, as they
// are by now.
func (w *workbook) paymentsOf(invoiceID string) []invoice.Payment {
	payments := make([]invoice.Payment, 0, len(w.ofTarget[invoiceID]))
	for _, p := range w.ofTarget[invoiceID] {
		payments = append(payments, p.Payment)
	}
	return payments
}

// settle reckons the invoices of what was found to be final.
func (w *workbook) settle(ctx context.Context) error {
	var accounts []account
	var unknown []string
	for _, id := range slices.Sorted(maps.Keys(w.touched)) {
		if inv, ok := w.invoices[id]; ok {
			accounts = append(accounts, account{inv, w.paymentsOf(id)})
		} else {
			unknown = append(unknown, id)
		}
	}
	others, err := loadAccounts(ctx, w.tx, unknown)
	if err != nil {
		return err
	}
	return w.reckon(ctx, w.tx, w.changes, append(accounts, others...), w.refunded)
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
