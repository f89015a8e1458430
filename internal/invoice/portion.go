package invoice

// Portion is how the amount of a confirmed payment counts. The parts add up to the
// payment's amount.
type Portion struct {
	Settled   Amount // paid the amount of an invoice that is paid
	Underpaid Amount // paid a part of the amount of an invoice that is not paid
	Returned  Amount // does not count: see Payment.Returned
	Suffix    Amount // exceeded the amount by MaxSuffix or less
	Overpaid  Amount // exceeded it by more
	Late      Amount // was mined after expiresAt or void, or found after the invoice had expired
	Duplicate Amount // was mined after the amount was covered
}

// Portion returns how a confirmed payment of the invoice counts. before is the sum of the counted amounts of the
// earlier confirmed payments: see Counts.
func (inv Invoice) Portion(p Payment, before Amount) Portion {
	paid := inv.Status == Paid
	switch {
	case inv.IsLate(p.Position), !paid && !inv.Sums.Tally.Counted().Less(inv.threshold()):
		return Portion{Late: p.Amount}
	case !before.Less(inv.Amount):
		return Portion{Duplicate: p.Amount}
	}
	result := Portion{Returned: p.returned()}
	missing := inv.Amount.Minus(before)
	counted, excess := p.Counted(), p.Counted().Minus(missing)
	if missing.Less(counted) {
		counted = missing
	}
	if inv.Ceiling().Less(before.Plus(p.Counted())) {
		result.Overpaid = excess
	} else {
		result.Suffix = excess
	}
	if paid {
		result.Settled = counted
	} else {
		result.Underpaid = counted
	}
	return result
}

// Counts reports whether a confirmed payment counts toward the invoice's amount. before is the sum of the confirmed
// payments before it on the chain, without returned amounts.
func (inv Invoice) Counts(p Payment, before Amount) bool {
	return !inv.IsLate(p.Position) && before.Less(inv.Amount)
}
