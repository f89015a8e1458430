package invoice

import (
	"maps"
	"slices"
)

// PaidInOrder finds out whether confirmed payments paid an open invoice before they were refunded, by the order of
// the chain. It is for payments that are confirmed after their refunds were read, as when a service reads what happened
// while it was off, or since a backup. back is what was or is to be returned of each payment, by id, and refunds are
// those in blocks. A refund more than unfinal blocks above a payment was mined after that was final. So was one that
// was prepared for it, since only final payments have prepared refunds. It returns what did not count of each
// payment when the invoice was paid. ok is false if it was not.
func (inv Invoice) PaidInOrder(payments []Payment, refunds []Refund, back map[string]Amount, unfinal uint64) (returned map[string]Amount, ok bool) {
	inTime := filter(payments, func(p Payment) bool {
		return p.Status == Confirmed && p.InvoiceID == inv.ID && !inv.IsLate(p.Position)
	})
	slices.SortFunc(inTime, func(a, b Payment) int { return a.Compare(b.Position) })
	refunds = slices.SortedFunc(slices.Values(refunds), func(a, b Refund) int { return a.Compare(b.Position) })
	returned = maps.Clone(back)
	for _, r := range refunds {
		returned[r.PaymentID] = returned[r.PaymentID].Minus(r.Amount)
	}
	before := make(map[string]Payment)  // the payments below, by id
	prepared := make(map[string]Amount) // what prepared refunds have in returned
	var sum Amount                      // of what counts of before
	for _, p := range inTime {
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
