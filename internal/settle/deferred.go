package settle

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// undecidedBatch is how many payments and how many refunds one transaction of
// attributeDeferred handles.
const undecidedBatch = 500

// attributeDeferred attributes the undecided payments and refunds of a chain in its order, once the
// older blocks on which they depend are read. It reports whether there may be more than one
// transaction handles. unfinal is how many of the chain's newest blocks are not final.
func (s *Service) attributeDeferred(ctx context.Context, tx *db.Tx, out *outbox, chainKey string, cur *Cursor, unfinal uint64) (more bool, err error) {
	if cur.Unread == nil || cur.Gap != nil && cur.Gap.Next <= *cur.Unread {
		return false, nil
	}
	payments, refunds, more, err := nextUndecided(ctx, tx, chainKey)
	if err != nil {
		return false, err
	}
	ids := make([]string, len(payments))
	transfers := slices.Clone(refunds)
	undecided := make(map[string]bool)
	for i, p := range payments {
		ids[i] = p.ID
		transfers = append(transfers, p.Transfer)
		undecided[p.ID] = true
	}
	slices.SortFunc(transfers, func(a, b invoice.Transfer) int { return a.Compare(b.Position) })
	transfers = slices.CompactFunc(transfers, func(a, b invoice.Transfer) bool { return a.TxHash == b.TxHash && a.Ordinal == b.Ordinal })
	invoices := newInvoiceSet(tx)
	b := s.newTransferBatch(invoices, out, chainScope{key: chainKey, indexed: cur.Indexed.Number, finalized: cur.Confirmed.Number}, transfers)
	b.undecided = undecided
	if b.lostPast, err = lostPast(ctx, tx, chainKey); err != nil {
		return false, err
	}
	if err := b.attributeUndecided(ctx, unfinal); err != nil {
		return false, err
	}
	if err := s.finishInvoices(ctx, out, invoices, cur.Indexed.Number); err != nil {
		return false, err
	}
	if err := UnmarkUndecided(ctx, tx, ids); err != nil {
		return false, err
	}
	if err := deleteUndecidedRefunds(ctx, tx, refunds); err != nil || more {
		return more, err
	}
	cur.Unread = nil
	return false, SaveCursor(ctx, tx, chainKey, *cur)
}

// blockRange is a range of blocks. The zero value is block 0, which holds no transactions.
type blockRange struct{ from, through uint64 }

func (r blockRange) has(block uint64) bool { return r.from <= block && block <= r.through }

// lostPast returns the blocks of a chain that a restored backup had not read, and that the recovery has.
func lostPast(ctx context.Context, tx *db.Tx, chainKey string) (r blockRange, err error) {
	r.from, r.through, err = LostPast(ctx, tx, chainKey)
	if errors.Is(err, db.ErrNotFound) {
		return blockRange{}, nil
	}
	return r, err
}

// nextUndecided returns the next undecided payments and refunds of the chain, and whether there may be
// more. If one list was cut off, the other ends below the same position, so that both are attributed
// in the chain's order.
func nextUndecided(ctx context.Context, tx *db.Tx, chainKey string) (payments []PaymentRow, refunds []invoice.Transfer, more bool, err error) {
	if payments, err = UndecidedPayments(ctx, tx, chainKey, undecidedBatch); err != nil {
		return nil, nil, false, err
	}
	if refunds, err = UndecidedRefunds(ctx, tx, chainKey, 0, math.MaxInt64, undecidedBatch); err != nil {
		return nil, nil, false, err
	}
	morePayments, moreRefunds := len(payments) == undecidedBatch, len(refunds) == undecidedBatch
	if moreRefunds {
		last := refunds[len(refunds)-1].Position
		payments = slices.DeleteFunc(payments, func(p PaymentRow) bool { return last.Before(p.Position) })
	}
	if morePayments && len(payments) > 0 {
		last := payments[len(payments)-1].Position
		refunds = slices.DeleteFunc(refunds, func(t invoice.Transfer) bool { return last.Before(t.Position) })
	}
	return payments, refunds, morePayments || moreRefunds, nil
}

// attributeUndecided attributes the undecided payments among the entries as if
// they were observed now, and stores the refunds.
func (b *transferBatch) attributeUndecided(ctx context.Context, unfinal uint64) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	var open []*entry
	for _, e := range b.entries {
		if b.undecided[e.paymentID] {
			open = append(open, e)
		}
	}
	if err := b.findCandidates(ctx, open); err != nil {
		return err
	}
	if err := b.loadRefunds(ctx); err != nil {
		return err
	}
	for _, e := range b.entries {
		if err := b.restorePrepared(ctx, e); err != nil {
			return err
		}
		if b.undecided[e.paymentID] {
			if err := b.attributeStored(ctx, e); err != nil {
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
	ids := make([]string, len(b.confirmed))
	for i, p := range b.confirmed {
		ids[i] = p.InvoiceID
	}
	if err := b.service.settleInOrder(ctx, b.invoices, ids, unfinal); err != nil {
		return err
	}
	return b.finish(ctx)
}

// attributeStored attributes a stored payment and its refunds.
func (b *transferBatch) attributeStored(ctx context.Context, e *entry) error {
	p := b.payments[e.paymentID]
	was := p.Payment
	if err := b.attribute(ctx, e, &p.Payment); err != nil || !p.Attributed() {
		return err
	}
	b.put(was, p)
	b.authorize(e, p.Payment)
	if p.Status == invoice.Confirmed {
		b.confirmed = append(b.confirmed, p.Payment)
	}
	refunds, err := confirmedRefunds(ctx, b.tx, p.ID)
	if err != nil {
		return err
	}
	for i := range refunds {
		refunds[i].InvoiceID, refunds[i].MerchantID = p.InvoiceID, p.MerchantID
	}
	b.refunded = append(b.refunded, refunds...)
	return nil
}

// loadUndecided reads which known payments are undecided, and the states of receivers that can have
// payments above blocks that were never read.
func (b *transferBatch) loadUndecided(ctx context.Context) (err error) {
	marked, err := NewReader(b.tx).WhichUndecided(ctx, slices.Collect(maps.Keys(b.payments)))
	for _, id := range marked {
		b.undecided[id], b.marked[id] = true, true
	}
	if b.chain.unread == nil || err != nil {
		return err
	}
	var receivers []invoice.Address
	for _, e := range b.entries {
		if e.paymentID != "" && !slices.Contains(receivers, e.To) {
			receivers = append(receivers, e.To)
		}
	}
	b.receivers, err = ReceiverStates(ctx, b.tx, b.chain.key, receivers)
	return err
}

// mustDefer reports whether the blocks that were never read can change the attribution of a transfer.
// They can hold payments of invoices that were created before the chain was first read, and so change
// their remainders; and an undecided payment can pay any invoice of its receiver. They can also hold
// the payment that a transfer from a settlement address refunds.
func (b *transferBatch) mustDefer(e *entry, candidates []invoice.Candidate, a invoice.Attribution) bool {
	t := e.Transfer
	if !b.chain.isAboveUnread(t.Position) {
		return false
	}
	inferred := a.Method == "" || a.Method.Inferred()
	receiver := b.receivers[t.To]
	switch {
	case inferred && e.refundID != "":
		return true
	case !receiver.Unbound && !receiver.Undecided:
		return false
	case inferred:
		return true
	}
	if a.Method != invoice.ByTransferAmount {
		return false
	}
	bound := !receiver.Undecided
	var rivals bool // other invoices have the amount; earlier payments decide whether they await it
	for _, c := range candidates {
		bound = bound && c.FromBlock > 0
		rivals = rivals || !c.HasTransferAmount && c.Amount == t.Amount
	}
	return rivals && !bound
}

// saveUndecided marks the undecided payments and unmarks the others.
func (b *transferBatch) saveUndecided(ctx context.Context, payments []PaymentRow) error {
	var undecided []PaymentRow
	var decided []string
	for _, p := range payments {
		switch {
		case b.undecided[p.ID]:
			b.marked[p.ID] = true
			undecided = append(undecided, p)
		case b.marked[p.ID]:
			delete(b.marked, p.ID)
			decided = append(decided, p.ID)
		}
	}
	if err := UnmarkUndecided(ctx, b.tx, decided); err != nil {
		return err
	}
	return MarkUndecided(ctx, b.tx, undecided)
}
