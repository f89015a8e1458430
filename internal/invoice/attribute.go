package invoice

import "slices"

// LateWindow is how long after its expiry an amount that was told still names
// its invoice, in seconds, unless another rule fits.
const LateWindow = 30 * 24 * 60 * 60

// RoundUnit is the number of minor units of which no told amount is a
// multiple. With six decimals it is a cent: no told amount can be the price of
// an invoice over whole cents.
const RoundUnit = 10_000

// MayTell reports whether a checkout may tell a payer to transfer the amount:
// it is not one of the round amounts that people choose by themselves.
func (a Amount) MayTell() bool {
	_, rest := a.divide(RoundUnit)
	return rest != 0
}

// Candidate is an invoice that a transfer could be meant for, and what of it
// depends on the transfer's place on the chain.
type Candidate struct {
	Invoice
	// Told says that the transfer's amount was told for this invoice before
	// the transfer's block, and for no other one since.
	Told bool
	// Covered says that transfers earlier on the chain, mined in time and not
	// orphaned, add up to the invoice's amount, or to what is enough.
	Covered bool
	// Remainder is what is left to pay after transfers earlier on the chain;
	// zero unless they paid a part.
	Remainder Amount
}

// Named reports whether the transfer's transaction names the candidate.
func (c Candidate) Named(t Transfer) bool {
	return c.Takes(t) && (c.names(t.Evidence.Registry) || c.names(t.Evidence.Authorization) || c.names(t.Evidence.Calldata))
}

// Meant reports whether the transfer is meant for the candidate whatever
// remains of any other: it names it, or its amount was told for it.
func (c Candidate) Meant(t Transfer) bool { return c.Named(t) || c.toldFor(t) }

// toldFor reports whether the transfer's amount was told for the candidate, not
// too long ago.
func (c Candidate) toldFor(t Transfer) bool {
	return c.Takes(t) && c.Told && t.BlockTime <= c.ExpiresAt+LateWindow
}

// waits reports whether the candidate is payable and not covered.
func (c Candidate) waits(t Transfer) bool { return c.Takes(t) && c.PayableAt(t.Position) && !c.Covered }

// Attribution names the invoice that a transfer pays, and how that was known.
type Attribution struct {
	Invoice Invoice
	Method  Method
}

// Attribute finds the invoice that a transfer pays among the candidates, by
// the first rule that fits. It looks at the transfer's place on the chain and
// at what lies before it, never at the present state of an invoice, so that
// reading the chain again gives the same.
//
// Where a rule fits two invoices nothing is guessed, and no later rule is
// tried: the transfer stays unattributed and ok is false. So does one of
// nothing, and one from an address to itself. With crowded, more invoices
// than the candidates have the transfer's amount: then it means one alone that
// it was told for and that waits for it.
func Attribute(t Transfer, candidates []Candidate, crowded bool) (a Attribution, ok bool) {
	if t.Amount.IsZero() || t.From == t.To {
		return Attribution{}, false // nobody has got anything
	}
	told := slices.ContainsFunc(candidates, func(c Candidate) bool { return c.toldFor(t) })
	for _, rule := range []struct {
		method Method
		fits   func(Candidate) bool
	}{
		{ByRegistry, func(c Candidate) bool { return c.names(t.Evidence.Registry) }},
		{ByAuthorization, func(c Candidate) bool { return c.names(t.Evidence.Authorization) }},
		{ByCalldata, func(c Candidate) bool { return c.names(t.Evidence.Calldata) }},
		{ByTransferAmount, func(c Candidate) bool { return c.toldFor(t) && c.waits(t) }},
		{ByAmount, func(c Candidate) bool { return c.meansAmount(t, told) }},
		{ByTolerance, func(c Candidate) bool { return c.Tolerates(t.Amount) && c.waits(t) }},
	} {
		found := 0
		for _, c := range candidates {
			if !c.Takes(t) || !rule.fits(c) {
				continue
			}
			found++
			a = Attribution{Invoice: c.Invoice, Method: rule.method}
			if rule.method == ByAmount && c.toldFor(t) {
				a.Method = ByTransferAmount
			}
		}
		switch {
		case found == 1:
			return a, true
		case found > 1 || crowded && rule.method == ByTransferAmount:
			return Attribution{}, false
		}
	}
	return Attribution{}, false
}

// meansAmount reports whether the transfer's amount can mean the candidate. It
// was told for it, which is covered by now or expired; or the candidate waits
// for it, as its bare amount or as what remains of it. A remainder is left out
// if the amount was told for any invoice.
func (c Candidate) meansAmount(t Transfer, told bool) bool {
	if c.toldFor(t) {
		return true
	}
	asks := c.Amount == t.Amount || c.Remainder == t.Amount && !told
	return asks && c.waits(t)
}

// Takes reports whether t moves the invoice's token to the invoice's address
// on the invoice's chain.
func (inv Invoice) Takes(t Transfer) bool {
	return inv.ChainKey == t.ChainKey && inv.Token == t.Token && inv.Merchant == t.To
}

// PayableAt reports whether a transfer at that position comes after the
// invoice was created, as far as the chain was known then, and not after its
// expiry. Both are the chain's: no clock of this service is asked.
func (inv Invoice) PayableAt(p Position) bool {
	return inv.FromBlock < p.BlockNumber && p.BlockTime <= inv.ExpiresAt && inv.Status != Drafted && inv.Status != Void
}

// enough is the least sum that pays the invoice.
func (inv Invoice) enough() Amount { return inv.Amount.Minus(inv.Tolerance) }

// Tolerates reports whether a is less than the invoice's amount and enough.
func (inv Invoice) Tolerates(a Amount) bool {
	return a.Less(inv.Amount) && !a.Less(inv.enough())
}

func (inv Invoice) names(id Hash) bool {
	return !id.IsZero() && inv.CommitmentID == id
}
