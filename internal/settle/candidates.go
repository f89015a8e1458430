package settle

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/dispatcher"
	"github.com/quittance/quittance/internal/invoice"
)

const (
	// maxAwaiting bounds the invoices with a transfer's amount, as theirs or as a
	// former remainder, that await the transfer. Two with the amount are ambiguous
	// already, so only former remainders reach the bound.
	maxAwaiting = 100
	// maxTolerant bounds the invoices with a tolerance and an amount above a
	// transfer's, up to twice of it, that await the transfer.
	maxTolerant = 500

	// listedFirst is how many invoices of an amount are listed at first, and listGrowth by which factor
	// the number grows if these do not suffice.
	listedFirst = 16
	listGrowth  = 8
)

// amountGroup is the transfers of a batch that transfer the same amount of a token to the same
// receiver. They share the lookups for that amount.
type amountGroup struct {
	lookup   AmountLookup
	byAmount invoiceList // with the amount, as theirs or as a former remainder
	tolerant invoiceList // with a tolerance and a larger amount; empty if no transfer needs it
}

// invoiceList lists the invoices that some transfer of a group can pay, in no
// order. It is complete if it is shorter than its limit.
type invoiceList struct {
	lookup *AmountLookup
	find   func(context.Context, db.Querier, []AmountLookup, int) ([][]string, error)
	ids    []string
	limit  int
}

// findCandidates looks up the invoices that the entries can pay: those that their transactions and
// transfer amounts identify, and those with their amounts.
func (b *transferBatch) findCandidates(ctx context.Context, entries []*entry) error {
	if err := b.findIdentified(ctx, entries); err != nil {
		return err
	}
	var byAmount, tolerant []*invoiceList
	groups := make(map[AmountKey]*amountGroup)
	for _, e := range entries {
		key := AmountKey{ChainKey: e.ChainKey, Merchant: e.To, Token: e.Token, Amount: e.Amount}
		g := groups[key]
		if g == nil {
			g = &amountGroup{lookup: AmountLookup{AmountKey: key, FirstBlock: e.BlockNumber, FirstTime: e.BlockTime}}
			g.byAmount = invoiceList{lookup: &g.lookup, find: InvoicesByAmount}
			byAmount = append(byAmount, &g.byAmount)
			groups[key] = g
		}
		g.lookup.LastBlock = e.BlockNumber // the entries are in the chain's order
		e.group = g
		if g.tolerant.lookup == nil && !slices.ContainsFunc(b.identified(e), func(c invoice.Candidate) bool { return c.MatchedBy(e.Transfer) }) {
			g.tolerant = invoiceList{lookup: &g.lookup, find: InvoicesWithTolerance}
			tolerant = append(tolerant, &g.tolerant)
		}
	}
	if err := b.extend(ctx, listedFirst, byAmount...); err != nil {
		return err
	}
	return b.extend(ctx, maxTolerant+1, tolerant...)
}

// findIdentified looks up the invoices that the entries' transactions name, and the invoices that have
// their transfer amounts.
func (b *transferBatch) findIdentified(ctx context.Context, entries []*entry) error {
	transfers := make([]invoice.Transfer, len(entries))
	commitments := make(map[invoice.Hash]bool)
	for i, e := range entries {
		transfers[i] = e.Transfer
		for _, c := range e.Evidence.Commitments() {
			commitments[c] = true
		}
	}
	named, err := InvoicesByCommitment(ctx, b.tx, slices.Collect(maps.Keys(commitments)))
	if err != nil {
		return err
	}
	assigned, err := InvoicesByTransferAmount(ctx, b.tx, transfers)
	if err != nil {
		return err
	}
	var ids []string
	for i, e := range entries {
		e.assigned = assigned[i]
		for _, c := range e.Evidence.Commitments() {
			if id := named[c]; id != "" {
				e.named = append(e.named, id)
			}
		}
		if id := e.bound.InvoiceID; id != "" && !slices.Contains(e.named, id) {
			e.named = append(e.named, id)
		}
		ids = append(ids, e.named...)
		if e.assigned != "" {
			ids = append(ids, e.assigned)
		}
	}
	return b.invoices.load(ctx, ids...)
}

// extend lists up to limit invoices in each of the lists, which have the same
// find, and loads them.
func (b *transferBatch) extend(ctx context.Context, limit int, lists ...*invoiceList) error {
	if len(lists) == 0 {
		return nil
	}
	lookups := make([]AmountLookup, len(lists))
	for i, l := range lists {
		lookups[i] = *l.lookup
	}
	found, err := lists[0].find(ctx, b.tx, lookups, limit)
	if err != nil {
		return err
	}
	var ids []string
	for i, l := range lists {
		known := make(map[string]bool, len(l.ids))
		for _, id := range l.ids {
			known[id] = true
		}
		l.ids = append(l.ids, slices.DeleteFunc(found[i], func(id string) bool { return known[id] })...)
		l.limit = limit
		ids = append(ids, l.ids...)
	}
	return b.invoices.load(ctx, ids...)
}

// identified returns the invoices that a transfer identifies, regardless of other payments.
func (b *transferBatch) identified(e *entry) []invoice.Candidate {
	var candidates []invoice.Candidate
	for _, id := range e.named {
		candidates = append(candidates, invoice.Candidate{
			Invoice: b.invoices.byID[id], HasTransferAmount: id == e.assigned, Authorized: id == e.bound.InvoiceID,
		})
	}
	if e.assigned != "" && !slices.Contains(e.named, e.assigned) {
		candidates = append(candidates, invoice.Candidate{Invoice: b.invoices.byID[e.assigned], HasTransferAmount: true})
	}
	return candidates
}

// candidatesAt returns the candidates of a payment, with the amount due before it. If the payment's
// transaction names a candidate, the amounts due do not matter and are not computed. Of the invoices
// that merely await its amount it returns only as many as Attribute needs to decide; truncated is set
// if there are too many to consider.
func (b *transferBatch) candidatesAt(ctx context.Context, p invoice.Payment, e *entry) (candidates []invoice.Candidate, truncated bool, err error) {
	candidates = b.identified(e)
	if slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.NamedBy(p.Transfer) }) {
		return candidates, false, nil
	}
	if b.wasLeft(p) {
		return nil, false, nil
	}
	if candidates, err = b.withPartlyPaid(ctx, p, candidates); err != nil {
		return nil, false, err
	}
	truncated, err = b.eachAwaiting(ctx, p, &e.group.byAmount, maxAwaiting, func(c invoice.Candidate) bool {
		if (c.Amount == p.Amount || c.Remainder == p.Amount) && !contains(candidates, c.ID) {
			candidates = append(candidates, c)
		}
		return invoice.CountByAmount(p.Transfer, candidates) < 2
	})
	if err != nil || truncated || invoice.CountByAmount(p.Transfer, candidates) > 0 {
		return candidates, truncated, err
	}
	tolerating := 0
	truncated, err = b.eachAwaiting(ctx, p, &e.group.tolerant, maxTolerant+1, func(c invoice.Candidate) bool {
		if c.Tolerates(p.Amount) {
			tolerating++
			if !contains(candidates, c.ID) {
				candidates = append(candidates, c)
			}
		}
		return tolerating < 2
	})
	return candidates, truncated, err
}

// withPartlyPaid returns the identified candidates and the invoices with a remainder equal to the
// payment, with the amount due before it.
func (b *transferBatch) withPartlyPaid(ctx context.Context, p invoice.Payment, candidates []invoice.Candidate) ([]invoice.Candidate, error) {
	for _, inv := range b.invoices.partlyPaid(p.Transfer) {
		if !contains(candidates, inv.ID) {
			candidates = append(candidates, invoice.Candidate{Invoice: inv})
		}
	}
	candidates, err := b.withoutNewer(ctx, p, candidates)
	if err != nil {
		return nil, err
	}
	for i := range candidates {
		if c := &candidates[i]; c.PayableAt(p.Position) {
			if c.Covered, c.Remainder, err = b.dueAt(ctx, c.Invoice, p); err != nil {
				return nil, err
			}
		}
	}
	return candidates, nil
}

// wasLeft reports whether a stored payment was left unattributed by an earlier decision. It stays so,
// unless its transaction names an invoice.
func (b *transferBatch) wasLeft(p invoice.Payment) bool {
	was, known := b.payments[p.ID]
	return known && !was.Attributed() && was.SameMovement(p.Transfer) && !b.undecided[p.ID]
}

// withoutNewer returns the candidates without those that were created after the
// payment was first seen.
func (b *transferBatch) withoutNewer(ctx context.Context, p invoice.Payment, candidates []invoice.Candidate) ([]invoice.Candidate, error) {
	ids := make([]string, len(candidates))
	for i, c := range candidates {
		ids[i] = c.ID
	}
	older := candidates[:0]
	for _, c := range candidates {
		newer, err := b.isNewer(ctx, p, c.ID, ids)
		if err != nil {
			return nil, err
		}
		if !newer {
			older = append(older, c)
		}
	}
	return older, nil
}

// isNewer reports whether an invoice was created after a payment was first seen.
// An adversary who saw the payment can have created the invoice, so the payment
// does not pay it by its amount. The order of events decides, because neither a
// reorg nor a clock changes it. ids are invoices that are asked for next, read in
// the same query.
func (b *transferBatch) isNewer(ctx context.Context, p invoice.Payment, id string, ids []string) (bool, error) {
	was, known := b.payments[p.ID]
	if !known {
		return false, nil
	}
	if _, ok := b.created[id]; !ok {
		var missing []string
		for _, id := range ids {
			if _, ok := b.created[id]; !ok {
				b.created[id] = 0
				missing = append(missing, id)
			}
		}
		seqs, err := dispatcher.CreatedSeqs(ctx, b.tx, missing)
		if err != nil {
			return false, err
		}
		maps.Copy(b.created, seqs)
	}
	return b.created[id] > was.SeenAfter, nil
}

func contains(candidates []invoice.Candidate, id string) bool {
	return slices.ContainsFunc(candidates, func(c invoice.Candidate) bool { return c.ID == id })
}

// eachAwaiting calls yield with the invoices of a list that are payable at the
// payment and not covered before it, until it returns false. It stops and
// returns true at the last of limit invoices.
func (b *transferBatch) eachAwaiting(ctx context.Context, p invoice.Payment, list *invoiceList, limit int, yield func(invoice.Candidate) bool) (bool, error) {
	for i, awaiting := 0, 0; ; i++ {
		if i == len(list.ids) && i >= list.limit && list.limit > 0 {
			if err := b.extend(ctx, listGrowth*list.limit, list); err != nil {
				return false, err
			}
		}
		if i >= len(list.ids) {
			return false, nil
		}
		c, ok, err := b.awaiting(ctx, p, list.ids[i], list.ids)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		if awaiting++; awaiting == limit {
			return true, nil
		}
		if !yield(c) {
			return false, nil
		}
	}
}

// awaiting returns an invoice with the amount due before a payment. ok is false if the payment cannot
// pay it by its amount: it is not payable then, newer than the payment, or covered. ids are the
// invoices that will be asked for next.
func (b *transferBatch) awaiting(ctx context.Context, p invoice.Payment, id string, ids []string) (c invoice.Candidate, ok bool, err error) {
	c.Invoice = b.invoices.byID[id]
	if !c.PayableAt(p.Position) {
		return c, false, nil
	}
	if newer, err := b.isNewer(ctx, p, id, ids); newer || err != nil {
		return c, false, err
	}
	c.Covered, c.Remainder, err = b.dueAt(ctx, c.Invoice, p)
	return c, !c.Covered, err
}
