package invoice

import (
	"maps"
	"slices"
)

// PaidInOrder computes whether confirmed payments paid an open invoice before they were refunded, by the order of the
// chain. It is for payments that are confirmed after their refunds were read, for example after the service was down or
// was restored from a backup. back is how much of each payment was or is to be returned, by id, and refunds are the
// refunds in blocks. A refund more than unfinal blocks above a payment was mined after the payment was final. So was a
// prepared refund of it, because only final payments can have one. It returns how much of each payment did not count
// when the invoice was paid. ok is false if the invoice was not paid.
func (inv Invoice) PaidInOrder(payments []Payment, refunds []Refund, back map[string]Amount, unfinal uint64) (returned map[string]Amount, ok bool) {
	refunds = slices.SortedFunc(slices.Values(refunds), func(a, b Refund) int { return a.Compare(b.Position) })
	returned = maps.Clone(back)
	for _, r := range refunds {
		returned[r.PaymentID] = returned[r.PaymentID].Minus(r.Amount)
	}
	before := make(map[string]Payment)  // the payments so far, by id
	prepared := make(map[string]Amount) // how much of returned belongs to prepared refunds
	var sum Amount                      // of the parts of before that count
	for _, p := range inv.inTime(payments) {
		for len(refunds) > 0 && refunds[0].BlockNumber <= p.BlockNumber+unfinal {
			r := refunds[0]
			refunds = refunds[1:]
			earlier := before[r.PaymentID]
			sum = sum.Minus(earlier.Amount.Minus(returned[r.PaymentID]))
			returned[r.PaymentID] = returned[r.PaymentID].Plus(r.Amount)
			sum = sum.Plus(earlier.Amount.Minus(returned[r.PaymentID]))
			if r.PreparedID != "" {
				prepared[r.PaymentID] = prepared[r.PaymentID].Plus(r.Amount)
			}
		}
		then := returned[p.ID].Minus(prepared[p.ID])
		if !sum.Plus(p.Amount.Minus(then)).Less(inv.threshold()) {
			returned[p.ID] = then
			return returned, true
		}
		before[p.ID] = p
		sum = sum.Plus(p.Amount.Minus(returned[p.ID]))
	}
	return nil, false
}

// inTime returns the confirmed payments of the invoice that are not late, in the order of the chain.
func (inv Invoice) inTime(payments []Payment) []Payment {
	all := filter(payments, func(p Payment) bool {
		return p.Status == Confirmed && p.InvoiceID == inv.ID && !inv.IsLate(p.Position)
	})
	slices.SortFunc(all, func(a, b Payment) int { return a.Compare(b.Position) })
	return all
}
