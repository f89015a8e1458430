package invoice

import (
	"errors"
	"slices"
	"time"
)

// Settle returns the invoice with its state computed from its confirmed payments. It is paid when the payments mined at
// or before expiresAt, less their returned amounts, add up to the amount less the tolerance. Then SettledTx is the
// transaction that completed the sum. payments must hold all payments of the invoice; those that are not confirmed or
// belong to another invoice are ignored. Settle never changes a final state, and is idempotent.
func (inv Invoice) Settle(payments []Payment) Invoice {
	confirmed := filter(payments, func(p Payment) bool { return p.Status == Confirmed && p.InvoiceID == inv.ID })
	slices.SortFunc(confirmed, func(a, b Payment) int { return a.Compare(b.Position) })
	inv.AmountPaid, inv.Sums.Tally = Amount{}, Tally{}
	for _, p := range confirmed {
		inv = inv.count(p)
	}
	inv.Exception = inv.exception()
	return inv
}

// WithConfirmed returns the invoice after one more of its payments was confirmed. ok is false if the order of the
// payments matters and this one is not above all that were counted; the caller must then use Settle to count all
// payments again.
func (inv Invoice) WithConfirmed(p Payment) (_ Invoice, ok bool) {
	t := inv.Sums.Tally
	if inv.Sums.Stale || !t.Last.Before(p.Position) && !t.Counted().Plus(p.Counted()).Less(inv.threshold()) {
		return inv, false
	}
	inv = inv.count(p)
	inv.Exception = inv.exception()
	return inv, true
}

// count adds a confirmed payment, which is the next one on the chain.
func (inv Invoice) count(p Payment) Invoice {
	t := &inv.Sums.Tally
	isDust := inv.IsDust(p)
	inv.AmountPaid = inv.AmountPaid.Plus(p.Amount)
	if inv.IsLate(p.Position) || !t.Counted().Less(inv.Amount) {
		if isDust {
			t.BeyondDust = t.BeyondDust.Plus(p.Amount)
		}
	} else {
		t.Due, t.Returned = t.Due.Plus(p.Amount), t.Returned.Plus(p.returned())
		if isDust {
			t.DueDust = t.DueDust.Plus(p.Counted())
		}
		if !t.Counted().Less(inv.threshold()) && inv.Status == Open {
			inv.Status, inv.SettledTx, inv.SettledAt = Paid, p.TxHash, p.BlockTime
		}
	}
	if t.Last.Before(p.Position) {
		t.Last = p.place()
	}
	return inv
}

// exception returns how the payments differ from the invoice's terms. Dust counts in the sums, and may complete the
// amount, but it does not cause an exception. Neither does a returned amount.
func (inv Invoice) exception() Exception {
	t := inv.Sums.Tally
	counted := t.Counted()
	arrived, due, beyond := inv.Kept(), counted, inv.AmountPaid.Minus(t.Due)
	if inv.negligible(t.DueDust.Plus(t.BeyondDust)) {
		arrived, due, beyond = arrived.Minus(t.DueDust).Minus(t.BeyondDust), due.Minus(t.DueDust), beyond.Minus(t.BeyondDust)
	}
	paid := inv.Status == Paid
	switch {
	case paid && !beyond.IsZero():
		return Duplicate
	case paid && inv.Ceiling().Less(due):
		return Overpaid
	case !beyond.IsZero() || !paid && !counted.Less(inv.threshold()):
		return Late
	case counted.Less(inv.Amount) && !arrived.IsZero():
		return Underpaid
	}
	return ""
}

// Expire returns the invoice expired, and ok true, if it is open and the chain
// has passed expiresAt. confirmedTime is the timestamp of a final block up to
// which all payments are counted.
func (inv Invoice) Expire(confirmedTime time.Time) (_ Invoice, ok bool) {
	if inv.Status != Open || !confirmedTime.After(inv.ExpiresAt) {
		return inv, false
	}
	inv.Status = Expired
	return inv, true
}

// Errors of Cancel.
var (
	// ErrFinal: the invoice is paid or expired.
	ErrFinal = errors.New("the invoice is paid or expired")
	// ErrCovered: the invoice is open, and payments that were seen in time cover it.
	ErrCovered = errors.New("payments that were seen cover the invoice")
)

// Cancel returns the invoice as void. It must be a draft, or an open invoice that no payment in the blocks up to
// indexed covers. indexed is the newest block that was read. A transfer in a block above is late. Cancel returns a void
// invoice unchanged.
func (inv Invoice) Cancel(indexed uint64) (Invoice, error) {
	switch inv.Status {
	case Void:
		return inv, nil
	case Paid, Expired:
		return inv, ErrFinal
	case Open:
		if inv.Covered() {
			return inv, ErrCovered
		}
		if !inv.EndedInLostPast() {
			inv.ClosedBlock = indexed
		}
	case Drafted:
	}
	inv.Status = Void
	inv.Exception = inv.exception()
	return inv, nil
}

// CloseIntent reports whether the on-chain commitment must be closed: the invoice is expired or void, or it was paid
// without the registry, which would otherwise accept a second payment. registered is set if the registry recorded a
// confirmed payment.
func (inv Invoice) CloseIntent(registered bool) bool {
	switch inv.Status {
	case Expired, Void:
		return true
	case Paid:
		return !registered
	case Drafted, Open:
		return false
	}
	return false
}

// WithoutRefund returns the invoice without a confirmed refund that was found to be a payment.
func (inv Invoice) WithoutRefund(r Refund) Invoice {
	inv.AmountRefunded = inv.AmountRefunded.Minus(r.Amount)
	return inv
}

// WithRefunds returns the invoice after refunds of its payments were confirmed.
// Its status does not change.
func (inv Invoice) WithRefunds(refunds ...Refund) Invoice {
	for _, r := range refunds {
		inv.AmountRefunded = inv.AmountRefunded.Plus(r.Amount)
	}
	return inv
}
