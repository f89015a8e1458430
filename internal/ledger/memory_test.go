package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// memory is the tables that decisions read and write, in memory: one chain, and no prepared refunds, authorizations and
// undecided payments.
type memory struct {
	settlements map[invoice.Address]bool
	deposits    map[invoice.Address]string
	invoices    map[string]invoice.Invoice
	amounts     []memoryAmount // in the order in which they were assigned
	payments    map[string]PaymentRow
	refunds     map[string]invoice.Refund
	refunded    map[string]invoice.Amount // by payment
	sweeps      map[string]invoice.Sweep
	created     map[string]int64 // by invoice
	seq         int64
	order       map[string]uint64 // in which the invoices were inserted
	events      map[string]bool
	indexed     uint64
}

// memoryAmount is a transfer amount of an invoice, or a remainder.
type memoryAmount struct {
	invoiceID    string
	base, amount invoice.Amount
	fromBlock    uint64
	remainder    bool
}

const memoryChain = "base"

var memoryNow = time.Unix(1, 0).UTC()

func newMemory() *memory {
	return &memory{
		settlements: make(map[invoice.Address]bool), deposits: make(map[invoice.Address]string),
		invoices: make(map[string]invoice.Invoice), payments: make(map[string]PaymentRow),
		refunds: make(map[string]invoice.Refund), refunded: make(map[string]invoice.Amount),
		sweeps: make(map[string]invoice.Sweep), created: make(map[string]int64), events: make(map[string]bool), order: make(map[string]uint64),
	}
}

// insert stores a new invoice.
func (m *memory) insert(inv invoice.Invoice) {
	m.seq++
	m.created[inv.ID], m.order[inv.ID] = m.seq, uint64(len(m.invoices)+1)
	m.invoices[inv.ID] = inv
	m.settlements[inv.Merchant] = true
	if inv.IsDeposit() {
		m.deposits[inv.DepositAddress] = inv.ID
		return
	}
	m.amounts = append(m.amounts, memoryAmount{invoiceID: inv.ID, base: inv.Amount, amount: inv.TransferAmount, fromBlock: inv.FromBlock})
}

// of returns a query that looks up keys one by one.
func of[K comparable, V any](look func(K) V) func([]K) (map[K]V, error) {
	return func(keys []K) (map[K]V, error) {
		found := make(map[K]V, len(keys))
		for _, key := range keys {
			found[key] = look(key)
		}
		return found, nil
	}
}

// never is the query of facts that a memory never has.
func never[K comparable, V any]([]K) (map[K]V, error) { return nil, nil }

// snapshot returns a snapshot of the memory.
func (m *memory) snapshot(final bool, transfers []invoice.Transfer) *Snapshot {
	scope := chainScope{key: memoryChain, indexed: m.indexed, now: memoryNow, final: final}
	s := &Snapshot{scope: scope, lookups: amountLookups(transfers), transferID: memoryID}
	kind(s, &s.settlements, of(func(a invoice.Address) bool { return m.settlements[a] }))
	kind(s, &s.deposits, of(func(a invoice.Address) string { return m.deposits[a] }))
	kind(s, &s.lastSeq, of(func(struct{}) int64 { return m.seq }))
	kind(s, &s.payments, of(func(id string) PaymentRow { return m.payments[id] }))
	kind(s, &s.sweeps, of(func(id string) invoice.Sweep { return m.sweeps[id] }))
	kind(s, &s.bound, never[*invoice.Transfer, BoundAuthorization])
	kind(s, &s.undecided, never[string, bool])
	kind(s, &s.receivers, never[invoice.Address, ReceiverState])
	m.addInvoices(s)
	m.addRefunds(s)
	return s
}

// memoryID is the id of a transfer.
func memoryID(prefix string, t invoice.Transfer) string {
	return invoice.TransferID(prefix, t.ChainKey, t.TxHash, t.Ordinal)
}

// addInvoices adds the facts about invoices to a snapshot.
func (m *memory) addInvoices(s *Snapshot) {
	kind(s, &s.named, of(func(c invoice.Hash) string {
		for _, inv := range m.invoices {
			if inv.CommitmentID == c {
				return inv.ID
			}
		}
		return ""
	}))
	kind(s, &s.assigned, of(func(t *invoice.Transfer) (id string) {
		for _, a := range m.amounts {
			if inv := m.invoices[a.invoiceID]; a.amount == t.Amount && inv.Merchant == t.To && inv.Token == t.Token && a.fromBlock < t.BlockNumber {
				id = a.invoiceID
			}
		}
		return id
	}))
	kind(s, &s.byAmount, of(func(key listKey) []string {
		return m.list(s.lookups[key.AmountKey], key.limit, func(inv invoice.Invoice) bool {
			return inv.Amount == key.Amount || slices.ContainsFunc(m.amounts, func(a memoryAmount) bool {
				return a.remainder && a.invoiceID == inv.ID && a.base == key.Amount
			})
		})
	}))
	kind(s, &s.tolerant, of(func(key listKey) []string {
		return m.list(s.lookups[key.AmountKey], key.limit, func(inv invoice.Invoice) bool {
			return !inv.Tolerance.IsZero() && key.Amount.Less(inv.Amount) && !key.Amount.Plus(key.Amount).Less(inv.Amount)
		})
	}))
	kind(s, &s.invoices, of(func(id string) invoice.Invoice { return m.invoices[id] }))
	kind(s, &s.created, of(func(id string) int64 { return m.created[id] }))
	kind(s, &s.paymentsOf, of(func(id string) []PaymentRow {
		return m.paid(func(p PaymentRow) bool { return p.InvoiceID == id })
	}))
	kind(s, &s.inTime, of(func(key expiryKey) (ids []string) {
		for _, p := range m.paid(func(p PaymentRow) bool {
			return p.InvoiceID == key.invoiceID && p.BlockTime.Unix() <= key.expiresAt
		}) {
			ids = append(ids, p.ID)
		}
		return ids
	}))
	kind(s, &s.registered, of(func(id string) bool {
		return len(m.paid(func(p PaymentRow) bool {
			return p.InvoiceID == id && p.Method == invoice.ByRegistry && p.Status == invoice.Confirmed
		})) > 0
	}))
	kind(s, &s.waivers, never[string, invoice.Decision])
}

// list returns the direct invoices that transfers of a lookup may pay, of those that are wanted.
func (m *memory) list(l AmountLookup, limit int, wanted func(invoice.Invoice) bool) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(m.invoices)) {
		inv := m.invoices[id]
		if inv.IsDeposit() || inv.Merchant != l.Merchant || inv.Token != l.Token || inv.FromBlock >= l.LastBlock || inv.ExpiresAt.Before(l.FirstTime) {
			continue
		}
		if wanted(inv) && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids
}

// paid returns the payments that are wanted, in the chain's order.
func (m *memory) paid(wanted func(PaymentRow) bool) (found []PaymentRow) {
	for _, p := range m.payments {
		if wanted(p) {
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b PaymentRow) int { return cmp.Or(a.Compare(b.Position), cmp.Compare(a.ID, b.ID)) })
	return found
}

// addRefunds adds the facts about refunds to a snapshot.
func (m *memory) addRefunds(s *Snapshot) {
	kind(s, &s.refunds, of(func(id string) invoice.Refund { return m.refund(id) }))
	kind(s, &s.refundsOf, of(func(paymentID string) (all []invoice.Refund) {
		for _, id := range slices.Sorted(maps.Keys(m.refunds)) {
			if r := m.refund(id); r.PaymentID == paymentID {
				all = append(all, r)
			}
		}
		return all
	}))
	kind(s, &s.recordsOf, never[string, []invoice.RefundRecord])
	kind(s, &s.refundedSums, of(func(id string) invoice.Amount { return m.refunded[id] }))
	kind(s, &s.dropped, never[string, bool])
	kind(s, &s.submissions, never[string, []invoice.Submission])
	kind(s, &s.recorded, never[string, bool])
	kind(s, &s.preparedBy, never[invoice.Hash, []invoice.RefundRecord])
	kind(s, &s.preparedTo, never[invoice.Address, []invoice.RefundRecord])
	kind(s, &s.paidPairs, of(func(pair Pair) bool { return len(m.between(pair)) > 0 }))
	kind(s, &s.between, of(m.between))
	kind(s, &s.newest, of(func(id string) (ids []string) {
		for _, p := range m.paid(func(p PaymentRow) bool { return p.InvoiceID == id }) {
			ids = append(ids, p.ID)
		}
		return ids
	}))
	kind(s, &s.proved, never[invoice.Address, bool])
}

// refund returns a refund with the invoice of its payment.
func (m *memory) refund(id string) invoice.Refund {
	r := m.refunds[id]
	p := m.payments[r.PaymentID]
	r.InvoiceID, r.MerchantID = p.InvoiceID, p.MerchantID
	return r
}

// between returns the payments between two accounts.
func (m *memory) between(pair Pair) (ids []string) {
	for _, p := range m.paid(func(p PaymentRow) bool { return p.From == pair.Payer && p.RefundedFrom() == pair.Receiver }) {
		ids = append(ids, p.ID)
	}
	return ids
}

// save writes changes.
func (m *memory) save(ch *Changes) {
	for _, id := range ch.unsaved {
		m.payments[id] = ch.payments[id]
	}
	for id, amount := range ch.returned() {
		p := m.payments[id]
		p.Returned = amount
		m.payments[id] = p
	}
	for _, id := range ch.unsavedRefunds {
		m.refunds[id] = ch.refunds[id]
	}
	maps.Copy(m.refunded, ch.refundedSums)
	for _, s := range ch.effects.sweeps {
		m.sweeps[s.ID] = s
	}
	for _, inv := range ch.changedInvoices() {
		if inv.RemainingTransfer = (invoice.Amount{}); !inv.IsDeposit() {
			inv.RemainingTransfer = m.remember(inv, ch.allRemainders(inv))
		}
		if inv.Status != invoice.Open {
			inv.Remaining, inv.RemainingTransfer = invoice.Amount{}, invoice.Amount{}
		}
		m.invoices[inv.ID] = inv
	}
	for _, e := range ch.effects.events {
		m.seq++
		m.events[fmt.Sprint(e.kind, " ", e.subject)] = true
	}
}

// remember records the remainders of an invoice, and returns the transfer amount of what remains now. It depends on
// nothing else.
func (m *memory) remember(inv invoice.Invoice, remainders []invoice.Amount) (transfer invoice.Amount) {
	for _, base := range remainders {
		a := memoryAmount{invoiceID: inv.ID, base: base, fromBlock: m.indexed, remainder: true}
		if base == inv.Remaining {
			a.amount = base.Plus(invoice.NewAmount(10_000_000 * m.order[inv.ID])) // that no other remainder has
			transfer = a.amount
		}
		at := slices.IndexFunc(m.amounts, func(b memoryAmount) bool { return b.remainder && b.invoiceID == inv.ID && b.base == base })
		if at < 0 {
			m.amounts = append(m.amounts, a)
		} else if m.amounts[at].amount.IsZero() {
			m.amounts[at].amount = a.amount
		}
	}
	return transfer
}

// observe stores blocks above those that were read.
func (m *memory) observe(blocks ...Block) error {
	return m.store(false, blocks)
}

// store stores the transfers of blocks.
func (m *memory) store(final bool, blocks []Block) error {
	var transfers []invoice.Transfer
	for _, b := range blocks {
		transfers = append(transfers, b.Transfers...)
	}
	ch, err := m.snapshot(final, transfers).decide(maxReads, func(before *Snapshot) *Changes { return Apply(before, transfers) })
	if err != nil {
		return err
	}
	m.save(ch)
	m.indexed = max(m.indexed, blocks[len(blocks)-1].Number)
	return nil
}

// pending returns the payments and refunds in blocks that are not final.
func (m *memory) pending(from, through uint64) (payments []PaymentRow, refunds []invoice.Refund) {
	is := func(status invoice.PaymentStatus, block uint64) bool {
		return status == invoice.Pending && from <= block && block <= through
	}
	payments = m.paid(func(p PaymentRow) bool { return is(p.Status, p.BlockNumber) })
	for id := range m.refunds {
		if r := m.refund(id); is(r.Status, r.BlockNumber) {
			refunds = append(refunds, r)
		}
	}
	slices.SortFunc(refunds, func(a, b invoice.Refund) int { return a.Compare(b.Position) })
	return payments, refunds
}

// confirm makes the blocks up to a number final.
func (m *memory) confirm(through uint64) error {
	payments, refunds := m.pending(0, through)
	m.setSweeps(0, through, invoice.Confirmed)
	return m.change(func(ch *Changes) { ch.confirm(payments, refunds, 0) })
}

// rollback orphans what is in blocks above a number.
func (m *memory) rollback(to uint64) error {
	payments, refunds := m.pending(to+1, maxBlock)
	m.setSweeps(to+1, maxBlock, invoice.Orphaned)
	m.indexed = to
	for id, inv := range m.invoices { // blocks that replace others can hold transfers to these invoices
		inv.FromBlock = min(inv.FromBlock, to)
		m.invoices[id] = inv
	}
	for i := range m.amounts {
		m.amounts[i].fromBlock = min(m.amounts[i].fromBlock, to)
	}
	return m.change(func(ch *Changes) { ch.orphan(payments, refunds, to) })
}

// setSweeps sets the status of the pending sweeps in some blocks.
func (m *memory) setSweeps(from, through uint64, status invoice.PaymentStatus) {
	for id, s := range m.sweeps {
		if s.Status == invoice.Pending && from <= s.BlockNumber && s.BlockNumber <= through {
			if s.Status = status; status == invoice.Confirmed {
				s.ConfirmedAt = memoryNow
			}
			m.sweeps[id] = s
		}
	}
}

// change makes a decision about the stored payments and refunds.
func (m *memory) change(decision func(ch *Changes)) error {
	ch, err := m.snapshot(false, nil).decide(maxReads, func(before *Snapshot) *Changes {
		ch := newChanges(before)
		decision(ch)
		return ch
	})
	if err != nil {
		return err
	}
	maps.Copy(m.payments, ch.payments)
	maps.Copy(m.refunds, ch.refunds)
	m.save(ch)
	return nil
}
