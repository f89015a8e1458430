package invoice

import "slices"

// DueAt returns whether the invoice's payments cover it right before a
// position on the chain and, unless they do, what remains of it after a part
// was paid.
func (inv Invoice) DueAt(at Position, payments []Payment) (covered bool, remainder Amount) {
	sum := inv.paid(keep(payments, func(p Payment) bool { return p.Before(at) }), func(r Amount) { remainder = r })
	if !sum.Less(inv.enough()) {
		return true, Amount{}
	}
	return false, remainder
}

// Remainder returns what is left to pay after the payments: zero when they
// cover the invoice, or paid no part of it.
func (inv Invoice) Remainder(payments []Payment) (remainder Amount) {
	if sum := inv.paid(payments, func(r Amount) { remainder = r }); !sum.Less(inv.enough()) {
		return Amount{}
	}
	return remainder
}

// Remainders returns what was left to pay after each payment that paid a part,
// in the order of the chain.
func (inv Invoice) Remainders(payments []Payment) (remainders []Amount) {
	inv.paid(payments, func(r Amount) { remainders = append(remainders, r) })
	return remainders
}

// RemainderAfter returns the invoice with what is left to pay after a payment
// that is in its sums, and above all others there.
func (inv Invoice) RemainderAfter(p Payment) Invoice {
	switch {
	case inv.Covered():
		inv.Remaining = Amount{}
	case inv.paysPart(p):
		inv.Remaining = inv.Missing()
	}
	return inv
}

// paid adds up the payments in time that are not orphaned, in the order of the
// chain, and reports what is left after each that paid a part.
func (inv Invoice) paid(payments []Payment, part func(remainder Amount)) (sum Amount) {
	counted := keep(payments, func(p Payment) bool {
		return p.InvoiceID == inv.ID && p.Status != Orphaned && p.BlockTime <= inv.ExpiresAt
	})
	slices.SortFunc(counted, func(a, b Payment) int {
		if a.Before(b.Position) {
			return -1
		}
		return 1
	})
	for _, p := range counted {
		sum = sum.Plus(p.Amount)
		if sum.Less(inv.enough()) && inv.paysPart(p) {
			part(inv.Amount.Minus(sum))
		}
	}
	return sum
}

// paysPart reports whether a payment counts as a part of the amount. Dust pays
// none: whoever sends a stranger's invoice a trifle must not change what its
// payer was told.
func (inv Invoice) paysPart(p Payment) bool {
	return p.Status != Orphaned && p.BlockTime <= inv.ExpiresAt && !inv.IsDust(p)
}
