package settle

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// maxTagged bounds the payments of an invoice that are candidates for a refund with calldata that
// names the invoice.
const maxTagged = 1000

// paymentSet is the refundable payments, by id.
type paymentSet map[string]invoice.Payment

// loadRefunds reads the stored refunds of the entries, and which accounts paid
// each other. A transfer out of a settlement address to an account that never
// paid there is not a refund, unless it was prepared.
func (b *transferBatch) loadRefunds(ctx context.Context) error {
	var ids []string
	var pairs []Pair
	for _, e := range b.entries {
		if e.refundID != "" {
			ids, pairs = append(ids, e.refundID), append(pairs, e.refundPair())
		}
	}
	if err := b.loadPrepared(ctx); err != nil {
		return err
	}
	stored, err := RefundsByID(ctx, b.tx, ids)
	if err != nil {
		return err
	}
	for _, r := range stored {
		b.refunds[r.ID] = r
	}
	b.paidPairs, err = PaidPairs(ctx, b.tx, b.chain.key, pairs)
	return err
}

// addRefundable adds a refundable payment.
func (b *transferBatch) addRefundable(p invoice.Payment) {
	pair := Pair{Payer: p.From, Receiver: p.RefundedFrom()}
	b.paidPairs[pair] = true
	if set, ok := b.refundable[pair]; ok {
		set[p.ID] = p
	}
}

// storeOutgoing stores a transfer out of a settlement address as a refund,
// unless it is an attributed or undecided payment. Above blocks that were never
// read it is deferred, because they may hold the payment that it refunds, unless
// its calldata names a prepared refund.
func (b *transferBatch) storeOutgoing(ctx context.Context, e *entry) error {
	switch {
	case e.refundID == "" || b.undecided[e.paymentID]:
		return nil
	case b.payments[e.paymentID].Attributed():
		if err := b.orphanRefund(ctx, e); err != nil {
			return err
		}
	case b.isNamed(e): // its payment is known
		return b.storeRefund(ctx, e)
	case b.chain.isAboveUnread(e.Position):
		b.deferredRefunds = append(b.deferredRefunds, e.Transfer)
		return nil
	case b.mayRefund(e):
		if err := b.storeRefund(ctx, e); err != nil {
			return err
		}
	}
	return b.endAwait(ctx, e)
}

// storeRefund stores a transfer as a refund, if it refunds a payment.
func (b *transferBatch) storeRefund(ctx context.Context, e *entry) error {
	was, known := b.refunds[e.refundID]
	if was.Status == invoice.Confirmed {
		return nil
	}
	r := was
	if !known {
		r.ID, r.ObservedAt = e.refundID, b.service.seconds()
	}
	m, ok, err := b.matchRefund(ctx, e)
	if err == nil && !ok && known {
		m, ok, err = b.keptMatch(ctx, was, e)
	}
	if err != nil || !ok {
		return err
	}
	r.Transfer = e.Transfer
	r.Status, r.ConfirmedAt = b.status()
	if e.BlockNumber <= b.chain.finalized { // its attribution was deferred
		r.Status, r.ConfirmedAt = invoice.Confirmed, b.service.seconds()
	}
	r = matched(r, m)
	if r.Status == invoice.Confirmed && r.Attributed() {
		b.refunded = append(b.refunded, r)
		if err := b.invoices.load(ctx, r.InvoiceID); err != nil {
			return err
		}
	}
	delete(b.refundable[Pair{Payer: e.From, Receiver: e.To}], e.paymentID) // a refund is not refunded
	if b.isNamed(e) && !b.proved[e.From] {
		b.proved[e.From] = true
		if err := ProveAddress(ctx, b.tx, r); err != nil {
			return err
		}
	}
	return b.saveRefund(ctx, was, r)
}

// matched returns a refund with the matching payment.
func matched(r invoice.Refund, m invoice.RefundMatch) invoice.Refund {
	p := m.Payment
	r.PaymentID, r.InvoiceID, r.MerchantID, r.PreparedID = p.ID, p.InvoiceID, p.MerchantID, m.PreparedID
	return r
}

// orphanRefund orphans the pending refund that was stored for a transfer, now that the transfer is a
// payment. A confirmed one stays.
func (b *transferBatch) orphanRefund(ctx context.Context, e *entry) error {
	was, known := b.refunds[e.refundID]
	if known {
		b.returning = append(b.returning, was.PaymentID)
	}
	if !known || was.Status != invoice.Pending {
		return nil
	}
	r := was
	r.Status = invoice.Orphaned
	return b.saveRefund(ctx, was, r)
}

func (b *transferBatch) saveRefund(ctx context.Context, was, is invoice.Refund) error {
	if err := b.save(ctx); err != nil { // the refund refers to its payment
		return err
	}
	if err := b.refundSums.replace(ctx, was, is); err != nil {
		return err
	}
	b.refunds[is.ID] = is
	b.linkPrepared(is)
	if err := SaveRefund(ctx, b.tx, is); err != nil {
		return err
	}
	if err := b.endWaiver(ctx, was, is); err != nil {
		return err
	}
	if was.PaymentID != "" && was.PaymentID != is.PaymentID {
		if err := RefreshItems(ctx, b.tx, was.PaymentID); err != nil {
			return err
		}
	}
	b.countConfirmed(is.BlockNumber)
	if err := b.invoices.settleBelow(ctx, is.InvoiceID, is.BlockNumber); err != nil {
		return err
	}
	return b.recountReturned(ctx, was.PaymentID, is.PaymentID)
}

// endWaiver undoes the waiver of the rest of an invoice's amount, after a payment that counts for the
// invoice is sent back. A person waived the rest because that payment had arrived.
func (b *transferBatch) endWaiver(ctx context.Context, was, is invoice.Refund) error {
	if !isActive(is) || !is.Attributed() || isActive(was) && was.PaymentID == is.PaymentID {
		return nil
	}
	p, ok, err := b.payment(ctx, is.PaymentID)
	if err != nil || !ok {
		return err
	}
	waiver, ok, err := waiverOf(ctx, b.tx, p)
	if err != nil || !ok {
		return err
	}
	d := waiver
	d.UndoneBy, d.UndoneAt = "the refund "+is.ID, b.service.seconds()
	b.out.audit = append(b.out.audit, access.NewEntry(ctx, b.service.now(), access.Change{
		MerchantID: d.MerchantID, Action: access.ActionInboxUndo, Object: d.ID, Before: auditDecision(waiver), After: auditDecision(d),
	}))
	return UndoDecision(ctx, b.tx, d)
}

// matchRefund returns the payment that a transfer refunds. It is the payment of the prepared refund
// that the transfer pays. Without one, it is a payment of the invoice that the calldata names. Without
// that, and if the transfer is trusted, it is one of the newest payments between the two accounts.
func (b *transferBatch) matchRefund(ctx context.Context, e *entry) (invoice.RefundMatch, bool, error) {
	if m, decided, err := b.matchPrepared(ctx, e); err != nil || decided {
		return m, m.Payment.ID != "", err
	}
	payments, err := b.refundablePayments(ctx, e)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	tag, tagged, err := b.taggedPayments(ctx, e.Transfer, payments)
	if err != nil {
		return invoice.RefundMatch{}, false, err
	}
	if tag != "" {
		payments = tagged
	} else if trusted, err := b.trusts(ctx, e); err != nil || !trusted {
		return invoice.RefundMatch{}, false, err
	}
	if err := b.refundSums.load(ctx, slices.Collect(maps.Keys(payments))...); err != nil {
		return invoice.RefundMatch{}, false, err
	}
	m, ok := invoice.AttributeRefund(e.Transfer, slices.Collect(maps.Values(payments)), func(p invoice.Payment) invoice.Amount {
		return p.Amount.Minus(b.refundSums.without(p.ID, b.refunds[e.refundID]))
	}, tag)
	return m, ok, nil
}

// trusts reports whether a transfer that names no refund can be one. A transfer from a settlement
// address to another one can be a refund only if the holder of the sending address has proved control
// of it. Otherwise the sender may be an exchange's account that pays for the exchange's customers.
func (b *transferBatch) trusts(ctx context.Context, e *entry) (bool, error) {
	if e.paymentID == "" {
		return true, nil
	}
	proved, known := b.proved[e.From]
	if known {
		return proved, nil
	}
	proved, err := isProved(ctx, b.tx, b.chain.key, e.From)
	b.proved[e.From] = proved
	return proved, err
}

// refundablePayments returns the newest payments that a transfer between two
// accounts can refund. They are read once, and then kept up to date.
func (b *transferBatch) refundablePayments(ctx context.Context, e *entry) (paymentSet, error) {
	if set, ok := b.refundable[e.refundPair()]; ok {
		return set, nil
	}
	if err := b.save(ctx); err != nil { // some may be of this batch
		return nil, err
	}
	last := b.entries[len(b.entries)-1].BlockNumber
	rows, err := PaymentsBetween(ctx, b.tx, b.chain.key, e.To, e.From, last)
	if err != nil {
		return nil, err
	}
	set := make(paymentSet, len(rows))
	for _, row := range rows {
		set[row.ID] = row.Payment
	}
	if e.paymentID != "" {
		if err := b.dropRefunds(ctx, set); err != nil {
			return nil, err
		}
	}
	b.refundable[e.refundPair()] = set
	return set, nil
}

// dropRefunds deletes the payments that are refunds themselves. Only transfers
// between two settlement addresses can be both.
func (b *transferBatch) dropRefunds(ctx context.Context, set paymentSet) error {
	ofRefund := make(map[string]string)
	ids := make([]string, 0, len(set))
	for id, p := range set {
		refundID := b.tx.TransferID(invoice.PrefixRefund, p.Transfer)
		ofRefund[refundID] = id
		ids = append(ids, refundID)
	}
	refunds, err := RefundsByID(ctx, b.tx, ids)
	for _, r := range refunds {
		if r.Status != invoice.Orphaned {
			delete(set, ofRefund[r.ID])
		}
	}
	return err
}

// taggedPayments returns the invoice of the sender that the transfer's calldata
// names, or an empty id, and its payments: those among the refundable ones, or
// else the newest stored.
func (b *transferBatch) taggedPayments(ctx context.Context, t invoice.Transfer, refundable paymentSet) (id string, tagged paymentSet, err error) {
	if t.Evidence.Calldata.IsZero() {
		return "", nil, nil
	}
	inv, err := InvoiceByCommitment(ctx, b.tx, t.Evidence.Calldata)
	if errors.Is(err, db.ErrNotFound) || err == nil && (inv.ChainKey != t.ChainKey || inv.Merchant != t.From) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	tagged = make(paymentSet)
	for id, p := range refundable {
		if p.InvoiceID == inv.ID {
			tagged[id] = p
		}
	}
	if len(tagged) > 0 {
		return inv.ID, tagged, nil
	}
	if older, ok := b.tagged[inv.ID]; ok {
		return inv.ID, older, nil
	}
	rows, err := NewReader(b.tx).NewestPayments(ctx, inv.ID, maxTagged)
	for _, row := range rows {
		tagged[row.ID] = row.Payment
	}
	b.tagged[inv.ID] = tagged
	return inv.ID, tagged, err
}
