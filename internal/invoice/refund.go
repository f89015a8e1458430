package invoice

// RefundMatch is the payment that a refund pays back. Exact says that the
// refund leaves little doubt about it: the transaction's calldata names the
// payment's invoice, or the refund is all that remains of the payment.
type RefundMatch struct {
	Payment Payment
	Exact   bool
}

// AttributeRefund finds the payment that a transfer out of a settlement
// address pays back. remaining gives, for each payment, what of it has not
// been paid back yet. A payment fits when it was mined before the transfer,
// which goes from its receiver to its payer in its token and does not exceed
// what remains; ok is false when none does. Whether it was attributed does not
// matter: a merchant also pays back what no invoice asked for.
//
// Among several, those whose invoice the transaction's calldata names come
// first, then those whose whole remainder the transfer is. Where it is only a
// part, those that are attributed come first. Among those that are left it is
// the newest on the chain. Unlike a payment, a refund between two that fit is
// not left aside: it moves no invoice to another state, and its merchant must
// hear of it. A merchant who wants it exact ends the calldata with the
// invoice's commitment id.
func AttributeRefund(t Transfer, payments []Payment, remaining func(Payment) Amount, tagged func(Payment) bool) (m RefundMatch, ok bool) {
	fit := keep(payments, func(p Payment) bool { return p.reversedBy(t) && !remaining(p).Less(t.Amount) })
	whole := func(p Payment) bool { return remaining(p) == t.Amount }
	if named := keep(fit, tagged); len(named) > 0 {
		fit = named
	}
	if exact := keep(fit, whole); len(exact) > 0 {
		fit = exact
	} else if attributed := keep(fit, Payment.Attributed); len(attributed) > 0 {
		fit = attributed
	}
	for _, p := range fit {
		if !ok || m.Payment.Before(p.Position) {
			m, ok = RefundMatch{Payment: p, Exact: tagged(p) || whole(p)}, true
		}
	}
	return m, ok
}

// reversedBy reports whether a later transfer goes from the payment's receiver to
// its payer in its token.
func (p Payment) reversedBy(t Transfer) bool {
	return p.Status != Orphaned && p.Before(t.Position) && p.ChainKey == t.ChainKey && p.Token == t.Token &&
		p.To == t.From && p.From == t.To && t.From != t.To && !t.Amount.IsZero()
}

func keep(payments []Payment, wanted func(Payment) bool) []Payment {
	var kept []Payment
	for _, p := range payments {
		if wanted(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
