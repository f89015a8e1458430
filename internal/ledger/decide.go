package ledger

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ErrItemChanged means that an item of the inbox has changed since the person saw it.
var ErrItemChanged = errors.New("the item has changed")

// DecidedError means that another person has decided about an item.
type DecidedError struct{ invoice.Decision }

// Error names who decided.
func (e *DecidedError) Error() string { return "decided by " + e.By }

// AttributedError means that a payment belongs to another invoice.
type AttributedError struct{ invoice.Payment }

// Error returns the text of ErrAttributed.
func (e *AttributedError) Error() string { return ErrAttributed.Error() }

// Is reports whether target is ErrAttributed.
func (e *AttributedError) Is(target error) bool { return target == ErrAttributed }

// DecisionRequest is a decision about an item of the inbox. The caller checks Reason by the rules of a label.
type DecisionRequest struct {
	Kind     invoice.ItemKind
	ObjectID string
	Version  string // version of the item that the person saw
	Outcome  invoice.Outcome
	Reason   string
	// InvoiceID is the invoice of an attribution, and empty for other outcomes.
	InvoiceID string
	// MerchantID, if set, is the merchant that decides. Only its items are found then.
	MerchantID string
}

// auditedDecision is a decision in the audit log.
type auditedDecision struct {
	Kind      invoice.ItemKind `json:"kind"`
	ObjectID  string           `json:"objectId"`
	Decision  invoice.Outcome  `json:"decision"`
	Reason    string           `json:"reason"`
	InvoiceID string           `json:"invoiceId,omitempty"`
	UndoneBy  string           `json:"undoneBy,omitempty"`
}

func auditDecision(d invoice.Decision) auditedDecision {
	return auditedDecision{d.Kind, d.ObjectID, d.Outcome, d.Reason, d.InvoiceID, d.UndoneBy}
}

// Decide records a decision about an item, which takes it out of the inbox while it has this version.
// It does not change payments, invoices or refunds; ApplyAttributions does so after invoice.AttributionDelay. A
// quarantined payment is released or rejected at once, only by the operator, and that cannot be undone.
// If two people decide, the second gets an error.
//
// Errors are db.ErrNotFound, *invoice.FieldError, *DecidedError, *AttributedError, ErrUndecided, ErrItemChanged, and
// *UsedError while a refund of the payment, or of one of the invoice, is prepared or not final. Those of an
// attribution are the errors of AttributeManually, too.
func (s *Service) Decide(ctx context.Context, req DecisionRequest) (d invoice.Decision, err error) {
	if err := invoice.CheckOutcome(req.Kind, req.Outcome); err != nil {
		return d, err
	}
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		item, merchantID, err := s.lockItem(ctx, tx, req.ObjectID, req.MerchantID)
		if err != nil {
			return err
		}
		if req.Kind == invoice.ItemQuarantined && access.FromContext(ctx).MerchantID != "" {
			return ErrOperatorDecides
		}
		if err := wantUndecided(ctx, tx, item, merchantID); err != nil {
			return err
		}
		if err := s.wantFree(ctx, tx, out, item, req); err != nil {
			return err
		}
		if item.Kind != req.Kind || item.Version != req.Version {
			return ErrItemChanged
		}
		d = invoice.Decision{
			ID: s.ids.New(invoice.PrefixDecision), MerchantID: merchantID, Kind: item.Kind, ObjectID: req.ObjectID, Version: item.Version,
			Outcome: req.Outcome, Reason: req.Reason, By: access.FromContext(ctx).Label(), At: s.seconds(),
		}
		switch req.Outcome {
		case invoice.Attributed:
			d.InvoiceID, d.AppliesAt = req.InvoiceID, d.At.Add(invoice.AttributionDelay)
		case invoice.Released, invoice.Rejected:
			d.AppliedAt = d.At
			if err := s.setScreening(ctx, tx, out, item.Payment.ChainKey, []Verdict{{item.Payment, invoice.Screening(req.Outcome), item.Payment.ScreeningReason}}); err != nil {
				return err
			}
		case invoice.Dismissed, invoice.Accepted:
		}
		out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
			MerchantID: merchantID, Action: access.ActionInboxDecide, Object: d.ID, After: auditDecision(d),
		}))
		return InsertDecision(ctx, tx, d)
	})
	return d, err
}

// UndoDecision undoes a decision, so that its item is in the inbox again if it still needs a decision.
// Repeating it has no effect. If merchantID is set, only decisions of that merchant are found. The
// error is db.ErrNotFound, *AttributedError for an attribution that has taken effect, or ErrScreened.
func (s *Service) UndoDecision(ctx context.Context, id, merchantID string) (d invoice.Decision, err error) {
	err = s.update(ctx, func(tx *db.Tx, out *outbox) error {
		was, err := decision(ctx, tx, id)
		if err == nil && merchantID != "" && was.MerchantID != merchantID {
			err = db.ErrNotFound
		}
		if err != nil {
			return err
		}
		item, _, err := s.lockItem(ctx, tx, was.ObjectID, "")
		if err != nil {
			return err
		}
		if d, err = decision(ctx, tx, id); err != nil || d.UndoneBy != "" {
			return err
		}
		if d.Outcome == invoice.Released || d.Outcome == invoice.Rejected {
			return ErrScreened
		}
		if !d.AppliedAt.IsZero() {
			return &AttributedError{item.Payment.Payment}
		}
		d.UndoneBy, d.UndoneAt = access.FromContext(ctx).Label(), s.seconds()
		out.audit = append(out.audit, access.NewEntry(ctx, s.conf.Now(), access.Change{
			MerchantID: d.MerchantID, Action: access.ActionInboxUndo, Object: d.ID, Before: auditDecision(was), After: auditDecision(d),
		}))
		return endDecision(ctx, tx, d)
	})
	return d, err
}

// lockItem returns the item of an object, under the lock of its chain, and the merchant of the inbox that it is in.
func (s *Service) lockItem(ctx context.Context, tx *db.Tx, objectID, merchantID string) (item InboxItem, of string, err error) {
	switch {
	case strings.HasPrefix(objectID, invoice.PrefixPayment):
		return lockPaymentItem(ctx, tx, objectID, merchantID)
	case strings.HasPrefix(objectID, invoice.PrefixInvoice):
		item, err = lockInvoiceItem(ctx, tx, objectID)
		of = item.Invoice.MerchantID
	case strings.HasPrefix(objectID, invoice.PrefixRefund):
		var r invoice.RefundRecord
		if r, err = NewReader(tx).RefundRecord(ctx, objectID); err == nil {
			r, err = lockRefund(ctx, tx, r)
		}
		item, of = s.refundItem(r), r.MerchantID
	default:
		err = db.ErrNotFound
	}
	if err == nil && merchantID != "" && of != merchantID {
		err = db.ErrNotFound
	}
	return item, of, err
}

func lockInvoiceItem(ctx context.Context, tx *db.Tx, id string) (InboxItem, error) {
	inv, err := NewReader(tx).Invoice(ctx, id)
	if err != nil {
		return InboxItem{}, err
	}
	if _, err := LockCursor(ctx, tx, inv.ChainKey); err != nil {
		return InboxItem{}, err
	}
	inv, err = NewReader(tx).Invoice(ctx, id)
	return invoiceItem(inv), err
}

// lockPaymentItem returns the item of a payment. For the operator, it is in the inbox of the
// one merchant that sees the payment, if there is exactly one.
func lockPaymentItem(ctx context.Context, tx *db.Tx, id, merchantID string) (item InboxItem, of string, err error) {
	p, err := NewReader(tx).Payment(ctx, id)
	if err != nil {
		return item, "", err
	}
	if _, err := LockCursor(ctx, tx, p.ChainKey); err != nil {
		return item, "", err
	}
	if p, err = NewReader(tx).Payment(ctx, id); err != nil {
		return item, "", err
	}
	if ok, err := sees(ctx, tx, merchantID, p); err != nil || !ok {
		return item, "", cmp.Or(err, db.ErrNotFound)
	}
	if of = merchantID; of == "" && p.Attributed() {
		of = p.MerchantID
	} else if of == "" {
		merchants, err := MerchantsOfUnattributed(ctx, tx, []string{id})
		if err != nil {
			return item, "", err
		}
		if len(merchants[id]) == 1 {
			of = merchants[id][0]
		}
	}
	items, err := paymentItems(ctx, tx, []PaymentRow{p}, of)
	if err != nil {
		return item, "", err
	}
	return items[0], of, nil
}

// wantUndecided returns a *DecidedError if a decision about an item is in force, by the merchant or by the operator.
func wantUndecided(ctx context.Context, tx *db.Tx, item InboxItem, merchantID string) error {
	decisions, err := DecisionsInForce(ctx, tx, []string{item.ObjectID()})
	if err != nil {
		return err
	}
	for _, d := range decisions {
		if item.decidedBy(d) && (d.MerchantID == merchantID || d.MerchantID == "") {
			return &DecidedError{d}
		}
	}
	return nil
}

// finish counts what was confirmed, and finds out which invoices were paid and what remains of the others. An invoice is
// announced as paid before its refunds are.
func (ch *Changes) finish() {
	ch.recountMarked()
	ch.recountReturned(ch.returning...)
	ch.recountEarly(ch.effects.reattributed...)
	ch.countConfirmed(maxBlock)
	ch.finishPaid()
	ch.countRefunds(ch.refunded)
	ch.recountRemainders()
}

// finishPaid announces the invoices that confirmed payments paid. The commitments of those that were paid without the
// registry are to be closed. It recounts invoices first, so it runs once in a decision.
func (ch *Changes) finishPaid() {
	ch.recountConfirmed()
	slices.Sort(ch.paid)
	for _, id := range ch.paid {
		inv := ch.invoice(id)
		ch.effects.emit(event{kind: invoice.EventPaid, subject: id, invoice: inv})
		if inv.CloseIntent(ch.isPaidThroughRegistry(id)) {
			ch.effects.closed = append(ch.effects.closed, inv)
		}
	}
}

// countRefunds counts newly confirmed refunds and announces them.
func (ch *Changes) countRefunds(refunds []invoice.Refund) {
	for _, r := range refunds {
		inv := ch.invoice(r.InvoiceID).WithRefunds(r)
		ch.putInvoice(inv)
		p, _ := ch.payment(r.PaymentID)
		ch.effects.emit(event{kind: invoice.EventRefunded, subject: r.ID, invoice: inv, payment: p.Payment, refund: r})
	}
}

// isPaidThroughRegistry reports whether an invoice has a confirmed payment through the registry.
func (ch *Changes) isPaidThroughRegistry(invoiceID string) bool {
	for id := range ch.ofInvoice[invoiceID] {
		if p := ch.payments[id]; p.InvoiceID == invoiceID && p.Method == invoice.ByRegistry && p.Status == invoice.Confirmed {
			return true
		}
	}
	return ch.before.registered.get(invoiceID)
}

// countConfirmed counts the payments of the decision that are final and below a block. A refund in that block
// does not undo them, just as if each block were read separately.
func (ch *Changes) countConfirmed(below uint64) {
	for ; ch.counted < len(ch.confirmed) && ch.confirmed[ch.counted].BlockNumber < below; ch.counted++ {
		p := ch.confirmed[ch.counted]
		if !p.Attributed() || ch.toRecount[p.InvoiceID] {
			continue
		}
		if inv, ok := ch.invoice(p.InvoiceID).WithConfirmed(p); ok {
			ch.putConfirmed(inv)
		} else {
			ch.toRecount[p.InvoiceID] = true
		}
	}
}

// recountConfirmed counts the payments that countConfirmed could not add to those that were counted before.
func (ch *Changes) recountConfirmed() {
	for _, id := range slices.Sorted(maps.Keys(ch.toRecount)) {
		ch.putConfirmed(ch.invoice(id).Recount(ch.paymentsOf(id)))
	}
	clear(ch.toRecount)
}

// settleBelow finds out whether an open invoice in toRecount was paid by confirmed payments below a
// block. That is done once for each block.
func (ch *Changes) settleBelow(id string, block uint64) {
	if !ch.toRecount[id] || ch.settled[id] || ch.invoice(id).Status != invoice.Open {
		return
	}
	ch.settled[id] = true
	below := slices.DeleteFunc(ch.paymentsOf(id), func(p invoice.Payment) bool { return p.BlockNumber >= block })
	if inv := ch.invoice(id).Settle(below); inv.Status != invoice.Open {
		ch.putConfirmed(inv)
	}
}

// putConfirmed replaces an invoice after payments were counted.
func (ch *Changes) putConfirmed(inv invoice.Invoice) {
	was := ch.invoice(inv.ID)
	if was.Status != inv.Status {
		ch.paid = append(ch.paid, inv.ID)
		// Payments above the block at which it ended were late while it was open.
		inv.Sums.Stale = inv.Sums.Stale || was.EndedInLostPast()
	}
	ch.putInvoice(inv)
}
