package invoice

// RefundMatch is the payment that a refund pays back.
type RefundMatch struct {
	Payment Payment
	Exact   bool // the calldata names the payment's invoice, or the refund is all that remains of the payment
}

// AttributeRefund returns the payment that a transfer out of a settlement address
// refunds. remaining returns how much of a payment is not refunded yet, and
// tagged whether the transaction's calldata names the payment's invoice. A
// payment fits when it was mined before the transfer, which goes from its
// receiver to its payer in its token and does not exceed what remains; ok is
// false when none fits. An unattributed payment can be refunded as well.
//
// Tagged payments come first, then those whose whole remainder the transfer is,
// then attributed ones. Of those that are left it is the newest on the chain. A
// refund that fits several payments is attributed, unlike a payment, because it
// changes no invoice's status.
func AttributeRefund(t Transfer, payments []Payment, remaining func(Payment) Amount, tagged func(Payment) bool) (m RefundMatch, ok bool) {
	fit := filter(payments, func(p Payment) bool { return p.reversedBy(t) && !remaining(p).Less(t.Amount) })
	whole := func(p Payment) bool { return remaining(p) == t.Amount }
	if named := filter(fit, tagged); len(named) > 0 {
		fit = named
	}
	if exact := filter(fit, whole); len(exact) > 0 {
		fit = exact
	} else if attributed := filter(fit, Payment.Attributed); len(attributed) > 0 {
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

// filter returns the payments that are wanted.
func filter(payments []Payment, wanted func(Payment) bool) []Payment {
	var kept []Payment
	for _, p := range payments {
		if wanted(p) {
			kept = append(kept, p)
		}
	}
	return kept
}
