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
	invoices *invoiceSet                 // the invoices that could be meant, and those of known payments
	unsaved  []string                    // payments that are to be written, by id
	dirty    map[string]bool             // whether a payment is among those
	// histories are what paid invoices whose sums do not say what was due at a
	// payment, by the invoice's id, as far as they were read.
	histories map[string]*invoice.History
	refunds   map[string]invoice.Refund // by id: those of the transfers, as they were stored
	paid      map[store.Pair]bool       // invoices that could pay back
	paidBack  *paidBack                 // how much of payments was paid back
	books     map[store.Pair]pairBook   // payments that could be paid back, as far as they were read
	named     map[string]pairBook       // by invoice: payments that refunds name, as far as they were read

	waiting map[invoice.Address]store.ReceiverState // why payments to a receiver may have to wait
	waits   map[string]bool                         // payments that are not decided, by id
	awaited []invoice.Transfer                      // what may pay back payments in blocks that were never read

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

// pair returns the invoices between which a payment was made, if the transfer
// pays one back.
func (e *entry) pair() store.Pair { return store.Pair{Payer: e.To, Receiver: e.From} }

func newWorkbook(o *observer, transfers []invoice.Transfer) *workbook {
	w := &workbook{
		observer: o,
		payments: make(map[string]store.PaymentRow), invoices: newInvoiceSet(o.tx), histories: make(map[string]*invoice.History),
		dirty: make(map[string]bool), refunds: make(map[string]invoice.Refund), waits: make(map[string]bool),
		paidBack: newPaidBack(o.tx), books: make(map[store.Pair]pairBook), named: make(map[string]pairBook),
	}
	for _, t := range transfers {
		w.entries = append(w.entries, &entry{Transfer: t})
	}
	return w
}

// store stores the transfers and what follows from them.
func (w *workbook) store(ctx context.Context) error {
	for _, load := range []func(context.Context) error{w.load, w.loadWaiting, w.loadCandidates, w.loadRefunds} {
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
	if err := w.tx.DeferRefunds(ctx, w.awaited); err != nil {
		return err
	}
	return w.settle(ctx)
}

// out stores a transfer that goes out of a settlement address as a refund,
// unless it was attributed as a payment, or that is not decided yet. Above
// blocks that were never read it waits: they may hold what it pays back.
func (w *workbook) out(ctx context.Context, e *entry) error {
	switch {
	case e.refundID == "" || w.waits[e.paymentID]:
		return nil
	case w.payments[e.paymentID].Attributed():
		return w.noRefund(ctx, e)
	case w.isAbove(e.Position):
		w.awaited = append(w.awaited, e.Transfer)
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
	for _, e := range w.entries {
		if p := w.payments[e.paymentID]; e.paymentID != "" && p.Status != invoice.Confirmed && !w.keeps(p, e) {
			asking = append(asking, e)
		}
	}
	if err := w.findCandidates(ctx, asking); err != nil {
		return err
	}
	var ids []string
	for _, p := range w.payments {
		if p.Attributed() && p.Status != invoice.Confirmed {
			ids = append(ids, p.InvoiceID)
		}
	}
	return w.invoices.load(ctx, ids...)
}

// findCandidates finds the invoices that the transfers could be meant for.
func (w *workbook) findCandidates(ctx context.Context, asking []*entry) error {
	transfers := make([]invoice.Transfer, len(asking))
	for i, e := range asking {
		transfers[i] = e.Transfer
	}
	found, err := w.tx.CandidateInvoices(ctx, w.chainKey, transfers)
	if err != nil {
		return err
	}
	var invoices []invoice.Invoice
	for i, e := range asking {
		e.candidates = found[i]
		for _, c := range e.candidates.Invoices {
			invoices = append(invoices, c.Invoice)
		}
	}
	return w.invoices.add(ctx, invoices)
}

// keeps reports whether what was decided of a payment stays now that its block
// is read again, or it is mined again: as long as it moves the same money and
// the same evidence speaks for it, which a provider can have made up the first
// time. What somebody said does not depend on evidence. So does a payment that
// was left without an invoice: others may have seen it since, and have made an
// invoice or a remainder that its amount fits. One that waits for older blocks
// is looked at whenever it is read.
func (w *workbook) keeps(p store.PaymentRow, e *entry) bool {
	switch {
	case !p.SameMovement(e.Transfer):
		return false
	case p.Attributed():
		return p.Evidence == e.Evidence || p.Method.OffChain()
	}
	return !w.waits[p.ID] && p.Evidence == e.Evidence
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
	kept := w.keeps(p, e)
	w.moved = w.moved || p.Status == invoice.Pending && p.BlockHash != e.BlockHash
	p.Transfer = e.Transfer
	p.Status, p.ConfirmedAt = w.status()
	if !kept {
		if err := w.attribute(ctx, e, &p.Payment); err != nil {
			return err
		}
	}
	if w.final {
		w.confirmed = append(w.confirmed, p.Payment)
	}
	w.put(was, p)
	return nil
}

// put keeps a payment as it is now, to be written.
func (w *workbook) put(was invoice.Payment, p store.PaymentRow) {
	w.invoices.replace(was, p.Payment)
	if h := w.histories[was.InvoiceID]; h != nil {
		h.Remove(was)
	}
	if h := w.histories[p.InvoiceID]; h != nil {
		h.Add(p.Payment)
	}
	if !w.dirty[p.ID] {
		w.dirty[p.ID] = true
		w.unsaved = append(w.unsaved, p.ID)
	}
	w.payments[p.ID] = p
	w.wasPaid(p.Payment)
}

// attribute finds the payment's invoice and announces the payment to its
// merchant, unless older blocks must be read first. A transfer that pays back a
// payment exactly is no payment by an amount that its sender was not told.
func (w *workbook) attribute(ctx context.Context, e *entry, p *invoice.Payment) error {
	candidates, err := w.weigh(ctx, *p, e.candidates)
	if err != nil {
		return err
	}
	a, ok := invoice.Attribute(p.Transfer, candidates, e.candidates.Truncated)
	if w.waits[p.ID] = w.mustWait(e, candidates, a); w.waits[p.ID] {
		a, ok = invoice.Attribution{}, false
		w.waiting[p.To] = store.ReceiverState{Unbound: true, Undecided: true}
	}
	if ok && a.Method.Inferred() && e.refundID != "" && w.paid[e.pair()] {
		m, back, err := w.paysBack(ctx, e)
		if err != nil {
			return err
		}
		if back && m.Exact {
			a, ok = invoice.Attribution{}, false
		}
	}
	*p = p.Of(a)
	if !ok {
		if !w.waits[p.ID] {
			w.outbox.unattributed = append(w.outbox.unattributed, *p)
		}
		return nil
	}
	return w.emitReceived(w.outbox, *p, a.Invoice)
}

// weigh says what of the candidates is due right before a payment. Where the
// transaction names its invoice, that decides nothing, and is not asked.
func (w *workbook) weigh(ctx context.Context, p invoice.Payment, found store.Candidates) ([]invoice.Candidate, error) {
	candidates := slices.Clone(found.Invoices)
	if slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.NamedBy(p.Transfer) }) {
		return candidates, nil
	}
	for _, inv := range w.invoices.partlyPaid(p.Transfer) {
		if !slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.ID == inv.ID }) {
			candidates = append(candidates, invoice.Candidate{Invoice: inv})
		}
	}
	for i := range candidates {
		c := &candidates[i]
		if !c.PayableAt(p.Position) {
			continue
		}
		var err error
		if c.Covered, c.Remainder, err = w.dueAt(ctx, w.invoices.invoices[c.ID], p); err != nil {
			return nil, err
		}
	}
	return candidates, nil
}

// dueAt returns whether the invoice is covered right before a payment on the
// chain, and else what remains of it. The sums say it, unless the invoice has
// payments above, or p itself was one of its payments.
func (w *workbook) dueAt(ctx context.Context, inv invoice.Invoice, p invoice.Payment) (bool, invoice.Amount, error) {
	was := w.payments[p.ID].Payment
	inOrder := inv.Sums.Newest.Before(p.Position) && !w.invoices.outOfOrder[inv.ID] && was.InvoiceID != inv.ID
	if inOrder && (inv.Covered() || inv.Status == invoice.Open) { // what remained of one that is closed is not kept
		return inv.Covered(), inv.Remaining, nil
	}
	h, err := w.history(ctx, inv)
	if err != nil {
		return false, invoice.Amount{}, err
	}
	h.Remove(was)
	defer h.Add(was)
	covered, remainder := h.DueAt(p.Position)
	return covered, remainder, nil
}

// history returns what paid the invoice, as it is by now.
func (w *workbook) history(ctx context.Context, inv invoice.Invoice) (*invoice.History, error) {
	if h := w.histories[inv.ID]; h != nil {
		return h, nil
	}
	rows, err := w.tx.PaymentsInTime(ctx, inv)
	if err != nil {
		return nil, err
	}
	var payments []invoice.Payment
	for _, row := range rows {
		if _, held := w.payments[row.ID]; !held {
			payments = append(payments, row.Payment)
		}
	}
	for _, held := range w.payments {
		payments = append(payments, held.Payment)
	}
	w.histories[inv.ID] = invoice.NewHistory(inv, payments)
	return w.histories[inv.ID], nil
}

// settle reckons what was found to be final, and writes the invoices.
func (w *workbook) settle(ctx context.Context) error {
	if err := w.recompute(ctx, w.outbox, w.invoices, w.confirmed, w.refunded); err != nil {
		return err
	}
	if err := w.paidBack.save(ctx); err != nil {
		return err
	}
	return w.saveInvoices(ctx, w.invoices, w.height)
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
	if err := w.saveWaiting(ctx, rows); err != nil {
		return err
	}
	announced, err := w.tx.Announced(ctx, rows)
	for _, p := range announced {
		err = errors.Join(err, w.tx.LinkNotices(ctx, p.Payment))
	}
	return err
}
