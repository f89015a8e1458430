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
	at     Position // its block number and log index
	amount Amount
	part   bool // it counts as a part of the amount
}

// NewHistory returns the history of the invoice. Other payments are ignored.
func NewHistory(inv Invoice, payments []Payment) *History {
	h := &History{inv: inv}
	for _, p := range payments {
		if h.counts(p) {
			h.paid = append(h.paid, h.entry(p))
		}
	}
	slices.SortFunc(h.paid, func(a, b historyEntry) int { return a.at.Compare(b.at) })
	return h
}

func (h *History) counts(p Payment) bool {
	return p.InvoiceID == h.inv.ID && p.Status != Orphaned && p.BlockTime <= h.inv.ExpiresAt
}

func (h *History) entry(p Payment) historyEntry {
	return historyEntry{at: p.place(), amount: p.Amount, part: h.inv.paysPart(p)}
}

// Add adds a payment, if it counts.
func (h *History) Add(p Payment) {
	if h.counts(p) {
		at, _ := h.find(p)
		h.paid = slices.Insert(h.paid, at, h.entry(p))
	}
}

// Remove removes a payment that was added.
func (h *History) Remove(p Payment) {
	if !h.counts(p) {
		return
	}
	is := h.entry(p)
	for i, _ := h.find(p); i < len(h.paid) && h.paid[i].at == is.at; i++ {
		if h.paid[i] == is {
			h.paid = slices.Delete(h.paid, i, i+1)
			return
		}
	}
}

func (h *History) find(p Payment) (at int, ok bool) {
	return slices.BinarySearchFunc(h.paid, p.place(), func(e historyEntry, at Position) int { return e.at.Compare(at) })
}

// DueAt returns whether the payments below a position on the chain cover the
// invoice and, unless they do, what remains of it after a part was paid.
func (h *History) DueAt(at Position) (covered bool, remainder Amount) {
	var sum Amount
	for _, s := range h.paid {
		if !s.at.Before(at) {
			break
		}
		sum = sum.Plus(s.amount)
		if s.part {
			remainder = h.inv.Amount.Minus(sum)
		}
	}
	if !sum.Less(h.inv.threshold()) {
		return true, Amount{}
	}
	return false, remainder
}

// Remainder returns what is left to pay after all payments; zero when they cover
// the invoice, or paid no part of it.
func (h *History) Remainder() Amount {
	_, remainder := h.DueAt(Position{BlockNumber: math.MaxUint64})
	return remainder
}

// Remainders returns what was left to pay after each payment that paid a part,
// in the order of the chain.
func (h *History) Remainders() (remainders []Amount) {
	var sum Amount
	for _, s := range h.paid {
		sum = sum.Plus(s.amount)
		if s.part && sum.Less(h.inv.threshold()) {
			remainders = append(remainders, h.inv.Amount.Minus(sum))
		}
	}
	return remainders
}

// WithRemainderAfter returns the invoice with Remaining set after a payment that
// is in its sums and above all others there.
func (inv Invoice) WithRemainderAfter(p Payment) Invoice {
	switch {
	case inv.Covered():
		inv.Remaining = Amount{}
	case inv.paysPart(p):
		inv.Remaining = inv.Missing()
	}
	return inv
}

// paysPart reports whether a payment counts as a part of the amount. Dust does
// not, so that a stranger cannot change the remainder that a payer was shown.
func (inv Invoice) paysPart(p Payment) bool {
	return p.Status != Orphaned && p.BlockTime <= inv.ExpiresAt && !inv.IsDust(p)
}
