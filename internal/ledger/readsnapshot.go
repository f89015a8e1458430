package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/webhooks"
)

// newSnapshot returns a snapshot that reads from a transaction. It has read nothing yet.
func newSnapshot(ctx context.Context, tx *db.Tx, scope chainScope, transfers []invoice.Transfer) *Snapshot {
	s := &Snapshot{scope: scope, transferID: tx.TransferID, lookups: amountLookups(transfers), fittingFirst: fittingFirst}
	s.readPayments(ctx, tx)
	s.readInvoices(ctx, tx)
	last := uint64(0)
	if len(transfers) > 0 {
		last = transfers[len(transfers)-1].BlockNumber
	}
	s.readRefunds(ctx, tx, last)
	return s
}

// kind adds a kind of facts to a snapshot, with the query that reads them.
func kind[K comparable, V any](s *Snapshot, f *facts[K, V], query func(keys []K) (map[K]V, error)) {
	*f = facts[K, V]{rows: make(map[K]V), wanted: make(map[K]bool), lacking: &s.lacking, query: query}
	s.kinds = append(s.kinds, f)
}

// readPayments says how the facts about addresses and payments are read.
func (s *Snapshot) readPayments(ctx context.Context, tx *db.Tx) {
	chainKey := s.scope.key
	kind(s, &s.settlements, func(among []invoice.Address) (map[invoice.Address]bool, error) {
		return access.SettlementAddresses(ctx, tx, chainKey, among)
	})
	kind(s, &s.deposits, func(among []invoice.Address) (map[invoice.Address]string, error) {
		return Deposits(ctx, tx, chainKey, among)
	})
	kind(s, &s.bound, func(of []*invoice.Transfer) (map[*invoice.Transfer]BoundAuthorization, error) {
		found, err := BoundAuthorizations(ctx, tx, values(of))
		bound := make(map[*invoice.Transfer]BoundAuthorization, len(found))
		for i, a := range found {
			bound[of[i]] = a
		}
		return bound, err
	})
	kind(s, &s.payments, func(ids []string) (map[string]PaymentRow, error) {
		rows, err := PaymentsByID(ctx, tx, ids)
		return byKey(rows, func(p PaymentRow) string { return p.ID }), err
	})
	kind(s, &s.lastSeq, func([]struct{}) (map[struct{}]int64, error) {
		seq, err := webhooks.NewReader(tx).LastSeq(ctx)
		return map[struct{}]int64{{}: seq}, err
	})
	kind(s, &s.undecided, func(ids []string) (map[string]bool, error) {
		found, err := NewReader(tx).WhichUndecided(ctx, ids)
		return setOf(found), err
	})
	kind(s, &s.receivers, func(of []invoice.Address) (map[invoice.Address]ReceiverState, error) {
		return ReceiverStates(ctx, tx, chainKey, of)
	})
	kind(s, &s.paymentsOf, func(ids []string) (map[string][]PaymentRow, error) {
		rows, err := NewReader(tx).PaymentsOfInvoices(ctx, ids)
		return grouped(rows, invoiceOf), err
	})
	kind(s, &s.inTime, func(of []expiryKey) (map[expiryKey][]string, error) {
		invoices := make([]invoice.Invoice, len(of))
		for i, key := range of {
			invoices[i].ID, invoices[i].ExpiresAt = key.invoiceID, invoice.Unix(key.expiresAt)
		}
		found, err := PaymentsInTime(ctx, tx, invoices)
		inTime := make(map[expiryKey][]string, len(of))
		for _, key := range of {
			inTime[key] = found[key.invoiceID]
		}
		return inTime, err
	})
	kind(s, &s.sweeps, func(ids []string) (map[string]invoice.Sweep, error) {
		rows, err := SweepsByID(ctx, tx, ids)
		return byKey(rows, func(w invoice.Sweep) string { return w.ID }), err
	})
}

// readInvoices says how the facts about invoices are read.
func (s *Snapshot) readInvoices(ctx context.Context, tx *db.Tx) {
	kind(s, &s.named, func(of []invoice.Hash) (map[invoice.Hash]string, error) {
		return InvoicesByCommitment(ctx, tx, of)
	})
	kind(s, &s.assigned, func(of []*invoice.Transfer) (map[*invoice.Transfer]string, error) {
		found, err := InvoicesByTransferAmount(ctx, tx, values(of))
		if err != nil {
			return nil, err
		}
		assigned := make(map[*invoice.Transfer]string, len(found))
		for i, id := range found {
			assigned[of[i]] = id
		}
		return assigned, nil
	})
	kind(s, &s.byAmount, s.lists(ctx, tx, InvoicesByAmount))
	kind(s, &s.tolerant, s.lists(ctx, tx, InvoicesWithTolerance))
	kind(s, &s.invoices, func(ids []string) (map[string]invoice.Invoice, error) {
		rows, err := InvoicesWithoutLines(ctx, tx, ids)
		return byKey(rows, func(inv invoice.Invoice) string { return inv.ID }), err
	})
	kind(s, &s.created, func(ids []string) (map[string]int64, error) { return webhooks.CreatedSeqs(ctx, tx, ids) })
	kind(s, &s.registered, func(ids []string) (map[string]bool, error) { return PaidThroughRegistry(ctx, tx, ids) })
	kind(s, &s.waivers, func(ids []string) (map[string]invoice.Decision, error) {
		decisions, err := DecisionsInForce(ctx, tx, ids)
		waivers := make(map[string]invoice.Decision)
		for _, d := range decisions {
			if _, ok := waivers[d.ObjectID]; !ok && d.Outcome == invoice.Accepted {
				waivers[d.ObjectID] = d
			}
		}
		return waivers, err
	})
}

// lists returns the query that finds candidates by their amounts, which has one statement for each length of lists.
func (s *Snapshot) lists(
	ctx context.Context, tx *db.Tx, find func(context.Context, db.Querier, []AmountLookup, int) ([][]string, error),
) func([]listKey) (map[listKey][]string, error) {
	return func(keys []listKey) (map[listKey][]string, error) {
		byLimit := grouped(keys, func(k listKey) int { return k.limit })
		lists := make(map[listKey][]string, len(keys))
		for limit, some := range byLimit {
			lookups := db.Each(some, func(key listKey) AmountLookup { return s.lookups[key.AmountKey] })
			found, err := find(ctx, tx, lookups, limit)
			if err != nil {
				return nil, err
			}
			for i, key := range some {
				lists[key] = found[i]
			}
		}
		return lists, nil
	}
}

// readRefunds says how the facts about refunds are read.
func (s *Snapshot) readRefunds(ctx context.Context, tx *db.Tx, last uint64) {
	chainKey := s.scope.key
	kind(s, &s.refunds, func(ids []string) (map[string]invoice.Refund, error) {
		rows, err := RefundsByID(ctx, tx, ids)
		return byKey(rows, func(r invoice.Refund) string { return r.ID }), err
	})
	kind(s, &s.refundsOf, func(ids []string) (map[string][]invoice.Refund, error) {
		rows, err := RefundsOfPayments(ctx, tx, ids)
		return grouped(rows, func(r invoice.Refund) string { return r.PaymentID }), err
	})
	kind(s, &s.recordsOf, func(ids []string) (map[string][]invoice.RefundRecord, error) {
		rows, err := reservingRefunds(ctx, tx, ids)
		return grouped(rows, func(r invoice.RefundRecord) string { return r.PaymentID }), err
	})
	kind(s, &s.refundedSums, func(ids []string) (map[string]RefundedSum, error) { return RefundedSums(ctx, tx, ids) })
	kind(s, &s.submissions, func(ids []string) (map[string][]invoice.Submission, error) {
		rows, err := NewReader(tx).Submissions(ctx, ids...)
		return grouped(rows, func(r invoice.Submission) string { return r.RefundID }), err
	})
	kind(s, &s.recorded, func(ids []string) (map[string]bool, error) { return WhichRecorded(ctx, tx, ids) })
	kind(s, &s.preparedBy, func(tags []invoice.Hash) (map[invoice.Hash][]invoice.RefundRecord, error) {
		rows, err := PreparedByTag(ctx, tx, chainKey, tags)
		return grouped(rows, func(r invoice.RefundRecord) invoice.Hash { return r.Tag }), err
	})
	kind(s, &s.fitting, func(of []fittingKey) (map[fittingKey][]invoice.RefundRecord, error) {
		fitting := make(map[fittingKey][]invoice.RefundRecord)
		for limit, some := range grouped(of, func(k fittingKey) int { return k.limit }) {
			keys := db.Each(some, func(k fittingKey) PreparedKey { return k.PreparedKey })
			found, err := PreparedFitting(ctx, tx, chainKey, keys, limit)
			if err != nil {
				return nil, err
			}
			for key, records := range found {
				fitting[fittingKey{key, limit}] = records
			}
		}
		return fitting, nil
	})
	kind(s, &s.paidPairs, func(pairs []Pair) (map[Pair]bool, error) {
		return PaidPairs(ctx, tx, chainKey, pairs, false)
	})
	kind(s, &s.between, func(pairs []Pair) (map[Pair][]string, error) {
		return PaymentsBetween(ctx, tx, chainKey, pairs, last)
	})
	kind(s, &s.newest, func(ids []string) (map[string][]string, error) {
		return NewestPaymentIDs(ctx, tx, ids, maxTagged)
	})
	kind(s, &s.proved, func(among []invoice.Address) (map[invoice.Address]bool, error) {
		return whichProved(ctx, tx, chainKey, among)
	})
}

func invoiceOf(p PaymentRow) string { return p.InvoiceID }

// byKey returns rows by their keys.
func byKey[K comparable, V any](rows []V, key func(V) K) map[K]V {
	found := make(map[K]V, len(rows))
	for _, row := range rows {
		found[key(row)] = row
	}
	return found
}

// grouped returns the rows of each key, in their order.
func grouped[K comparable, V any](rows []V, key func(V) K) map[K][]V {
	groups := make(map[K][]V)
	for _, row := range rows {
		groups[key(row)] = append(groups[key(row)], row)
	}
	return groups
}

func setOf[K comparable](keys []K) map[K]bool {
	set := make(map[K]bool, len(keys))
	for _, key := range keys {
		set[key] = true
	}
	return set
}

// values returns what the pointers point to.
func values[V any](of []*V) []V {
	all := db.Each(of, func(v *V) V { return *v })
	return all
}
