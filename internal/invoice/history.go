package invoice

import (
	"math"
	"slices"
)

// History is the payments of an invoice that were mined in time and are not
// orphaned, in the order of the chain.
type History struct {
	inv  Invoice
	paid []historyEntry
}

// historyEntry is a payment in a History.
type historyEntry struct {
	at        Position // its block number and log index
	amount    Amount   // the amount that counts
	part      bool     // it counts as a part of the amount
	sum       Amount   // sum of the payments up to and including this one
	remainder Amount   // the amount left to pay after the last part up to this one; zero without one
}

// NewHistory returns the history of the invoice. It ignores payments of other invoices.
func NewHistory(inv Invoice, payments []Payment) *History {
	h := &History{inv: inv}
	for _, p := range payments {
		if h.counts(p) {
			h.paid = append(h.paid, h.entry(p))
		}
	}
	slices.SortFunc(h.paid, func(a, b historyEntry) int { return a.at.Compare(b.at) })
	h.addUp(0)
	return h
}

func (h *History) counts(p Payment) bool {
	return p.InvoiceID == h.inv.ID && h.inv.CountsInTime(p)
}

func (h *History) entry(p Payment) historyEntry {
	return historyEntry{at: p.place(), amount: p.Counted(), part: h.inv.paysPart(p)}
}

// addUp computes the sums of the payments from an index on.
func (h *History) addUp(from int) {
	var sum, remainder Amount
	if from > 0 {
		sum, remainder = h.paid[from-1].sum, h.paid[from-1].remainder
	}
	for i := from; i < len(h.paid); i++ {
		e := &h.paid[i]
		if sum = sum.Plus(e.amount); e.part {
			remainder = h.inv.Amount.Minus(sum)
		}
		e.sum, e.remainder = sum, remainder
	}
}

// Add adds a payment, if it counts.
func (h *History) Add(p Payment) {
	if h.counts(p) {
		i := h.find(p.place())
		h.paid = slices.Insert(h.paid, i, h.entry(p))
		h.addUp(i)
	}
}

// Remove removes a payment that was added.
func (h *History) Remove(p Payment) {
	if !h.counts(p) {
		return
	}
	for i := h.find(p.place()); i < len(h.paid) && h.paid[i].at.Compare(p.place()) == 0; i++ {
		if e := h.paid[i]; e.amount == p.Counted() && e.part == h.inv.paysPart(p) {
			h.paid = slices.Delete(h.paid, i, i+1)
			h.addUp(i)
			return
		}
	}
}

// find returns the index of the first payment that is not below a position.
func (h *History) find(at Position) int {
	i, _ := slices.BinarySearchFunc(h.paid, at, func(e historyEntry, at Position) int { return e.at.Compare(at) })
	return i
}

// DueAt returns whether the payments below a position on the chain cover the invoice and, if they do not, the remainder
// after a part was paid.
func (h *History) DueAt(at Position) (covered bool, remainder Amount) {
	var last historyEntry
	if i := h.find(at); i > 0 {
		last = h.paid[i-1]
	}
	if !last.sum.Less(h.inv.threshold()) {
		return true, Amount{}
	}
	return false, last.remainder
}

// Remainder returns the amount left to pay after all payments; zero if they cover the invoice, or paid no part of it.
func (h *History) Remainder() Amount {
	_, remainder := h.DueAt(Position{BlockNumber: math.MaxUint64})
	return remainder
}

// Remainders returns the amount left to pay after each payment that paid a part, in the order of the chain.
func (h *History) Remainders() (remainders []Amount) {
	for _, e := range h.paid {
		if e.part && e.sum.Less(h.inv.threshold()) {
			remainders = append(remainders, e.remainder)
		}
	}
	return remainders
}

// WithRemainderAfter returns the invoice with Remaining set after a payment that is in its sums and above all other
// payments in them.
func (inv Invoice) WithRemainderAfter(p Payment) Invoice {
	switch {
	case inv.Covered():
		inv.Remaining = Amount{}
	case inv.paysPart(p):
		inv.Remaining = inv.Missing()
	}
	return inv
}

// CountsInTime reports whether a payment of the invoice is not late and not orphaned. Other payments change neither the
// covered amount nor the remainder.
func (inv Invoice) CountsInTime(p Payment) bool {
	return p.Status != Orphaned && !inv.IsLate(p.Position)
}

// paysPart reports whether a payment counts as a part of the amount. A returned amount does not. Dust
// does not, so that a stranger cannot change the remainder that a payer was shown.
func (inv Invoice) paysPart(p Payment) bool {
	return inv.CountsInTime(p) && !inv.IsDust(p) && !p.Counted().IsZero()
}
