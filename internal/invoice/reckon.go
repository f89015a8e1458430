package invoice

import "slices"

// Reckon returns the invoice as its confirmed payments make it: paid when
// those mined at or before expiresAt add up to enough, which is the amount less
// the tolerance, with the transaction that completed it and what has gone
// differently from plan. It never leaves a final state, and it is idempotent:
// reckoning again with the same payments changes nothing. Payments that are
// not confirmed or belong to another invoice are ignored.
func (inv Invoice) Reckon(payments []Payment) Invoice {
	confirmed := keep(payments, func(p Payment) bool { return p.Status == Confirmed && p.InvoiceID == inv.ID })
	slices.SortFunc(confirmed, func(a, b Payment) int {
		if a.Before(b.Position) {
			return -1
		}
		return 1
	})
	var total, inTime Amount // inTime: as far as it was asked for
	var late, extra bool
	for _, p := range confirmed {
		total = total.Plus(p.Amount)
		switch {
		case !inTime.Less(inv.Amount):
			extra = true
		case p.BlockTime > inv.ExpiresAt:
			late = true
		default:
			inTime = inTime.Plus(p.Amount)
			if !inTime.Less(inv.enough()) && inv.Status == Open {
				inv.Status, inv.SettledTx, inv.SettledAt = Paid, p.TxHash, p.BlockTime
			}
		}
	}
	inv.AmountPaid = total
	paid := inv.Status == Paid
	switch {
	case paid && (extra || late):
		inv.Exception = Duplicate
	case paid && inv.ceiling().Less(inTime):
		inv.Exception = Overpaid
	case late || !paid && !inTime.Less(inv.enough()):
		inv.Exception = Late
	case inTime.Less(inv.Amount) && !total.IsZero():
		inv.Exception = Underpaid
	default:
		inv.Exception = ""
	}
	return inv
}

// ceiling is the largest sum that is not an overpayment: the suffix of the
// transfer amount is asked for, so it is none.
func (inv Invoice) ceiling() Amount {
	if inv.TransferAmount.IsZero() {
		return inv.Amount
	}
	return inv.TransferAmount
}

// Expire returns the invoice expired, if it is open and the chain has passed
// expiresAt: confirmedTime is the timestamp of a confirmed block up to which
// every payment has been reckoned. ok tells whether it changed.
func (inv Invoice) Expire(confirmedTime int64) (_ Invoice, ok bool) {
	if inv.Status != Open || confirmedTime <= inv.ExpiresAt {
		return inv, false
	}
	inv.Status = Expired
	return inv, true
}

// Covered reports whether the payments that are not orphaned and were mined
// in time add up to enough, confirmed or not. Such an invoice needs no further
// payment.
func (inv Invoice) Covered(payments []Payment) bool {
	var sum Amount
	for _, p := range payments {
		if p.InvoiceID == inv.ID && p.Status != Orphaned && p.BlockTime <= inv.ExpiresAt {
			sum = sum.Plus(p.Amount)
		}
	}
	return !sum.Less(inv.enough())
}

// CloseIntent reports whether the on-chain commitment must be closed now: the
// invoice is expired, or it was paid without the registry, which would still
// take a second payment.
func (inv Invoice) CloseIntent(payments []Payment) bool {
	switch inv.Status {
	case Expired, Void:
		return true
	case Paid:
		return !slices.ContainsFunc(payments, func(p Payment) bool {
			return p.InvoiceID == inv.ID && p.Status == Confirmed && p.Method == ByRegistry
		})
	case Drafted, Open:
		return false
	}
	return false
}

// ReckonRefunds returns the invoice with the sum of its confirmed refunds. A
// refund does not change the status.
func (inv Invoice) ReckonRefunds(refunds []Refund) Invoice {
	var sum Amount
	for _, r := range refunds {
		if r.Status == Confirmed && r.InvoiceID == inv.ID {
			sum = sum.Plus(r.Amount)
		}
	}
	inv.AmountRefunded = sum
	return inv
}
