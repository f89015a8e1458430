package ledger

import (
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

const (
	// maxAwaiting bounds the invoices with a transfer's amount, as theirs or as a former remainder, that await the
	// transfer. Two with the amount are ambiguous already, so only former remainders reach the bound.
	maxAwaiting = 100
	// maxTolerant bounds the invoices with a tolerance and an amount above a
	// transfer's, up to twice of it, that await the transfer.
	maxTolerant = 500

	// listedFirst is how many invoices of an amount are listed at first, and listGrowth by which factor
	// the number grows if these do not suffice.
	listedFirst = 16
	listGrowth  = 8
)

// listKey names a list of invoices that transfers of one amount to one receiver can pay by that amount, in no order.
// It is complete if it is shorter than its limit.
type listKey struct {
	AmountKey
	limit int
}

// amountKeyOf returns the receiver, the token and the amount of a transfer.
func amountKeyOf(t invoice.Transfer) AmountKey {
	return AmountKey{ChainKey: t.ChainKey, Merchant: t.To, Token: t.Token, Amount: t.Amount}
}

// amountLookups returns what is looked up for the amounts of transfers. Transfers of the same amount share it.
func amountLookups(transfers []invoice.Transfer) map[AmountKey]AmountLookup {
	lookups := make(map[AmountKey]AmountLookup, len(transfers))
	for _, t := range transfers {
		key := amountKeyOf(t)
		l, ok := lookups[key]
		if !ok {
			l = AmountLookup{AmountKey: key, FirstBlock: t.BlockNumber, FirstTime: t.BlockTime}
		}
		l.LastBlock = t.BlockNumber // the transfers are in the chain's order
		lookups[key] = l
	}
	return lookups
}

// namedBy returns the ids of the invoices that a transfer's transaction names. What goes to a deposit address is for
// the invoice of that address.
func (ch *Changes) namedBy(e *entry) (ids []string) {
	if e.depositOf != "" {
		return nil
	}
	for _, c := range e.Evidence.Commitments() {
		if id := ch.before.named.get(c); id != "" {
			ids = append(ids, id)
		}
	}
	if id := e.bound.InvoiceID; id != "" && !slices.Contains(ids, id) {
		ids = append(ids, id)
	}
	return ids
}

// identified returns the invoices that a transfer identifies, whatever was paid to them and to others.
func (ch *Changes) identified(e *entry) (candidates []invoice.Candidate) {
	named, assigned := ch.namedBy(e), ch.before.assigned.get(e.key)
	for _, id := range named {
		candidates = append(candidates, invoice.Candidate{
			Invoice: ch.invoice(id), HasTransferAmount: id == assigned, Authorized: id == e.bound.InvoiceID,
		})
	}
	if assigned != "" && !slices.Contains(named, assigned) {
		candidates = append(candidates, invoice.Candidate{Invoice: ch.invoice(assigned), HasTransferAmount: true})
	}
	return candidates
}

// candidatesAt returns the candidates of a payment, with what was due before it. Where the payment's transaction names
// one of them, that does not matter and is not computed. Of those that merely await its amount it returns no more than
// decide what Attribute says; truncated is set where they are too many to consider.
func (ch *Changes) candidatesAt(p invoice.Payment, e *entry) (candidates []invoice.Candidate, truncated bool) {
	candidates = ch.identified(e)
	if slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.NamedBy(p.Transfer) }) {
		return candidates, false
	}
	if ch.wasLeft(p) {
		return nil, false
	}
	candidates = ch.withPartlyPaid(p, candidates)
	truncated = ch.eachAwaiting(p, &ch.before.byAmount, listedFirst, maxAwaiting, func(c invoice.Candidate) bool {
		if (c.Amount == p.Amount || c.Remainder == p.Amount) && !contains(candidates, c.ID) {
			candidates = append(candidates, c)
		}
		return invoice.CountByAmount(p.Transfer, candidates) < 2
	})
	if ch.before.lacking || truncated || invoice.CountByAmount(p.Transfer, candidates) > 0 {
		return candidates, truncated
	}
	tolerating := 0
	truncated = ch.eachAwaiting(p, &ch.before.tolerant, maxTolerant+1, maxTolerant+1, func(c invoice.Candidate) bool {
		if c.Tolerates(p.Amount) {
			tolerating++
			if !contains(candidates, c.ID) {
				candidates = append(candidates, c)
			}
		}
		return tolerating < 2
	})
	return candidates, truncated
}

// withPartlyPaid returns the identified candidates, and the invoices whose remainder a payment may be, with what was
// due before it. It leaves out those that were created after the payment was first seen.
func (ch *Changes) withPartlyPaid(p invoice.Payment, candidates []invoice.Candidate) []invoice.Candidate {
	for _, inv := range ch.partlyPaid(p.Transfer) {
		if !contains(candidates, inv.ID) {
			candidates = append(candidates, invoice.Candidate{Invoice: inv})
		}
	}
	candidates = slices.DeleteFunc(candidates, func(c invoice.Candidate) bool { return ch.isNewer(p, c.ID) })
	for i := range candidates {
		if c := &candidates[i]; c.PayableAt(p.Position) {
			c.Covered, c.Remainder = ch.dueAt(c.Invoice, p)
		}
	}
	return candidates
}

// wasLeft reports whether a payment was decided before and left unattributed. It
// stays so, unless its transaction names an invoice or its block was read with another time.
func (ch *Changes) wasLeft(p invoice.Payment) bool {
	was, known := ch.payment(p.ID)
	return known && !was.Attributed() && was.SameMovement(p.Transfer) && !hadOtherTime(was.Payment, p.Transfer) && !ch.isUndecided(p.ID)
}

// isNewer reports whether an invoice was created after a payment was first seen. An adversary who saw the payment can
// have created the invoice, so the payment does not pay it by its amount. The order of events decides, because neither
// a reorg nor a clock changes it.
func (ch *Changes) isNewer(p invoice.Payment, invoiceID string) bool {
	was, known := ch.payment(p.ID)
	return known && ch.before.created.get(invoiceID) > was.SeenAfter
}

func contains(candidates []invoice.Candidate, id string) bool {
	return slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.ID == id })
}

// eachAwaiting calls yield with the invoices of a list that are payable at the payment and not covered before it, until
// it returns false. It stops and returns true at the last of limit invoices.
func (ch *Changes) eachAwaiting(
	p invoice.Payment, lists *facts[listKey, []string], first, limit int, yield func(invoice.Candidate) bool,
) bool {
	list := listKey{amountKeyOf(p.Transfer), first}
	longer := func() listKey { return listKey{list.AmountKey, listGrowth * list.limit} }
	for lists.has(longer()) {
		list = longer()
	}
	ids := lists.get(list)
	awaiting := 0
	for _, id := range ids {
		c, ok := ch.awaiting(p, id)
		if !ok || ch.before.lacking { // the rest is asked for as well
			continue
		}
		if awaiting++; awaiting == limit {
			return true
		}
		if !yield(c) {
			return false
		}
	}
	if len(ids) >= list.limit && !ch.before.lacking {
		lists.get(longer())
	}
	return false
}

// awaiting returns an invoice with what was due before a payment. ok is false if the payment cannot pay it by its
// amount: it is not payable then, newer than the payment, or covered.
func (ch *Changes) awaiting(p invoice.Payment, id string) (c invoice.Candidate, ok bool) {
	c.Invoice = ch.invoice(id)
	if !c.PayableAt(p.Position) || ch.isNewer(p, id) {
		return c, false
	}
	c.Covered, c.Remainder = ch.dueAt(c.Invoice, p)
	return c, !c.Covered
}

// dueAt returns whether the invoice is covered right before a payment on the chain, and what remains of it otherwise.
// The invoice's sums say so, unless it has payments above p, or p itself was one of its payments.
func (ch *Changes) dueAt(inv invoice.Invoice, p invoice.Payment) (bool, invoice.Amount) {
	if !inv.Covered() && !inv.HasParts() {
		return false, invoice.Amount{}
	}
	was, _ := ch.payment(p.ID)
	inOrder := inv.Sums.Newest.Before(p.Position) && !ch.outOfOrder[inv.ID] && was.InvoiceID != inv.ID
	if inOrder && (inv.Covered() || inv.Status == invoice.Open) { // Remaining is kept for open invoices alone
		return inv.Covered(), inv.Remaining
	}
	h := ch.history(inv.ID)
	h.Remove(was.Payment)
	defer h.Add(was.Payment)
	return h.DueAt(p.Position)
}
