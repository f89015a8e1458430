package invoice

import (
	"cmp"
	"slices"
	"time"
)

// Difference is how a payment differs from an invoice's request. It is zero for a payment in time of a requested
// amount, if no other payment covers the invoice.
type Difference struct {
	// Short and Over are how much less or more the payment is than the nearest requested amount. Only one of them is
	// set.
	Short, Over Amount
	LateBy      time.Duration // between expiresAt and the payment's block; 0 in time
	Early       bool          // its block was known before the invoice was created
	Covered     bool          // other payments cover the invoice
	Ambiguous   bool          // another payable invoice differs by the same amount
}

// Payable reports whether the invoice was payable and not covered at the payment.
func (d Difference) Payable() bool { return d.LateBy == 0 && !d.Early && !d.Covered }

// NearInvoice is an invoice that an unattributed payment may be for.
type NearInvoice struct {
	Invoice
	Asks    []Amount // amounts its payer may have been shown, apart from Amount and TransferAmount; zeros are ignored
	Covered bool
}

// Suggestion is an invoice that a payment may be for, and how they differ.
type Suggestion struct {
	Invoice
	Difference
}

// Differ returns how a transfer differs from the invoice's request. Whether the difference is ambiguous depends on
// other invoices: see Suggest.
func (n NearInvoice) Differ(t Transfer) Difference {
	d := Difference{Covered: n.Covered, Early: t.BlockNumber <= n.FromBlock, LateBy: max(0, t.BlockTime.Sub(n.ExpiresAt))}
	d.Short, d.Over = distance(t.Amount, n.Amount)
	for _, asked := range append([]Amount{n.TransferAmount}, n.Asks...) {
		if asked.IsZero() {
			continue
		}
		if short, over := distance(t.Amount, asked); short.Plus(over).Less(d.Distance()) {
			d.Short, d.Over = short, over
		}
	}
	if !t.Amount.Less(n.Amount) && !n.Ceiling().Less(t.Amount) {
		d.Short, d.Over = Amount{}, Amount{} // any suffix is accepted
	}
	return d
}

// distance returns how much less or more a is than b.
func distance(a, b Amount) (short, over Amount) {
	if a.Less(b) {
		return b.Minus(a), Amount{}
	}
	return Amount{}, a.Minus(b)
}

// Distance is the absolute difference of the amounts.
func (d Difference) Distance() Amount { return d.Short.Plus(d.Over) }

// Suggest returns up to limit invoices that a transfer may be for. They have its chain, token and address, and are
// ordered by the difference of the amounts; among equals, payable ones come first, and then the newest. Drafts and void
// invoices are left out.
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

// byPayable orders payable ones first.
func byPayable(a, b Suggestion) int {
	switch {
	case a.Payable() == b.Payable():
		return 0
	case a.Payable():
		return -1
	}
	return 1
}
