package invoice

// ClockSkew is how much earlier than an invoice's createdAt the block of its
// payment may claim to be, in seconds: the service's clock and the chain's are
// not the same.
const ClockSkew = 15

// LateWindow is how long after its expiry a transfer amount still names its
// invoice, in seconds, as long as no open invoice uses it.
const LateWindow = 30 * 24 * 60 * 60

// Candidate is an invoice that a transfer could be meant for. Covered says
// that other transfers, mined in time and not orphaned, already add up to its
// amount, or to what is enough.
type Candidate struct {
	Invoice
	Covered bool
}

// Attribution names the invoice that a transfer pays, and how that was known.
type Attribution struct {
	Invoice Invoice
	Method  Method
}

// Attribute finds the invoice that a transfer pays among the candidates, by
// the first rule that fits:
//
//  1. the registry's Paid event,
//  2. the nonce of an ERC-3009 authorization,
//  3. a commitment id at the end of the transaction's calldata,
//  4. the transfer amount of one open invoice,
//  5. the bare amount of one open invoice that is not covered yet,
//  6. the transfer amount of one invoice that is no longer open,
//  7. less than the amount of one open invoice that is not covered yet, within
//     its tolerance.
//
// Where a rule fits two invoices nothing is guessed, and no later rule is
// tried: the transfer stays unattributed and ok is false. So does one of
// nothing, and one from an address to itself.
func Attribute(t Transfer, candidates []Candidate) (a Attribution, ok bool) {
	rules := []struct {
		method Method
		fits   func(Candidate) bool
	}{
		{ByRegistry, func(c Candidate) bool { return c.names(t.Evidence.Registry) }},
		{ByAuthorization, func(c Candidate) bool { return c.names(t.Evidence.Authorization) }},
		{ByCalldata, func(c Candidate) bool { return c.names(t.Evidence.Calldata) }},
		{ByTransferAmount, func(c Candidate) bool { return c.openAt(t.BlockTime) && c.TransferAmount == t.Amount }},
		{ByAmount, func(c Candidate) bool { return c.openAt(t.BlockTime) && c.Amount == t.Amount && !c.Covered }},
		{ByTransferAmount, func(c Candidate) bool { return c.closedBy(t.BlockTime) && c.TransferAmount == t.Amount }},
		{ByTolerance, func(c Candidate) bool { return c.openAt(t.BlockTime) && c.Tolerates(t.Amount) && !c.Covered }},
	}
	if t.Amount.IsZero() || t.From == t.To {
		return Attribution{}, false // nobody has got anything
	}
	for _, rule := range rules {
		found := 0
		for _, c := range candidates {
			if c.Takes(t) && rule.fits(c) {
				a = Attribution{Invoice: c.Invoice, Method: rule.method}
				found++
			}
		}
		switch {
		case found == 1:
			return a, true
		case found > 1:
			return Attribution{}, false
		}
	}
	return Attribution{}, false
}

// Takes reports whether t moves the invoice's token to the invoice's address
// on the invoice's chain.
func (inv Invoice) Takes(t Transfer) bool {
	return inv.ChainKey == t.ChainKey && inv.Token == t.Token && inv.Merchant == t.To
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

func (inv Invoice) openAt(blockTime int64) bool {
	return inv.Status == Open && inv.CreatedAt-ClockSkew <= blockTime && blockTime <= inv.ExpiresAt
}

// closedBy reports whether a transfer mined at blockTime came after the
// invoice was paid or expired, but not so long after that its transfer amount
// means nothing any more.
func (inv Invoice) closedBy(blockTime int64) bool {
	return !inv.openAt(blockTime) && inv.CreatedAt-ClockSkew <= blockTime && blockTime <= inv.ExpiresAt+LateWindow
}
