package indexer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// oracle has the content of the chain and of the ledger.
type oracle struct {
	*scenario
	blocks   []*chaintest.Block // the chain
	final    *chaintest.Block   // the newest final block, which is the head
	payments map[string]ledger.PaymentRow
	paid     map[*order][]*move // the canonical transfers that are stored as paying it, in the chain's order
	events   map[string]int     // events that must exist, by type and subject
}

// compare compares the ledger with the chain. It computes the expected rows independently.
// Where several results are right, it continues with the one that the ledger stored.
func (s *scenario) compare(final uint64) {
	blocks := s.net.Blocks()
	v := &oracle{
		scenario: s, blocks: blocks, final: blocks[final], payments: map[string]ledger.PaymentRow{},
		paid: map[*order][]*move{}, events: map[string]int{},
	}
	listed, _, err := ledger.NewReader(s.db.store).Payments(s.Context(), ledger.PaymentFilter{
		ChainKey: s.name, IncludePending: true, IncludeUnattributed: true, Limit: 10_000,
	})
	expect.OK(s, err)
	for _, p := range listed {
		v.payments[p.ID] = p
		if p.Attributed() {
			v.events["payment.received "+p.ID+"/"+p.InvoiceID]++
		}
	}
	s.outcome.tally["payments"] += len(listed)
	v.comparePayments()
	refunds := v.compareRefunds()
	for _, o := range s.orders {
		v.compareOrder(o, refunds[o])
	}
	v.compareEvents()
}

// blockOf returns the canonical block of the action, or nil, and the index of its first
// log there.
func (v *oracle) blockOf(d *action) (b *chaintest.Block, index int) {
	for _, at := range d.at {
		if v.blocks[min(at.Number, uint64(len(v.blocks)-1))] == at {
			b = at
		}
	}
	if b == nil {
		return nil, 0
	}
	for _, tx := range b.Txs {
		if tx.Hash == d.tx.Hash {
			break
		}
		index += len(tx.Logs)
	}
	return b, index
}

func (v *oracle) id(prefix string, m *move) string {
	return invoice.TransferID(prefix, v.name, invoice.Hash(m.of.tx.Hash), m.ordinal)
}

// receives reports whether the address belongs to a merchant with an order, or is an order's deposit address.
func (v *oracle) receives(a invoice.Address) bool {
	return slices.ContainsFunc(v.orders, func(o *order) bool { return a == o.Merchant || a == o.PayTo() })
}

// compareSweep looks for a transfer out of a deposit address among the sweeps.
func (v *oracle) compareSweep(m *move, b *chaintest.Block) {
	id := v.id(invoice.PrefixSweep, m)
	found, err := ledger.SweepsByID(v.Context(), v.db.store, []string{id})
	expect.OK(v, err)
	var s invoice.Sweep
	if len(found) > 0 {
		s = found[0]
	}
	switch confirmed := s.Status == invoice.Confirmed; {
	case b == nil && len(found) > 0 && s.Status != invoice.Orphaned:
		v.report(extraPayments, "sweep %s of %d is %s, but its transaction is not on the chain", id, m.amount, s.Status)
	case b != nil && !confirmed:
		v.report(missed, "sweep %s of %d in block %d is stored: %t, as %q", id, m.amount, b.Number, len(found) > 0, s.Status)
	case confirmed && (s.InvoiceID != m.sweeps.ID || small(s.Amount) != m.amount || s.BlockNumber != b.Number):
		v.report(misread, "sweep %s is stored as %+v", id, s)
	}
	v.count("sweeps")
}

// comparePayments looks for every transfer to a merchant among the payments,
// and for every payment among the transfers.
func (v *oracle) comparePayments() {
	known := map[string]bool{}
	for _, d := range v.actions {
		b, index := v.blockOf(d)
		for _, m := range d.moves {
			if m.sweeps != nil {
				v.compareSweep(m, b)
				continue
			}
			if m.back != nil || !v.receives(m.to) {
				continue
			}
			id := v.id(invoice.PrefixPayment, m)
			known[id] = true
			p, stored := v.payments[id]
			switch {
			case b == nil && stored && p.Status != invoice.Orphaned:
				v.report(extraPayments, "payment %s of %d is %s, but its transaction is not on the chain", id, m.amount, p.Status)
			case b != nil && (!stored || p.Status != invoice.Confirmed):
				v.report(missed, "transfer %s of %d in block %d is stored: %t, as %q", id, m.amount, b.Number, stored, p.Status)
			}
			if !stored {
				continue
			}
			v.compareAttribution(m, p)
			if b == nil {
				continue
			}
			want := invoice.Transfer{
				Position: invoice.Position{BlockNumber: b.Number, BlockHash: invoice.Hash(b.Hash), BlockTime: invoice.Unix(b.Time), LogIndex: index + m.ordinal},
				ChainKey: v.name, TxHash: invoice.Hash(d.tx.Hash), Ordinal: m.ordinal, Token: token, Currency: "USDC",
				From: m.from, To: m.to, Amount: invoice.NewAmount(m.amount), Evidence: p.Evidence,
			}
			if p.Transfer != want {
				v.report(misread, "payment %s is stored as %+v, want %+v", id, p.Transfer, want)
			}
			v.pays(m, p)
		}
	}
	for _, f := range v.forgedPayments {
		known[invoice.TransferID(invoice.PrefixPayment, v.name, invoice.Hash(f.TxHash()), 0)] = true
	}
	for id, p := range v.payments {
		if !known[id] {
			v.report(extraPayments, "payment %+v is of no transfer", p)
		}
	}
	for _, f := range v.forgedPayments {
		p, stored := v.payments[invoice.TransferID(invoice.PrefixPayment, v.name, invoice.Hash(f.TxHash()), 0)]
		if stored && p.Status != invoice.Orphaned {
			v.report(extraPayments, "payment %s was invented by a node, and is %s", p.ID, p.Status)
		}
	}
	for _, of := range v.paid {
		slices.SortFunc(of, func(a, b *move) int {
			if v.payments[v.id(invoice.PrefixPayment, a)].Before(v.payments[v.id(invoice.PrefixPayment, b)].Position) {
				return -1
			}
			return 1
		})
	}
}

// pays notes which order a canonical transfer is stored as paying.
func (v *oracle) pays(m *move, p ledger.PaymentRow) {
	if i := slices.IndexFunc(v.orders, func(o *order) bool { return o.ID == p.InvoiceID }); i >= 0 {
		v.paid[v.orders[i]] = append(v.paid[v.orders[i]], m)
	}
}

// compareAttribution checks that the payment's order is one that the transfer may pay.
func (v *oracle) compareAttribution(m *move, p ledger.PaymentRow) {
	may := map[string]bool{}
	for _, b := range m.of.at {
		for _, id := range v.mayPay(m, b) {
			may[id] = true
		}
	}
	if v.gapped && p.Status == invoice.Orphaned {
		may[none] = true // it was dropped before the blocks below it were read
	}
	if !may[p.InvoiceID] {
		v.report(misattributed, "payment %s of %d went to %q by %q, want one of %q",
			p.ID, m.amount, p.InvoiceID, p.Method, slices.Collect(maps.Keys(may)))
	}
}

// none means no order.
const none = ""

// mayPay returns the orders that the transfer may pay when it is mined in a block. There are several if the attribution
// depends on the order of observation.
func (v *oracle) mayPay(m *move, b *chaintest.Block) []string {
	switch m.attributionKind {
	case named, byExact:
		return []string{m.order.ID}
	case atNone:
		return []string{none}
	case byBare, byLenient:
	}
	var open []*order
	var remains []string
	choice := false
	for _, o := range v.orders {
		if o.IsDeposit() || o.Merchant != m.to || b.Time > o.ExpiresAt.Unix() || b.Number <= v.bound(o) {
			continue
		}
		if o.amount > m.amount && v.others(m, o) >= o.amount-m.amount {
			remains = append(remains, o.ID) // it may pay the remainder of that order
		}
		if o.amount != m.order.amount {
			continue
		}
		open = append(open, o)
		choice = choice || v.others(m, o) >= o.enough || o.number > m.of.number || b.Number <= o.FromBlock
	}
	ids := []string{none}
	if choice || len(open) == 1 {
		for _, o := range open {
			ids = append(ids, o.ID)
		}
	}
	if !choice && len(open) == 1 && len(remains) == 0 {
		return ids[1:]
	}
	return append(ids, remains...)
}

// bound returns the first block with transfers that may pay the order. A reorg may have lowered it since the order was
// created.
func (v *oracle) bound(o *order) uint64 {
	inv, err := ledger.NewReader(v.db.store).Invoice(v.Context(), o.ID)
	expect.OK(v, err)
	return inv.FromBlock
}

// others returns the sum of the other timely payments of the order that may have been
// observed.
func (v *oracle) others(than *move, o *order) (sum uint64) {
	for _, d := range v.actions {
		inTime := slices.ContainsFunc(d.at, func(b *chaintest.Block) bool { return b.Time <= o.ExpiresAt.Unix() })
		for _, m := range d.moves {
			twin := m.order != nil && m.order.amount == o.amount && m.order.Merchant == o.Merchant && m.attributionKind >= byBare
			if m != than && inTime && (m.order == o || twin) {
				sum += m.amount
			}
		}
	}
	if len(v.forgedPayments) > 0 {
		sum += o.amount
	}
	return sum
}

// compareRefunds looks for every transfer back to a payer among the refunds, and returns how much was sent back for
// each order.
func (v *oracle) compareRefunds() map[*order]uint64 {
	var ids []string
	for _, o := range v.orders {
		ids = append(ids, o.ID)
	}
	refunds, err := ledger.RefundsOfInvoices(v.Context(), v.db.store, ids)
	expect.OK(v, err)
	stored := map[string]invoice.Refund{}
	for _, r := range refunds {
		stored[r.ID] = r
	}
	sums := map[*order]uint64{}
	for _, d := range v.actions {
		for _, m := range d.moves {
			if m.back == nil {
				continue
			}
			id := v.id(invoice.PrefixRefund, m)
			r := stored[id]
			paid := v.payments[v.id(invoice.PrefixPayment, m.back)]
			_, may, must := v.mayRefund(m)
			confirmed := r.Status == invoice.Confirmed
			switch {
			case confirmed && (!may || r.PaymentID != paid.ID || r.InvoiceID != paid.InvoiceID || small(r.Amount) != m.amount):
				v.report(extraPayments, "refund %s of %d is stored as %+v, and its payment %s is %q", id, m.amount, r, paid.ID, paid.Status)
			case !confirmed && must:
				v.report(missed, "refund %s of %d of payment %s is %q", id, m.amount, paid.ID, r.Status)
			case confirmed:
				v.events["payment.refunded "+id]++
				sums[m.back.order] += m.amount
				v.count("refunds")
			}
		}
	}
	return sums
}

// wereTogether reports whether two transfers were ever on the same chain.
func (v *oracle) wereTogether(x, y *move) bool {
	return slices.ContainsFunc(x.of.at, func(a *chaintest.Block) bool {
		return slices.ContainsFunc(y.of.at, func(b *chaintest.Block) bool { return v.net.IsAncestor(a, b) || v.net.IsAncestor(b, a) })
	})
}

// isBefore reports whether one transfer comes before another of the same
// block.
func (v *oracle) isBefore(a, b *move, in *chaintest.Block) bool {
	if a.of == b.of {
		return a.ordinal < b.ordinal
	}
	for _, tx := range in.Txs {
		if tx.Hash == a.of.tx.Hash || tx.Hash == b.of.tx.Hash {
			return tx.Hash == a.of.tx.Hash
		}
	}
	return false
}

// compareOrder computes the expected state of an invoice and compares it.
func (v *oracle) compareOrder(o *order, refunded uint64) {
	got, err := ledger.NewReader(v.db.store).Invoice(v.Context(), o.ID)
	expect.OK(v, err)
	v.compareReturned(o, got)
	var total, inTime, returned uint64 // inTime excludes the amounts that were sent back
	var late, extra bool
	var completing, timely []*move
	for _, m := range v.paid[o] {
		b, _ := v.blockOf(m.of)
		total += m.amount
		switch {
		case inTime >= o.amount:
			extra = true
		case b.Time > o.ExpiresAt.Unix():
			late = true
		default:
			inTime, returned = inTime+m.amount-v.returned(m), returned+v.returned(m)
			if inTime >= o.enough && completing == nil {
				completing = append(completing, m)
			}
		}
		if b.Time <= o.ExpiresAt.Unix() {
			timely = append(timely, m)
		}
	}
	want := invoice.Open
	switch {
	case inTime >= o.enough:
		want = invoice.Paid
	case v.final.Time > o.ExpiresAt.Unix():
		want = invoice.Expired
	}
	var exception invoice.Exception
	switch {
	case want == invoice.Paid && (extra || late):
		exception = invoice.Duplicate
	case want == invoice.Paid && inTime > o.amount+invoice.MaxSuffix:
		exception = invoice.Overpaid
	case late:
		exception = invoice.Late
	case total > returned && inTime < o.amount:
		exception = invoice.Underpaid
	}
	v.count("invoices " + string(want))
	switch {
	case got.Status == invoice.Paid && want != invoice.Paid:
		v.report(extraPayments, "invoice %s is paid; %d of %d came in time", o.ID, inTime, o.enough)
	case want == invoice.Paid && got.Status != invoice.Paid:
		v.report(missed, "invoice %s is %s; %d of %d came in time", o.ID, got.Status, inTime, o.enough)
	case got.Status != want:
		v.report(misread, "invoice %s is %s, want %s", o.ID, got.Status, want)
	}
	switch sum := small(got.AmountPaid); {
	case sum > total:
		v.report(doubled, "invoice %s has got %d, and %d is stored", o.ID, total, sum)
	case sum < total:
		v.report(missed, "invoice %s has got %d, and %d is stored", o.ID, total, sum)
	}
	if got.Exception != exception || small(got.AmountRefunded) != refunded {
		v.report(misread, "invoice %s has the exception %q and %s paid back, want %q and %d", o.ID, got.Exception, got.AmountRefunded, exception, refunded)
	}
	switch {
	case v.gapped, v.skipped:
		completing = timely // the newest blocks are read first
	case completing != nil && v.wasDropped(o):
		completing = timely[slices.Index(timely, completing[0]):] // more of the earlier ones was sent back
	}
	if want == invoice.Paid && got.Status == want && !slices.ContainsFunc(completing, func(m *move) bool {
		b, _ := v.blockOf(m.of)
		return got.SettledTx == invoice.Hash(m.of.tx.Hash) && got.SettledAt.Unix() == b.Time
	}) {
		v.report(misread, "invoice %s was settled by %s at %s", o.ID, got.SettledTx, got.SettledAt)
	}
	v.events["invoice.created "+o.ID]++
	switch want {
	case invoice.Paid:
		v.events["invoice.paid "+o.ID]++
	case invoice.Expired:
		v.events["invoice.expired "+o.ID]++
	default:
	}
	v.compareIntents(o, want)
}

// compareIntents compares the order's intents.
func (v *oracle) compareIntents(o *order, status invoice.Status) {
	recorded, ever := false, false
	for _, d := range v.actions {
		for _, r := range d.records {
			if r.of == o {
				b, _ := v.blockOf(d)
				recorded, ever = recorded || b != nil, true
			}
		}
	}
	byRegistry := slices.ContainsFunc(v.paid[o], func(m *move) bool {
		return slices.Contains(m.of.records, registryNote{ledger.RegistryPaid, o})
	})
	state := map[string]string{}
	for _, in := range dbtest.Intents(v.TB, v.db.sql, o.ID) {
		state[in.Kind] = in.Status
	}
	switch open := state["open"]; {
	case recorded && open != "done" && !v.partial, !ever && open != "due":
		v.report(misread, "the intent to open %s is %q; the registry knows it: %t", o.ID, open, recorded)
	}
	closes := status == invoice.Expired || status == invoice.Paid && !byRegistry
	if _, ok := state["close"]; ok != closes && !(status == invoice.Paid && len(v.paid[o]) > 1) {
		v.report(misread, "there is an intent to close %s: %t, want %t", o.ID, ok, closes)
	}
}

// compareEvents checks that each state change has exactly one event.
func (v *oracle) compareEvents() {
	for _, p := range v.parties {
		for _, e := range dbtest.Events(v.TB, v.db.sql, p.id) {
			v.events[fmt.Sprint(e.Type, " ", e.Subject)]--
		}
	}
	for _, what := range slices.Sorted(maps.Keys(v.events)) {
		switch n := v.events[what]; {
		case n > 0:
			v.report(missed, "%s was not told", what)
		case n < 0:
			v.report(wrongEvents, "%s was told too often by %d", what, -n)
		}
	}
}
