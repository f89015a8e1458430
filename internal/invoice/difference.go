package invoice

import (
	"cmp"
	"slices"
)

// Difference is how a payment differs from what an invoice asks for. The zero
// Difference is a payment of an amount asked for, in time, for an invoice that
// no other payment covers.
type Difference struct {
	// Short and Over are how much less or more the payment is than the nearest
	// amount that the invoice asks for; at most one of them is set.
	Short, Over Amount
	LateBy      int64 // seconds between expiresAt and the payment's block; 0 in time
	Early       bool  // its block was known before the invoice was created
	Covered     bool  // other payments cover the invoice
	Ambiguous   bool  // another payable invoice differs by the same amount
}

// Payable reports whether the payment came in time for an invoice that waited
// for money.
func (d Difference) Payable() bool { return d.LateBy == 0 && !d.Early && !d.Covered }

// NearInvoice is an invoice that a payment without one could be meant for. Asks
// are the amounts that the invoice's payer can have been shown besides the amount
// itself; zeros are ignored.
type NearInvoice struct {
	Invoice
	Asks    []Amount
	Covered bool
}

// Suggestion is an invoice that a payment could be meant for, and how they
// differ.
type Suggestion struct {
	Invoice
	Difference
}

// Differ returns how a transfer differs from what the invoice asks for.
// Whether the difference is ambiguous depends on other invoices: see Suggest.
func (n NearInvoice) Differ(t Transfer) Difference {
	d := Difference{Covered: n.Covered, Early: t.BlockNumber <= n.FromBlock, LateBy: max(0, t.BlockTime-n.ExpiresAt)}
	d.Short, d.Over = apart(t.Amount, n.Amount)
	for _, asked := range append([]Amount{n.TransferAmount}, n.Asks...) {
		if asked.IsZero() {
			continue
		}
		if short, over := apart(t.Amount, asked); short.Plus(over).Less(d.Distance()) {
			d.Short, d.Over = short, over
		}
	}
	if !t.Amount.Less(n.Amount) && !n.Ceiling().Less(t.Amount) {
		d.Short, d.Over = Amount{}, Amount{} // any suffix is part of what was asked for
	}
	return d
}

// apart returns how much less or more a is than b.
func apart(a, b Amount) (short, over Amount) {
	if a.Less(b) {
		return b.Minus(a), Amount{}
	}
	return Amount{}, a.Minus(b)
}

// Distance is the absolute difference of the amounts.
func (d Difference) Distance() Amount { return d.Short.Plus(d.Over) }

// Suggest returns the invoices that a transfer could be meant for, at most so
// many: those of its chain, token and address, the nearest amount first, among
// equal amounts those that were payable, and then the newest. Those that are
// drafts or void are left out.
func Suggest(t Transfer, near []NearInvoice, limit int) []Suggestion {
	var all []Suggestion
	for _, n := range near {
		if n.Accepts(t) && n.Status != Drafted && n.Status != Void {
			all = append(all, Suggestion{n.Invoice, n.Differ(t)})
		}
	}
	slices.SortFunc(all, func(a, b Suggestion) int {
		return cmp.Or(a.Distance().Cmp(b.Distance()), byPayable(a, b), cmp.Compare(b.ID, a.ID))
	})
	for i := range all {
		for j := range all {
			all[i].Ambiguous = all[i].Ambiguous || i != j && all[i].Payable() && all[j].Payable() && all[i].Distance() == all[j].Distance()
		}
	}
	return all[:min(len(all), limit)]
}

// byPayable orders those that were payable first.
func byPayable(a, b Suggestion) int {
	switch {
	case a.Payable() == b.Payable():
		return 0
	case a.Payable():
		return -1
	}
	return 1
}
