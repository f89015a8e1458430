package settle

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/invoice"
)

// transferBatch stores transfers of one chain in its order, as payments, refunds or both. It loads the
// necessary rows in a few queries, and updates them in memory, so that each transfer sees the effects
// of earlier ones.
type transferBatch struct {
	service *Service
	tx      *db.Tx
	out     *outbox
	chain   chainScope
	entries []*entry

	payments map[string]PaymentRow // known payments of the entries, by id
	unsaved  []string              // ids of the payments to be written, in order
	dirty    map[string]bool       // whether a payment is in unsaved
	// reattributed are the ids of unsaved payments that were stored before with another invoice.
	reattributed []string
	// minedAgain are the ids of payments that were orphaned.
	minedAgain []string
	lastSeq    int64            // number of the newest event before the batch
	created    map[string]int64 // numbers of invoice.created events by invoice, 0 if removed; read on demand
	invoices   *invoiceSet      // candidates, and the invoices of known payments

	refunds    map[string]invoice.Refund // stored refunds of the entries, by id
	prepared   []invoice.RefundRecord    // prepared refunds that the entries may pay
	refundSums *refundedSums             // refunded amounts of payments
	paidPairs  map[Pair]bool             // accounts between which payments were made
	proved     map[invoice.Address]bool  // whether settlement addresses are controlled by their holders; read on demand
	refundable map[Pair]paymentSet       // payments that can be refunded; read on demand
	tagged     map[string]paymentSet     // older payments of invoices that refunds name, by invoice

	receivers       map[invoice.Address]ReceiverState
	undecided       map[string]bool    // ids of undecided payments
	lostPast        blockRange         // blocks of a lost past; undecided payments in them are attributed now
	marked          map[string]bool    // ids of the payments that are stored as undecided
	deferredRefunds []invoice.Transfer // possible refunds above blocks that were never read

	authorized map[string]string // ids of the payments that authorizations made, or "", by authorization, to be written

	// The confirmed payments and refunds, which recompute counts, and the confirmed sweeps.
	confirmed []invoice.Payment
	counted   int // number of confirmed that are counted
	refunded  []invoice.Refund
	swept     []invoice.Sweep
	moved     bool     // a pending payment was found in another block than before
	found     bool     // a payment of an invoice was not known, or was orphaned
	returning []string // ids of payments with a changed refundable amount
}

// entry is a transfer of a batch. It is a sweep when it comes from a deposit address.
// Otherwise it can be a payment when it goes to a settlement or deposit address, and a
// refund when it comes from a settlement address.
type entry struct {
	invoice.Transfer
	paymentID string // empty if it is not a payment
	refundID  string // empty if it is not from a settlement address
	sweepID   string // empty if it is not a sweep
	depositOf string // the invoice that owns the receiving deposit address, or empty
	sweepOf   string // the invoice that owns the sending deposit address, or empty
	fromLost  bool   // it comes from the deposit address of a lost invoice, so it is a sweep that is not recorded
	toLost    bool   // it goes to the deposit address of a lost invoice

	// bound is the authorization that made it, with its invoice; zero without one that the
	// service accepted.
	bound BoundAuthorization

	// The invoices that it can pay: see findCandidates.
	named    []string // ids of the invoices that its transaction names
	assigned string   // id of the invoice with it as transfer amount, or empty
	group    *amountGroup
}

// refundPair returns the accounts of the payment that the transfer refunds, if
// it is a refund.
func (e *entry) refundPair() Pair { return Pair{Payer: e.To, Receiver: e.From} }

// newTransferBatch returns a batch that shares the invoices with the other batches
// of the transaction.
func (s *Service) newTransferBatch(invoices *invoiceSet, out *outbox, scope chainScope, transfers []invoice.Transfer) *transferBatch {
	tx := invoices.tx
	b := &transferBatch{
		service: s, tx: tx, out: out, chain: scope,
		payments: make(map[string]PaymentRow), dirty: make(map[string]bool), created: make(map[string]int64),
		proved:   make(map[invoice.Address]bool),
		invoices: invoices, refunds: make(map[string]invoice.Refund), refundSums: newRefundedSums(tx),
		refundable: make(map[Pair]paymentSet), tagged: make(map[string]paymentSet),
		undecided: make(map[string]bool), marked: make(map[string]bool), authorized: make(map[string]string),
	}
	for _, t := range transfers {
		b.entries = append(b.entries, &entry{Transfer: t})
	}
	return b
}

// store stores the transfers, the invoices they change and the events.
func (b *transferBatch) store(ctx context.Context) error {
	for _, load := range []func(context.Context) error{b.load, b.loadUndecided, b.loadCandidates, b.loadRefunds, b.storeSweeps} {
		if err := load(ctx); err != nil {
			return err
		}
	}
	for _, e := range b.entries {
		if err := b.restorePrepared(ctx, e); err != nil {
			return err
		}
		if e.paymentID != "" {
			if err := b.storePayment(ctx, e); err != nil {
				return err
			}
		}
		if err := b.storeOutgoing(ctx, e); err != nil {
			return err
		}
	}
	if err := b.save(ctx); err != nil {
		return err
	}
	if err := b.noteUnrecognized(ctx); err != nil {
		return err
	}
	if err := deferRefunds(ctx, b.tx, b.deferredRefunds); err != nil {
		return err
	}
	return b.finish(ctx)
}

// load finds out which of the transfers go to or come from a settlement or deposit
// address, and reads the payments that are stored already.
func (b *transferBatch) load(ctx context.Context) error {
	var ends []invoice.Address
	for _, e := range b.entries {
		ends = append(ends, e.From, e.To)
	}
	slices.SortFunc(ends, func(a, b invoice.Address) int { return bytes.Compare(a[:], b[:]) })
	ends = slices.Compact(ends)
	ours, err := access.SettlementAddresses(ctx, b.tx, b.chain.key, ends)
	if err != nil {
		return err
	}
	if err := b.loadDeposits(ctx, ends); err != nil {
		return err
	}
	var ids []string
	for _, e := range b.entries {
		if e.sweepID != "" || e.fromLost {
			continue
		}
		if ours[e.To] || e.toLost || e.depositOf != "" {
			e.paymentID = b.tx.TransferID(invoice.PrefixPayment, e.Transfer)
			ids = append(ids, e.paymentID)
		}
		if ours[e.From] {
			e.refundID = b.tx.TransferID(invoice.PrefixRefund, e.Transfer)
		}
	}
	if err := b.loadAuthorizations(ctx); err != nil {
		return err
	}
	stored, err := PaymentsByID(ctx, b.tx, ids)
	for _, p := range stored {
		b.payments[p.ID] = p
	}
	if err == nil && len(stored) < len(ids) {
		b.lastSeq, err = dispatcher.NewReader(b.tx).LastSeq(ctx)
	}
	return err
}

// loadCandidates reads the invoices that the transfers can pay, and the invoices of known payments.
func (b *transferBatch) loadCandidates(ctx context.Context) error {
	var open []*entry
	for _, e := range b.entries {
		if p := b.payments[e.paymentID]; e.paymentID != "" && e.depositOf == "" && p.Status != invoice.Confirmed && !b.keepsAttribution(p, e) {
			open = append(open, e)
		}
	}
	if err := b.findCandidates(ctx, open); err != nil {
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

// keepsAttribution reports whether a stored payment keeps its attribution now that its block is read
// again or it is mined again. It does while it transfers the same money on the same evidence, because
// a provider can have made up the first evidence. An attribution made off the chain does not depend on
// evidence. A payment without an invoice stays without, unless other evidence names one. An undecided
// payment is attributed whenever it is read, and so is one with an authorization that was bound to an
// invoice since.
func (b *transferBatch) keepsAttribution(p PaymentRow, e *entry) bool {
	switch {
	case !p.SameMovement(e.Transfer):
		return false
	case e.bound.InvoiceID != "" && e.bound.InvoiceID != p.InvoiceID && !p.Method.OffChain():
		return false
	case p.Attributed():
		return p.Evidence == e.Evidence || p.Method.OffChain()
	}
	return !b.undecided[p.ID] && p.Evidence == e.Evidence
}

// storePayment stores a transfer to a settlement or deposit address. A transfer that a
// reorg moved to another block is the same payment.
func (b *transferBatch) storePayment(ctx context.Context, e *entry) error {
	p, known := b.payments[e.paymentID]
	was := p.Payment
	if was.Status == invoice.Confirmed {
		return nil // final: reading the chain again has no effect
	}
	if !known {
		p.SeenID, p.SeenAfter = b.service.ids.New(""), b.lastSeq
		p.ID, p.ObservedAt = e.paymentID, b.service.seconds()
	}
	kept := b.keepsAttribution(p, e)
	b.moved = b.moved || p.Status == invoice.Pending && p.BlockHash != e.BlockHash
	p.Transfer = e.Transfer
	p.Status, p.ConfirmedAt = b.status()
	if !kept {
		if err := b.attribute(ctx, e, &p.Payment); err != nil {
			return err
		}
		if known && was.InvoiceID != p.InvoiceID {
			if err := b.moveRefunds(ctx, was, p.Payment); err != nil {
				return err
			}
		}
	}
	if b.chain.final {
		b.confirmed = append(b.confirmed, p.Payment)
	}
	b.put(was, p)
	b.authorize(e, p.Payment)
	if known && !was.SameMovement(e.Transfer) {
		return b.judgeRefunds(ctx, p.Payment)
	}
	return nil
}

// status returns the state of a transfer that is observed now, and when it was
// confirmed.
func (b *transferBatch) status() (invoice.PaymentStatus, time.Time) {
	if b.chain.final {
		return invoice.Confirmed, b.service.seconds()
	}
	return invoice.Pending, time.Time{}
}

// put replaces a payment in memory and marks it to be written.
func (b *transferBatch) put(was invoice.Payment, p PaymentRow) {
	b.invoices.replace(was, p.Payment)
	if !b.dirty[p.ID] {
		b.dirty[p.ID] = true
		b.unsaved = append(b.unsaved, p.ID)
	}
	if was.ID != "" && was.InvoiceID != p.InvoiceID {
		b.reattributed, b.returning = append(b.reattributed, p.ID), append(b.returning, p.ID)
	}
	if was.Status == invoice.Orphaned && p.Status != invoice.Orphaned {
		b.minedAgain = append(b.minedAgain, p.ID)
	}
	b.found = b.found || p.Attributed() && (was.ID == "" || was.Status == invoice.Orphaned)
	b.payments[p.ID] = p
	b.addRefundable(p.Payment)
}

// attribute sets the payment's invoice and emits payment.received, unless the attribution has to be
// deferred. A transfer that was prepared as a refund is a refund, before any other rule, and pays no
// invoice. A transfer that refunds a payment exactly is not attributed by an inferred method. A
// payment without an invoice that has another use stays without.
func (b *transferBatch) attribute(ctx context.Context, e *entry, p *invoice.Payment) error {
	if stays, err := b.staysWithout(ctx, e, p); err != nil || stays {
		return err
	}
	// A reorg can change where a transfer of the same transaction goes.
	p.DepositOf, p.SettlesTo = "", invoice.Address{}
	if e.depositOf != "" {
		b.undecided[p.ID] = false
		return b.attributeDeposit(e, p)
	}
	candidates, truncated, err := b.candidatesAt(ctx, *p, e)
	if err != nil {
		return err
	}
	a, ok := invoice.Attribute(p.Transfer, candidates, truncated)
	if b.undecided[p.ID] = b.mustDefer(e, candidates, a); b.undecided[p.ID] {
		a, ok = invoice.Attribution{}, false
		b.receivers[p.To] = ReceiverState{Unbound: true, Undecided: true}
	}
	if ok && a.Method.Inferred() && e.refundID != "" && b.mayRefund(e) {
		m, isRefund, err := b.matchRefund(ctx, e)
		if err != nil {
			return err
		}
		if isRefund && m.Exact {
			a, ok = invoice.Attribution{}, false
		}
	}
	*p = p.WithAttribution(a)
	if !ok {
		if !b.undecided[p.ID] {
			b.out.unattributed = append(b.out.unattributed, *p)
		}
		return nil
	}
	return b.service.emitReceived(b.out, *p, a.Invoice)
}

// staysWithout reports whether a payment stays without an invoice regardless of the rules: it has
// another use, or is a prepared refund.
func (b *transferBatch) staysWithout(ctx context.Context, e *entry, p *invoice.Payment) (bool, error) {
	used, err := b.isUsed(ctx, e, p.ID)
	if err != nil {
		return false, err
	}
	if !used {
		refund, err := b.isPreparedRefund(ctx, e)
		if err != nil || !refund {
			return false, err
		}
		b.leaveUnattributed(e, p)
	}
	b.undecided[p.ID] = false
	return true, nil
}

// isUsed reports whether a stored payment without an invoice, which transfers the same money as
// before, has a use that excludes an invoice. A refund in a lost past of an undecided payment does not
// exclude one: it refunds the invoice that was imported since.
func (b *transferBatch) isUsed(ctx context.Context, e *entry, paymentID string) (bool, error) {
	was, known := b.payments[paymentID]
	used := known && !was.Attributed() && was.SameMovement(e.Transfer) && was.Use.Excludes(invoice.ActAttribute)
	refunded := was.Use == invoice.UseRefunding || was.Use == invoice.UseRefunded
	if !used || !refunded || !b.undecided[paymentID] || !b.lostPast.has(was.BlockNumber) {
		return used, nil
	}
	refunds, err := RefundsOfPayments(ctx, b.tx, []string{paymentID})
	refunds = slices.DeleteFunc(refunds, func(r invoice.Refund) bool { return !isActive(r) })
	later := slices.ContainsFunc(refunds, func(r invoice.Refund) bool { return !b.lostPast.has(r.BlockNumber) })
	return later || len(refunds) == 0, err
}

// dueAt returns whether the invoice is covered right before a payment on the chain, and otherwise its
// remainder. The invoice's sums determine it, unless it has payments above p, or p itself was one of
// its payments.
func (b *transferBatch) dueAt(ctx context.Context, inv invoice.Invoice, p invoice.Payment) (bool, invoice.Amount, error) {
	was := b.payments[p.ID].Payment
	if !inv.Covered() && !inv.HasParts() {
		return false, invoice.Amount{}, nil
	}
	inOrder := inv.Sums.Newest.Before(p.Position) && !b.invoices.outOfOrder[inv.ID] && was.InvoiceID != inv.ID
	if inOrder && (inv.Covered() || inv.Status == invoice.Open) { // Remaining is kept only for open invoices
		return inv.Covered(), inv.Remaining, nil
	}
	h, err := b.invoices.history(ctx, inv.ID, b.payments)
	if err != nil {
		return false, invoice.Amount{}, err
	}
	h.Remove(was)
	defer h.Add(was)
	covered, remainder := h.DueAt(p.Position)
	return covered, remainder, nil
}
