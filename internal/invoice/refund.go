package invoice

import (
	"cmp"
	"math"
)

// RefundMatch is the payment that a refund pays back.
type RefundMatch struct {
	Payment Payment
	Exact   bool // the calldata names the payment's invoice, or the refund is all that remains of the payment, or it was prepared
	// PreparedID is the prepared refund that the transfer pays; empty without one.
	PreparedID string
}

// Refundable is a payment, and how much of it is not refunded yet.
type Refundable struct {
	*Payment
	Left Amount
}

// AttributeRefund returns the payment that a transfer out of a settlement address refunds; ok is false if no payment
// fits. The payments are in descending order of their positions. tag is the id of the sender's invoice that the
// transaction's calldata names, or empty. A payment fits if it was mined before the transfer, and the transfer goes
// from the payment's settlement address to its payer, in its token, and does not exceed what is left. If an invoice is
// named, the payment must belong to it; otherwise an unattributed payment can be refunded as well.
//
// Payments of which the transfer's amount is left come first, then attributed ones. Among equals the newest on the
// chain wins. A refund that fits several payments is attributed, unlike a payment, because it changes no invoice's
// status.
func AttributeRefund(t Transfer, payments []Refundable, tag string) (m RefundMatch, ok bool) {
	var attributed, other *Payment // the newest of which more is left
	for _, p := range payments {
		whole := p.Left == t.Amount
		switch {
		case p.Left.Less(t.Amount), !whole && attributed != nil, !whole && other != nil && !p.Attributed():
		case tag != "" && p.InvoiceID != tag, !reverses(&t, p.Payment):
		case whole:
			return RefundMatch{Payment: *p.Payment, Exact: true}, true
		case p.Attributed():
			attributed = p.Payment
		default:
			other = p.Payment
		}
	}
	if attributed = cmp.Or(attributed, other); attributed == nil {
		return m, false
	}
	return RefundMatch{Payment: *attributed, Exact: tag != ""}, true
}

// reverses reports whether a transfer goes from a payment's settlement address to its payer in its token, and is later.
func reverses(t *Transfer, p *Payment) bool {
	return p.Status != Orphaned && p.Before(t.Position) && p.ChainKey == t.ChainKey && p.Token == t.Token &&
		p.RefundedFrom() == t.From && p.From == t.To && t.From != t.To && !t.Amount.IsZero()
}

// KeepsRefund reports whether a transfer that was stored as a refund of the payment remains one after a reorg: both
// must move the same money as before.
func (p Payment) KeepsRefund(was Refund, t Transfer) bool {
	toPayer := p.From == t.To || was.PreparedID != ""
	return was.PaymentID == p.ID && was.SameMovement(t) && p.Token == t.Token && p.RefundedFrom() == t.From && toPayer
}

// Returning returns how much of a payment of the invoice no longer counts. back is how much of it was or is to be
// refunded, and early is the part that was refunded before the invoice was paid or ended: see RefundedEarly. While the
// invoice is open, all of back does not count. A later refund does not change the result. If a planned refund is not
// sent, its amount counts again, as a surplus of a paid invoice. A late payment never counts, so the result is 0.
func (inv Invoice) Returning(p Payment, back, early Amount) Amount {
	back = inv.ReturnedBefore(p, back)
	switch {
	case inv.Status == Open, inv.IsLate(p.Position), back.Less(p.Returned):
		return back
	case back.Less(early):
		return back
	case p.Returned.Less(early):
		return early
	}
	return p.Returned
}

// IsEarly reports whether a refund may have been mined before the invoice was paid or ended, according to its time.
func (inv Invoice) IsEarly(r Refund) bool {
	return r.Status != Orphaned && inv.Status != Open && !inv.IsLate(r.Position) && (inv.Status != Paid || !r.BlockTime.After(inv.SettledAt))
}

// RefundedEarly returns how much of a payment was refunded before the invoice was paid or ended, by the order of the
// chain. Usually such a refund is read before the end; one with a transaction that could not be read at first, or of such
// a payment, is read afterwards. payments are all payments of the invoice. They pay it in the order of the chain, after
// the refunds in their blocks. If less is left than pays it, the result is 0: it was paid before the refund was read.
func (inv Invoice) RefundedEarly(p Payment, refunds []Refund, payments []Payment) Amount {
	early := func(through uint64) (sum Amount) {
		for _, r := range refunds {
			if inv.IsEarly(r) && r.BlockNumber <= through {
				sum = sum.Plus(r.Amount)
			}
		}
		return sum
	}
	if inv.Status != Paid {
		return early(math.MaxUint64)
	}
	var others, own Amount
	for _, q := range inv.inTime(payments) {
		if q.ID == p.ID {
			own = p.Amount
		} else {
			others = others.Plus(q.Counted())
		}
		back := early(q.BlockNumber)
		if !others.Plus(own.Minus(back)).Less(inv.threshold()) {
			return back
		}
	}
	return Amount{}
}

// ReturnedBefore returns how much of a payment does not count if it is attributed to the invoice now, and back of it
// was refunded before. The rest counts, even if the invoice has ended.
func (inv Invoice) ReturnedBefore(p Payment, back Amount) Amount {
	switch {
	case inv.IsLate(p.Position):
		return Amount{}
	case p.Amount.Less(back):
		return p.Amount
	}
	return back
}

// filter returns the payments for which wanted returns true.
func filter(payments []Payment, wanted func(Payment) bool) []Payment {
	var kept []Payment
	for _, p := range payments {
		if wanted(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
