package invoice

import (
	"slices"
	"time"
)

// LateWindow is how long after an invoice's expiry its transfer
// amounts still identify it, unless another rule fits.
const LateWindow = 30 * 24 * time.Hour

// RoundUnit is the number of minor units that no transfer amount is a multiple of. With six decimals it is a cent: no
// transfer amount can be the price of an invoice in whole cents.
const RoundUnit = 10_000

// IsRound reports whether the amount is a multiple of RoundUnit. Payers often choose round amounts, so a round amount
// is never a transfer amount.
func (a Amount) IsRound() bool {
	_, rest := a.divide(RoundUnit)
	return rest == 0
}

// Candidate is an invoice that a transfer may pay. The fields that Candidate adds depend on the transfer's position on
// the chain.
type Candidate struct {
	Invoice
	// HasTransferAmount is set if the transfer's amount is a transfer amount of this invoice: it was assigned to it
	// before the transfer's block, and to no other invoice since.
	HasTransferAmount bool
	// Covered is set if transfers earlier on the chain, mined in time and not orphaned, add up to the invoice's amount
	// less its tolerance.
	Covered bool
	// Remainder is the amount left to pay after transfers earlier on the chain; zero unless they paid a part.
	Remainder Amount
	// Authorized is set if the authorization which made the transfer is bound to this invoice.
	Authorized bool
}

// NamedBy reports whether the transfer's transaction names the candidate.
func (c Candidate) NamedBy(t Transfer) bool {
	return c.Accepts(t) && (c.hasCommitment(t.Evidence.Registry) || c.isAuthorizedBy(t) || c.hasCommitment(t.Evidence.Calldata))
}

// isAuthorizedBy reports whether an authorization made the transfer, and its nonce is the candidate's commitment or is
// bound to it.
func (c Candidate) isAuthorizedBy(t Transfer) bool {
	return c.hasCommitment(t.Evidence.Authorization) || c.Authorized && !t.Evidence.Authorization.IsZero()
}

// matchesTransferAmount reports whether the transfer has a transfer amount of
// the candidate, and was mined within LateWindow after its expiry.
func (c Candidate) matchesTransferAmount(t Transfer) bool {
	return c.Accepts(t) && c.HasTransferAmount && !t.BlockTime.After(c.ExpiresAt.Add(LateWindow))
}

// awaits reports whether an amount can identify the candidate: it is payable at the
// transfer and not covered. The amount of a transfer never identifies a deposit invoice.
func (c Candidate) awaits(t Transfer) bool {
	return !c.IsDeposit() && c.Accepts(t) && c.PayableAt(t.Position) && !c.Covered
}

// Attribution is the invoice that a transfer pays, and the rule that found it.
type Attribution struct {
	Invoice Invoice
	Method  Method
}

// Attribute returns the invoice that a transfer pays among the candidates, by
// the first rule that fits. It depends on the transfer's position on the chain
// and on the transfers below it, never on the present state of an invoice, so
// that reading the chain again gives the same result. A transfer to a deposit address
// pays its invoice, whatever its amount, time and evidence.
//
// If a rule fits two invoices, no later rule is tried: the transfer stays unattributed and ok is false.
// A transfer of zero, one from an address to itself, and the sweep of another service's deposit address
// is never attributed. truncated means that more invoices than the candidates may have the transfer's
// amount. Then the amount decides only if it is the transfer amount of an invoice that awaits it.
func Attribute(t Transfer, candidates []Candidate, truncated bool) (a Attribution, ok bool) {
	if !t.pays() {
		return Attribution{}, false
	}
	isTransferAmount := isTransferAmountOfAny(t, candidates)
	for _, rule := range []struct {
		method Method
		fits   func(Candidate) bool
	}{
		{ByDeposit, func(c Candidate) bool { return c.isDepositedBy(t) }},
		{ByRegistry, func(c Candidate) bool { return c.hasCommitment(t.Evidence.Registry) }},
		{ByAuthorization, func(c Candidate) bool { return c.isAuthorizedBy(t) }},
		{ByCalldata, func(c Candidate) bool { return c.hasCommitment(t.Evidence.Calldata) }},
		{ByTransferAmount, func(c Candidate) bool { return c.matchesTransferAmount(t) && c.awaits(t) }},
		{ByAmount, func(c Candidate) bool { return c.matchesAmount(t, isTransferAmount) }},
		{ByTolerance, func(c Candidate) bool { return c.Tolerates(t.Amount) && c.awaits(t) }},
	} {
		found := 0
		for _, c := range candidates {
			if !c.Accepts(t) || !rule.fits(c) {
				continue
			}
			found++
			a = Attribution{Invoice: c.Invoice, Method: rule.method}
			if rule.method == ByAmount && c.matchesTransferAmount(t) {
				a.Method = ByTransferAmount
			}
		}
		switch {
		case found == 1:
			return a, true
		case found > 1 || truncated && rule.method == ByTransferAmount:
			return Attribution{}, false
		}
	}
	return Attribution{}, false
}

// pays reports whether a transfer pays a merchant who was not paid before.
func (t Transfer) pays() bool {
	return !t.Amount.IsZero() && t.From != t.To && t.Evidence.Registry != SweptElsewhere
}

// CountByAmount returns how many candidates the transfer's amount identifies, not counting candidates that only
// tolerate it. Two are ambiguous, whatever other candidates there are.
func CountByAmount(t Transfer, candidates []Candidate) (n int) {
	isTransferAmount := isTransferAmountOfAny(t, candidates)
	for _, c := range candidates {
		if c.Accepts(t) && c.matchesAmount(t, isTransferAmount) {
			n++
		}
	}
	return n
}

func isTransferAmountOfAny(t Transfer, candidates []Candidate) bool {
	return slices.ContainsFunc(candidates, func(c Candidate) bool { return c.matchesTransferAmount(t) })
}

// matchesAmount reports whether the transfer's amount identifies the candidate. Either it is a transfer amount of the
// candidate, which is covered or expired by now; or the candidate awaits it, as its amount or its remainder. A
// remainder does not count if the amount is the transfer amount of any invoice.
func (c Candidate) matchesAmount(t Transfer, isTransferAmount bool) bool {
	if c.matchesTransferAmount(t) {
		return true
	}
	due := c.Amount == t.Amount || c.Remainder == t.Amount && !isTransferAmount
	return due && c.awaits(t)
}

// Accepts reports whether t moves the invoice's token to its settlement or deposit address on its chain. A draft
// accepts no transfer.
func (inv Invoice) Accepts(t Transfer) bool {
	return inv.Status != Drafted && inv.ChainKey == t.ChainKey && inv.Token == t.Token && (inv.Merchant == t.To || inv.isDepositedBy(t))
}

// PayableAt reports whether a transfer at that position is above the blocks that were read when the invoice was
// created, and not late. Both use chain time, not the service's clock.
func (inv Invoice) PayableAt(p Position) bool {
	return inv.Status != Drafted && inv.FromBlock < p.BlockNumber && !inv.IsLate(p)
}

// IsLate reports whether a position on the chain is after expiresAt, or above the blocks
// that were read when the invoice became void, or ended in a past that the database has lost.
func (inv Invoice) IsLate(p Position) bool {
	ended := inv.Status == Void || inv.EndedInLostPast()
	return p.BlockTime.After(inv.ExpiresAt) || ended && p.BlockNumber > inv.ClosedBlock
}

// EndedInLostPast reports whether the invoice is open here, and became void or paid in a past that the database has lost.
func (inv Invoice) EndedInLostPast() bool { return inv.Status == Open && inv.ClosedBlock > 0 }

// threshold returns the least sum that pays the invoice.
func (inv Invoice) threshold() Amount { return inv.Amount.Minus(inv.Tolerance) }

// Tolerates reports whether a is less than the invoice's amount and pays it
// within the tolerance.
func (inv Invoice) Tolerates(a Amount) bool {
	return a.Less(inv.Amount) && !a.Less(inv.threshold())
}

func (inv Invoice) hasCommitment(id Hash) bool {
	return !id.IsZero() && inv.CommitmentID == id
}
