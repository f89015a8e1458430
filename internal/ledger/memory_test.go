package ledger

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// memory is the tables that decisions read and write, in memory, for one chain.
type memory struct {
	key         string // of the chain
	settlements map[invoice.Address]bool
	deposits    map[invoice.Address]string
	invoices    map[string]invoice.Invoice
	amounts     []memoryAmount // in the order in which they were assigned
	payments    map[string]PaymentRow
	refunds     map[string]invoice.Refund
	refunded    map[string]RefundedSum // by payment
	sweeps      map[string]invoice.Sweep
	created     map[string]int64 // by invoice
	seq         int64
	order       map[string]uint64 // in which the invoices were inserted
	events      map[string]bool

	cur       Cursor
	headers   map[uint64]invoice.Hash // of the blocks that were read, and not replaced since
	undecided map[string]bool         // payments
	deferred  map[string]invoice.Transfer
	bound     map[invoice.Hash]BoundAuthorization // by nonce

	records   []invoice.RefundRecord  // prepared refunds, the oldest first
	submitted map[string]invoice.Hash // transactions of refunds that a reorg dropped, by record
	proved    map[invoice.Address]bool

	// suffix returns the nth suffix to try for a transfer amount of an invoice.
	suffix func(inv invoice.Invoice, n uint64) uint64

	fittingFirst int // as in Snapshot
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

func newMemory(chainKey string) *memory {
	return &memory{
		key: chainKey, settlements: make(map[invoice.Address]bool), deposits: make(map[invoice.Address]string),
		invoices: make(map[string]invoice.Invoice), payments: make(map[string]PaymentRow),
		refunds: make(map[string]invoice.Refund), refunded: make(map[string]RefundedSum),
		sweeps: make(map[string]invoice.Sweep), created: make(map[string]int64), events: make(map[string]bool), order: make(map[string]uint64),
		headers: make(map[uint64]invoice.Hash), undecided: make(map[string]bool), deferred: make(map[string]invoice.Transfer),
		bound: make(map[invoice.Hash]BoundAuthorization), submitted: make(map[string]invoice.Hash),
		proved: make(map[invoice.Address]bool), fittingFirst: 1,
		// Another one than all others, which depends on nothing else.
		suffix: func(_ invoice.Invoice, n uint64) uint64 { return n*10_000_000 + n },
	}
}

// insert stores a new invoice.
func (m *memory) insert(inv invoice.Invoice) {
	if m.order[inv.ID] == 0 {
		m.order[inv.ID] = uint64(len(m.invoices) + 1)
	}
	m.invoices[inv.ID] = inv
	m.settlements[inv.Merchant] = true
	if inv.Status == invoice.Drafted {
		return
	}
	m.seq++
	if m.created[inv.ID] = m.seq; inv.IsDeposit() {
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

// snapshot returns a snapshot of the memory.
func (m *memory) snapshot(final bool, transfers []invoice.Transfer) *Snapshot {
	scope := chainScope{key: m.key, indexed: m.cur.Indexed.Number, unread: m.cur.Unread, now: memoryNow, final: final}
	s := &Snapshot{scope: scope, lookups: amountLookups(transfers), transferID: memoryID, fittingFirst: m.fittingFirst}
	kind(s, &s.settlements, of(func(a invoice.Address) bool { return m.settlements[a] }))
	kind(s, &s.deposits, of(func(a invoice.Address) string { return m.deposits[a] }))
	kind(s, &s.lastSeq, of(func(struct{}) int64 { return m.seq }))
	kind(s, &s.payments, of(m.payment))
	kind(s, &s.sweeps, of(func(id string) invoice.Sweep { return m.sweeps[id] }))
	kind(s, &s.bound, of(func(t *invoice.Transfer) BoundAuthorization { return m.bound[t.Evidence.Authorization] }))
	kind(s, &s.undecided, of(func(id string) bool { return m.undecided[id] }))
	kind(s, &s.receivers, of(m.receiver))
	m.addInvoices(s)
	m.addRefunds(s)
	return s
}

// payment returns a payment with its use.
func (m *memory) payment(id string) PaymentRow {
	p := m.payments[id]
	if p.ID != "" {
		facts := useFacts(p, m.refunded[id])
		facts.Reserved = invoice.ReservedOf(m.recordsOf(id))
		p.Use = useOf(facts)
	}
	return p
}

// receiver returns why payments to an address may depend on blocks that were not read.
func (m *memory) receiver(a invoice.Address) (r ReceiverState) {
	for _, inv := range m.invoices {
		r.Unbound = r.Unbound || inv.Merchant == a && inv.FromBlock == 0
	}
	for id := range m.undecided {
		r.Undecided = r.Undecided || m.payments[id].To == a
	}
	return r
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
	kind(s, &s.waivers, of(func(string) (none invoice.Decision) { return none }))
}

// list returns the direct invoices that transfers of a lookup may pay, of those that are wanted.
func (m *memory) list(l AmountLookup, limit int, wanted func(invoice.Invoice) bool) (ids []string) {
	for _, id := range slices.Sorted(maps.Keys(m.invoices)) {
		inv := m.invoices[id]
		if inv.IsDeposit() || inv.Status == invoice.Drafted || inv.Merchant != l.Merchant || inv.Token != l.Token || inv.FromBlock >= l.LastBlock || inv.ExpiresAt.Before(l.FirstTime) {
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
	kind(s, &s.refundsOf, of(m.refundsOf))
	kind(s, &s.recordsOf, of(m.recordsOf))
	kind(s, &s.refundedSums, of(func(id string) RefundedSum { return m.refunded[id] }))
	kind(s, &s.submissions, of(func(record string) []invoice.Submission {
		if tx, ok := m.submitted[record]; ok {
			return []invoice.Submission{{ID: record, RefundID: record, TxHash: tx}}
		}
		return nil
	}))
	kind(s, &s.recorded, of(func(id string) bool { return m.refunds[id].ID != "" || m.record(id).ID != "" }))
	kind(s, &s.preparedBy, of(func(tag invoice.Hash) []invoice.RefundRecord {
		return m.prepared(func(r invoice.RefundRecord) bool { return r.Tag == tag })
	}))
	kind(s, &s.fitting, of(func(key fittingKey) []invoice.RefundRecord {
		found := m.prepared(func(r invoice.RefundRecord) bool {
			fits := PreparedKey{r.From, r.To, r.Token, r.Amount, key.SubmittedTx} == key.PreparedKey && r.Status == invoice.RefundPending && !r.Sent()
			return fits && (key.SubmittedTx.IsZero() || r.SubmittedTx == key.SubmittedTx)
		})
		isSubmitted := func(r invoice.RefundRecord) bool { return !r.SubmittedTx.IsZero() }
		unsubmitted := slices.DeleteFunc(slices.Clone(found), isSubmitted)
		found = append(slices.DeleteFunc(found, func(r invoice.RefundRecord) bool { return !isSubmitted(r) }), unsubmitted...)
		return found[:min(len(found), key.limit)]
	}))
	kind(s, &s.paidPairs, of(func(pair Pair) bool { return len(m.between(pair)) > 0 }))
	kind(s, &s.between, of(m.between))
	kind(s, &s.newest, of(func(id string) (ids []string) {
		for _, p := range m.paid(func(p PaymentRow) bool { return p.InvoiceID == id }) {
			ids = append(ids, p.ID)
		}
		return ids
	}))
	kind(s, &s.proved, of(func(a invoice.Address) bool { return m.proved[a] }))
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

// Memory is a ledger in memory for the models of the tests outside of the package.
type Memory struct {
	*memory
	ids *invoice.IDs
}

// NewMemory returns a ledger of a chain in memory.
func NewMemory(chainKey string) *Memory {
	return &Memory{newMemory(chainKey), invoice.NewIDs(func() time.Time { return memoryNow }, rand.NewChaCha8([32]byte{}))}
}

// Restart sets the source of suffixes.
func (m *Memory) Restart(random io.Reader) {
	m.suffix = func(_ invoice.Invoice, n uint64) uint64 {
		var two [2]byte
		if _, err := random.Read(two[:]); err != nil {
			panic(err)
		}
		return 1 + (uint64(two[0])<<8+uint64(two[1])+n/64)%invoice.MaxSuffix // after many tries, another one
	}
}

// Insert stores invoices.
func (m *Memory) Insert(invoices ...invoice.Invoice) error {
	for _, inv := range invoices {
		m.insert(inv)
	}
	return nil
}

// Create makes an invoice, or a draft of one.
func (m *Memory) Create(d invoice.Draft) (invoice.Invoice, error) {
	id := m.ids.New(invoice.PrefixInvoice)
	inv := invoice.Invoice{
		ID: id, CommitmentID: memoryHash("commitment", id), MerchantID: d.MerchantID, ChainKey: m.key, Status: invoice.Open, Currency: d.Currency,
		Terms:      invoice.Terms{Merchant: d.Merchant, Token: memoryTokens[0], Amount: d.Amount, ExpiresAt: d.ExpiresAt},
		Collection: d.Collection, FromBlock: m.height(),
	}
	if d.Unissued {
		inv.Status = invoice.Drafted
		m.insert(inv)
		return inv, nil
	}
	return m.open(inv), nil
}

// height returns the newest known block, also if it was rolled back and not replaced yet.
func (m *Memory) height() uint64 {
	return slices.Max(slices.Collect(maps.Keys(m.headers)))
}

// open makes an invoice payable.
func (m *Memory) open(inv invoice.Invoice) invoice.Invoice {
	inv.Status, inv.FromBlock = invoice.Open, m.height()
	if inv.IsDeposit() {
		hash := memoryHash("deposit", inv.ID)
		inv.DepositAddress = invoice.Address(hash[:len(inv.DepositAddress)])
	} else {
		inv.TransferAmount = m.freeAmount(inv, inv.Amount)
	}
	m.insert(inv)
	return inv
}

// Finalize opens a draft.
func (m *Memory) Finalize(id string) (invoice.Invoice, error) {
	inv := m.invoices[id]
	switch {
	case inv.Status == invoice.Void:
		return inv, ErrVoid
	case inv.Status != invoice.Drafted:
		return inv, nil
	case !inv.ExpiresAt.After(m.cur.Indexed.Time):
		return inv, &invoice.FieldError{Field: "expiresAt"}
	}
	return m.open(inv), nil
}

// Prepare prepares a refund of the rest of a payment.
func (m *Memory) Prepare(paymentID string) (invoice.RefundRecord, error) {
	return m.prepare(paymentID, m.ids.New(invoice.PrefixRefund))
}

// Cursor returns how far the chain is read.
func (m *Memory) Cursor() Progress {
	return Progress{Started: true, Indexed: m.cur.Indexed, Confirmed: m.cur.Confirmed, Gap: m.cur.Gap, Revision: m.cur.Revision}
}

// Invoice returns an invoice.
func (m *Memory) Invoice(id string) invoice.Invoice {
	inv := m.invoices[id]
	if newest := m.newestSweeps(inv.Token)[id]; newest.ID != "" {
		inv.SweptTx = newest.TxHash
	}
	return inv
}

// found returns the rows of some ids that exist.
func found[V any](rows map[string]V, ids []string) (some []V) {
	for _, id := range ids {
		if row, ok := rows[id]; ok {
			some = append(some, row)
		}
	}
	return some
}

// Payments returns payments.
func (m *Memory) Payments(ids ...string) []PaymentRow { return found(m.payments, ids) }

// PaymentsOf returns the payments of an invoice.
func (m *Memory) PaymentsOf(invoiceID string) []PaymentRow {
	return m.paid(func(p PaymentRow) bool { return p.InvoiceID == invoiceID })
}

// Refunds returns refunds.
func (m *Memory) Refunds(ids ...string) (refunds []invoice.Refund) {
	for _, r := range found(m.refunds, ids) {
		refunds = append(refunds, m.refund(r.ID))
	}
	return refunds
}

// Record returns a prepared refund.
func (m *Memory) Record(id string) invoice.RefundRecord { return m.record(id) }

// Sweeps returns sweeps.
func (m *Memory) Sweeps(ids ...string) []invoice.Sweep { return found(m.sweeps, ids) }

// newestSweeps returns the newest final sweep of a token from each invoice's address.
func (m *Memory) newestSweeps(token invoice.Address) map[string]invoice.Sweep {
	newest := make(map[string]invoice.Sweep)
	for _, s := range m.sweeps {
		if s.Status == invoice.Confirmed && s.Token == token && (newest[s.InvoiceID].ID == "" || newest[s.InvoiceID].Before(s.Position)) {
			newest[s.InvoiceID] = s
		}
	}
	return newest
}

// Held returns what the deposit addresses hold of a token, by invoice.
func (m *Memory) Held(token invoice.Address) map[string]uint64 {
	held, newest := make(map[string]uint64), m.newestSweeps(token)
	for _, p := range m.payments {
		if s := newest[p.DepositOf]; p.DepositOf != "" && p.Status == invoice.Confirmed && p.Token == token && (s.ID == "" || s.Before(p.Position)) {
			var n uint64
			if _, err := fmt.Sscan(p.Amount.String(), &n); err != nil {
				panic(err)
			}
			held[p.DepositOf] += n
		}
	}
	return held
}

// refundsOf returns the refunds of a payment.
func (m *memory) refundsOf(paymentID string) (all []invoice.Refund) {
	for _, id := range slices.Sorted(maps.Keys(m.refunds)) {
		if r := m.refund(id); r.PaymentID == paymentID {
			all = append(all, r)
		}
	}
	return all
}

// prepared returns the prepared refunds that are wanted, the oldest first.
func (m *memory) prepared(wanted func(invoice.RefundRecord) bool) (found []invoice.RefundRecord) {
	for _, r := range m.records {
		if r = m.current(r); wanted(r) {
			found = append(found, r)
		}
	}
	return found
}

// record returns a prepared refund, or a zero one.
func (m *memory) record(id string) (r invoice.RefundRecord) {
	if found := m.prepared(func(r invoice.RefundRecord) bool { return r.ID == id }); len(found) > 0 {
		return found[0]
	}
	return r
}

// current returns a prepared refund with the transfer that pays it.
func (m *memory) current(r invoice.RefundRecord) invoice.RefundRecord {
	p := m.payments[r.PaymentID]
	r.Left, r.SubmittedTx = p.Amount.Minus(m.refunded[r.PaymentID].All), m.submitted[r.ID]
	for _, id := range slices.Sorted(maps.Keys(m.refunds)) {
		paid := m.refund(id)
		if paid.PreparedID != r.ID || r.Sent() {
			continue
		}
		if r.Transfer, r.Status = paid, invoice.RefundStatus(paid.Status); paid.Status == invoice.Orphaned {
			r.Status = r.Unsent()
		}
	}
	return r
}

// recordsOf returns the records that may reserve a part of a payment: of prepared refunds, and of transfers that a reorg
// dropped.
func (m *memory) recordsOf(paymentID string) []invoice.RefundRecord {
	records := m.prepared(func(r invoice.RefundRecord) bool { return r.PaymentID == paymentID })
	for _, r := range m.refundsOf(paymentID) {
		if tx, submitted := m.submitted[r.ID]; submitted && r.PreparedID == "" && r.Status == invoice.Orphaned {
			records = append(records, invoice.RefundRecord{
				ID: r.ID, PaymentID: paymentID, Status: invoice.RefundOrphaned, Transfer: r, SubmittedTx: tx,
				Left: m.payments[paymentID].Amount.Minus(m.refunded[paymentID].All),
			})
		}
	}
	return records
}

// prepare prepares a refund of the rest of a payment to its payer, with an id.
func (m *memory) prepare(paymentID, id string) (r invoice.RefundRecord, err error) {
	p := m.payment(paymentID)
	left := p.Amount.Minus(m.refunded[p.ID].All).Minus(invoice.ReservedOf(m.recordsOf(p.ID)))
	if m.undecided[p.ID] || isActive(m.refunds[memoryID(invoice.PrefixRefund, p.Transfer)]) || p.Use.Excludes(invoice.ActRefund) || left.IsZero() {
		return r, ErrRefundExceeds
	}
	r = invoice.RefundRecord{
		ID: id, PaymentID: p.ID, InvoiceID: p.InvoiceID, MerchantID: p.MerchantID, ChainKey: p.ChainKey, Token: p.Token, From: p.RefundedFrom(), Payer: p.From,
		To: p.From, Status: invoice.RefundPending, CreatedAt: memoryNow, Amount: left, ExpiresAt: memoryNow.Add(invoice.RefundLifetime), Account: invoice.AccountWithKey,
	}
	if r.Tag, err = invoice.RefundTag(r.PaymentID, r.ID); err != nil {
		return r, err
	}
	m.records = append(m.records, r)
	return r, m.change(func(ch *Changes) {
		ch.recountReturned(r.PaymentID)
		ch.finishPaid()
		ch.recountRemainders()
	})
}
