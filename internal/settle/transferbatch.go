package settle

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// transferBatch stores a number of transfers, one after the other: what the first
// changes counts for the next. What they need to know it asks for all at once,
// and keeps up to date meanwhile.
type transferBatch struct {
	*observer
	entries []*entry

	payments map[string]store.PaymentRow // by id: those of the transfers, as far as they are known
	invoices *invoiceSet                 // the invoices that could be meant, and those of known payments
	unsaved  []string                    // payments that are to be written, by id
	dirty    map[string]bool             // whether a payment is among those
	// histories are what paid invoices whose sums do not say what was due at a
	// payment, by the invoice's id, as far as they were read.
	histories  map[string]*invoice.History
	refunds    map[string]invoice.Refund // by id: those of the transfers, as they were stored
	paidPairs  map[store.Pair]bool       // invoices that could pay back
	refundSums *refundedSums             // how much of payments was paid back
	refundable map[store.Pair]paymentSet // payments that could be paid back, as far as they were read
	tagged     map[string]paymentSet     // by invoice: payments that refunds name, as far as they were read

	receivers       map[invoice.Address]store.ReceiverState // why payments to a receiver may have to wait
	undecided       map[string]bool                         // payments that are not decided, by id
	deferredRefunds []invoice.Transfer                      // what may pay back payments in blocks that were never read

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

func newTransferBatch(o *observer, transfers []invoice.Transfer) *transferBatch {
	b := &transferBatch{
		observer: o,
		payments: make(map[string]store.PaymentRow), invoices: newInvoiceSet(o.tx), histories: make(map[string]*invoice.History),
		dirty: make(map[string]bool), refunds: make(map[string]invoice.Refund), undecided: make(map[string]bool),
		refundSums: newRefundedSums(o.tx), refundable: make(map[store.Pair]paymentSet), tagged: make(map[string]paymentSet),
	}
	for _, t := range transfers {
		b.entries = append(b.entries, &entry{Transfer: t})
	}
	return b
}

// store stores the transfers and what follows from them.
func (b *transferBatch) store(ctx context.Context) error {
	for _, load := range []func(context.Context) error{b.load, b.loadUndecided, b.loadCandidates, b.loadRefunds} {
		if err := load(ctx); err != nil {
			return err
		}
	}
	for _, e := range b.entries {
		if e.paymentID != "" {
			if err := b.storePayment(ctx, e); err != nil {
				return err
			}
		}
		if err := b.storeRefundOut(ctx, e); err != nil {
			return err
		}
	}
	if err := b.save(ctx); err != nil {
		return err
	}
	if err := b.tx.DeferRefunds(ctx, b.deferredRefunds); err != nil {
		return err
	}
	return b.settle(ctx)
}

// out stores a transfer that goes out of a settlement address as a refund,
// unless it was attributed as a payment, or that is not decided yet. Above
// blocks that were never read it undecided: they may hold what it pays back.
func (b *transferBatch) storeRefundOut(ctx context.Context, e *entry) error {
	switch {
	case e.refundID == "" || b.undecided[e.paymentID]:
		return nil
	case b.payments[e.paymentID].Attributed():
		return b.orphanRefund(ctx, e)
	case b.isAbove(e.Position):
		b.deferredRefunds = append(b.deferredRefunds, e.Transfer)
	case b.paidPairs[e.pair()]:
		return b.storeRefund(ctx, e)
	}
	return nil
}

// load finds out what each transfer could be, and what is known of it.
func (b *transferBatch) load(ctx context.Context) error {
	var ends []invoice.Address
	for _, e := range b.entries {
		ends = append(ends, e.From, e.To)
	}
	slices.SortFunc(ends, func(a, b invoice.Address) int { return bytes.Compare(a[:], b[:]) })
	ours, err := b.tx.SettlementAddresses(ctx, b.chainKey, slices.Compact(ends))
	if err != nil {
		return err
	}
	var ids []string
	for _, e := range b.entries {
		if ours[e.To] {
			e.paymentID = invoice.TransferID(invoice.PrefixPayment, e.ChainKey, e.TxHash, e.Ordinal)
			ids = append(ids, e.paymentID)
		}
		if ours[e.From] {
			e.refundID = invoice.TransferID(invoice.PrefixRefund, e.ChainKey, e.TxHash, e.Ordinal)
		}
	}
	stored, err := b.tx.PaymentsByID(ctx, ids)
	for _, p := range stored {
		b.payments[p.ID] = p
	}
	return err
}

// loadCandidates finds the invoices that the transfers could be meant for, and
// those that known payments belong to.
func (b *transferBatch) loadCandidates(ctx context.Context) error {
	var asking []*entry
	for _, e := range b.entries {
		if p := b.payments[e.paymentID]; e.paymentID != "" && p.Status != invoice.Confirmed && !b.keepsAttribution(p, e) {
			asking = append(asking, e)
		}
	}
	if err := b.findCandidates(ctx, asking); err != nil {
		return err
	}
	var ids []string
	for _, p := range b.payments {
		if p.Attributed() && p.Status != invoice.Confirmed {
			ids = append(ids, p.InvoiceID)
		}
	}
	return b.invoices.load(ctx, ids...)
}

// findCandidates finds the invoices that the transfers could be meant for.
func (b *transferBatch) findCandidates(ctx context.Context, asking []*entry) error {
	transfers := make([]invoice.Transfer, len(asking))
	for i, e := range asking {
		transfers[i] = e.Transfer
	}
	found, err := b.tx.CandidateInvoices(ctx, b.chainKey, transfers)
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
	return b.invoices.add(ctx, invoices)
}

// keeps reports whether what was decided of a payment stays now that its block
// is read again, or it is mined again: as long as it moves the same money and
// the same evidence speaks for it, which a provider can have made up the first
// time. What somebody said does not depend on evidence. So does a payment that
// was left without an invoice: others may have seen it since, and have made an
// invoice or a remainder that its amount fits. One that waits for older blocks
// is looked at whenever it is read.
func (b *transferBatch) keepsAttribution(p store.PaymentRow, e *entry) bool {
	switch {
	case !p.SameMovement(e.Transfer):
		return false
	case p.Attributed():
		return p.Evidence == e.Evidence || p.Method.OffChain()
	}
	return !b.undecided[p.ID] && p.Evidence == e.Evidence
}

// payment stores a transfer to a settlement address. One that was seen before,
// in a block that a reorg left, is the same payment.
func (b *transferBatch) storePayment(ctx context.Context, e *entry) error {
	p, known := b.payments[e.paymentID]
	if p.Status == invoice.Confirmed {
		return nil // final: reading the chain again changes nothing
	}
	if !known {
		p.SeenID = b.ids.New("")
		p.ID, p.ObservedAt = e.paymentID, b.Now().Unix()
	}
	was := p.Payment
	kept := b.keepsAttribution(p, e)
	b.moved = b.moved || p.Status == invoice.Pending && p.BlockHash != e.BlockHash
	p.Transfer = e.Transfer
	p.Status, p.ConfirmedAt = b.status()
	if !kept {
		if err := b.attribute(ctx, e, &p.Payment); err != nil {
			return err
		}
	}
	if b.final {
		b.confirmed = append(b.confirmed, p.Payment)
	}
	b.put(was, p)
	return nil
}

// put keeps a payment as it is now, to be written.
func (b *transferBatch) put(was invoice.Payment, p store.PaymentRow) {
	b.invoices.replace(was, p.Payment)
	if h := b.histories[was.InvoiceID]; h != nil {
		h.Remove(was)
	}
	if h := b.histories[p.InvoiceID]; h != nil {
		h.Add(p.Payment)
	}
	if !b.dirty[p.ID] {
		b.dirty[p.ID] = true
		b.unsaved = append(b.unsaved, p.ID)
	}
	b.payments[p.ID] = p
	b.addRefundable(p.Payment)
}

// attribute finds the payment's invoice and announces the payment to its
// merchant, unless older blocks must be read first. A transfer that pays back a
// payment exactly is no payment by an amount that its sender was not told.
func (b *transferBatch) attribute(ctx context.Context, e *entry, p *invoice.Payment) error {
	candidates, err := b.withDue(ctx, *p, e.candidates)
	if err != nil {
		return err
	}
	a, ok := invoice.Attribute(p.Transfer, candidates, e.candidates.Truncated)
	if b.undecided[p.ID] = b.mustDefer(e, candidates, a); b.undecided[p.ID] {
		a, ok = invoice.Attribution{}, false
		b.receivers[p.To] = store.ReceiverState{Unbound: true, Undecided: true}
	}
	if ok && a.Method.Inferred() && e.refundID != "" && b.paidPairs[e.pair()] {
		m, back, err := b.matchRefund(ctx, e)
		if err != nil {
			return err
		}
		if back && m.Exact {
			a, ok = invoice.Attribution{}, false
		}
	}
	*p = p.Of(a)
	if !ok {
		if !b.undecided[p.ID] {
			b.outbox.unattributed = append(b.outbox.unattributed, *p)
		}
		return nil
	}
	return b.emitReceived(b.outbox, *p, a.Invoice)
}

// weigh says what of the candidates is due right before a payment. Where the
// transaction names its invoice, that decides nothing, and is not asked.
func (b *transferBatch) withDue(ctx context.Context, p invoice.Payment, found store.Candidates) ([]invoice.Candidate, error) {
	candidates := slices.Clone(found.Invoices)
	if slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.NamedBy(p.Transfer) }) {
		return candidates, nil
	}
	for _, inv := range b.invoices.partlyPaid(p.Transfer) {
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
		if c.Covered, c.Remainder, err = b.dueAt(ctx, b.invoices.invoices[c.ID], p); err != nil {
			return nil, err
		}
	}
	return candidates, nil
}

// dueAt returns whether the invoice is covered right before a payment on the
// chain, and else what remains of it. The sums say it, unless the invoice has
// payments above, or p itself was one of its payments.
func (b *transferBatch) dueAt(ctx context.Context, inv invoice.Invoice, p invoice.Payment) (bool, invoice.Amount, error) {
	was := b.payments[p.ID].Payment
	inOrder := inv.Sums.Newest.Before(p.Position) && !b.invoices.outOfOrder[inv.ID] && was.InvoiceID != inv.ID
	if inOrder && (inv.Covered() || inv.Status == invoice.Open) { // what remained of one that is closed is not kept
		return inv.Covered(), inv.Remaining, nil
	}
	h, err := b.history(ctx, inv)
	if err != nil {
		return false, invoice.Amount{}, err
	}
	h.Remove(was)
	defer h.Add(was)
	covered, remainder := h.DueAt(p.Position)
	return covered, remainder, nil
}

// history returns what paid the invoice, as it is by now.
func (b *transferBatch) history(ctx context.Context, inv invoice.Invoice) (*invoice.History, error) {
	if h := b.histories[inv.ID]; h != nil {
		return h, nil
	}
	rows, err := b.tx.PaymentsInTime(ctx, inv)
	if err != nil {
		return nil, err
	}
	var payments []invoice.Payment
	for _, row := range rows {
		if _, held := b.payments[row.ID]; !held {
			payments = append(payments, row.Payment)
		}
	}
	for _, held := range b.payments {
		payments = append(payments, held.Payment)
	}
	b.histories[inv.ID] = invoice.NewHistory(inv, payments)
	return b.histories[inv.ID], nil
}

// settle reckons what was found to be final, and writes the invoices.
func (b *transferBatch) settle(ctx context.Context) error {
	if err := b.recompute(ctx, b.outbox, b.invoices, b.confirmed, b.refunded); err != nil {
		return err
	}
	if err := b.refundSums.save(ctx); err != nil {
		return err
	}
	return b.saveInvoices(ctx, b.invoices, b.height)
}

// save writes the payments that were not written yet, and links the notices
// that announced them.
func (b *transferBatch) save(ctx context.Context) error {
	if len(b.unsaved) == 0 {
		return nil
	}
	rows := make([]store.PaymentRow, len(b.unsaved))
	for i, id := range b.unsaved {
		rows[i] = b.payments[id]
	}
	b.unsaved = nil
	clear(b.dirty)
	if err := b.tx.SavePayments(ctx, rows); err != nil {
		return err
	}
	if err := b.saveUndecided(ctx, rows); err != nil {
		return err
	}
	announced, err := b.tx.Announced(ctx, rows)
	for _, p := range announced {
		err = errors.Join(err, b.tx.LinkNotices(ctx, p.Payment))
	}
	return err
}
