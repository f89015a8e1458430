package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// save writes changes.
func (m *memory) save(ch *Changes) {
	for _, id := range ch.unsaved {
		m.payments[id] = ch.payments[id]
		if delete(m.undecided, id); ch.undecided[id] {
			m.undecided[id] = true
		}
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
	m.records = append(m.records, ch.effects.restored...)
	for _, r := range ch.effects.proofs {
		m.proved[r.From] = true
	}
	for _, s := range ch.effects.withdrawn {
		delete(m.submitted, s.RefundID)
	}
	for _, t := range ch.effects.deferred {
		m.deferred[memoryID(invoice.PrefixRefund, t)] = t
	}
	for id, paymentID := range ch.effects.authorized {
		for nonce, a := range m.bound {
			if a.ID == id {
				a.PaymentID = paymentID
				m.bound[nonce] = a
			}
		}
	}
	for _, s := range ch.effects.sweeps {
		m.sweeps[s.ID] = s
	}
	for _, inv := range ch.changedInvoices() {
		if inv.RemainingTransfer = (invoice.Amount{}); !inv.IsDeposit() {
			inv.RemainingTransfer = m.remember(inv, ch.allRemainders(inv))
		}
		m.putInvoice(inv)
	}
	for _, e := range ch.effects.events {
		m.seq++
		m.events[fmt.Sprint(e.kind, " ", e.subject)] = true
	}
}

// putInvoice replaces an invoice. One that has ended awaits nothing.
func (m *memory) putInvoice(inv invoice.Invoice) {
	if inv.Status != invoice.Open {
		inv.Remaining, inv.RemainingTransfer = invoice.Amount{}, invoice.Amount{}
		inv.ClosedBlock = cmp.Or(inv.ClosedBlock, m.cur.Indexed.Number)
	}
	m.invoices[inv.ID] = inv
}

// remember records the remainders of an invoice, and returns the transfer amount of what remains now.
func (m *memory) remember(inv invoice.Invoice, remainders []invoice.Amount) (transfer invoice.Amount) {
	for _, base := range remainders {
		at := slices.IndexFunc(m.amounts, func(b memoryAmount) bool { return b.remainder && b.invoiceID == inv.ID && b.base == base })
		if at < 0 {
			at = len(m.amounts)
			m.amounts = append(m.amounts, memoryAmount{invoiceID: inv.ID, base: base, fromBlock: m.cur.Indexed.Number, remainder: true})
		}
		if base == inv.Remaining && inv.Status == invoice.Open {
			if m.amounts[at].amount.IsZero() {
				m.amounts[at].amount = m.freeAmount(inv, base)
				m.amounts[at].fromBlock = m.cur.Indexed.Number
			}
			transfer = m.amounts[at].amount
		}
	}
	return transfer
}

// freeAmount returns an amount with a suffix that no invoice has, and that is not round.
func (m *memory) freeAmount(inv invoice.Invoice, base invoice.Amount) invoice.Amount {
	for n := m.order[inv.ID]; ; n++ {
		a := base.Plus(invoice.NewAmount(m.suffix(inv, n)))
		taken := slices.ContainsFunc(m.amounts, func(b memoryAmount) bool {
			return b.amount == a && m.invoices[b.invoiceID].Merchant == inv.Merchant
		})
		if !taken && !a.IsRound() {
			return a
		}
	}
}

// store stores the transfers of blocks.
func (m *memory) store(final bool, blocks []Block) (stored storedBlocks, err error) {
	var transfers []invoice.Transfer
	for _, b := range blocks {
		for _, t := range b.Transfers {
			if !t.Amount.IsZero() {
				transfers = append(transfers, t)
			}
		}
	}
	ch, err := m.snapshot(final, transfers).decide(maxReads, func(before *Snapshot) *Changes { return Apply(before, transfers) })
	if err != nil {
		return stored, err
	}
	m.save(ch)
	return storedBlocks{moved: ch.effects.moved, found: ch.effects.found}, nil
}

// Start begins to read the chain above a final block. The blocks from a number up to it are a gap.
func (m *memory) Start(at invoice.Header, from uint64) error {
	m.cur = Cursor{Indexed: at, Confirmed: at}
	if from <= at.Number {
		m.cur.Gap, m.cur.Unread = &Gap{Next: from, Last: at.Number, LastTime: at.Time}, &at.Number
	}
	m.headers[at.Number] = at.Hash
	return nil
}

// Observe stores blocks above those that were read.
func (m *memory) Observe(blocks ...Block) error {
	same := m.cur.Indexed.Number
	for _, b := range blocks {
		if m.headers[b.Number] == b.Hash {
			same = b.Number
		}
	}
	last := blocks[len(blocks)-1].Header
	for number := range m.headers {
		if same < number && number <= last.Number {
			m.replaced(same)
			break
		}
	}
	for _, b := range blocks {
		m.headers[b.Number] = b.Hash
	}
	stored, err := m.store(false, blocks)
	if m.cur.Indexed = last; stored.moved {
		m.cur.Revision++
	}
	return err
}

// replaced lowers the blocks from which invoices can be paid: those above a number were replaced.
func (m *memory) replaced(above uint64) {
	for id, inv := range m.invoices {
		inv.FromBlock = min(inv.FromBlock, above)
		m.invoices[id] = inv
	}
	for i, a := range m.amounts {
		m.amounts[i].fromBlock = min(a.fromBlock, above)
	}
	maps.DeleteFunc(m.headers, func(n uint64, _ invoice.Hash) bool { return n > above })
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

// Confirm makes the blocks up to one final.
func (m *memory) Confirm(line invoice.Header) error {
	if line.Number <= m.cur.Confirmed.Number {
		return nil
	}
	payments, refunds := m.pending(0, line.Number)
	m.setSweeps(0, line.Number, invoice.Confirmed)
	unfinal := m.cur.Indexed.Number - line.Number
	if err := m.change(func(ch *Changes) { ch.confirm(payments, refunds, unfinal) }); err != nil {
		return err
	}
	m.cur.Confirmed = line
	return m.end(unfinal)
}

// end attributes undecided payments and expires invoices, if they are due.
func (m *memory) end(unfinal uint64) error {
	if m.cur.Unread != nil && (m.cur.Gap == nil || m.cur.Gap.Next > *m.cur.Unread) {
		if err := m.decideUndecided(unfinal); err != nil {
			return err
		}
	}
	uncounted := m.uncounted()
	for id, inv := range m.invoices {
		if is, ok := inv.Expire(m.cur.Confirmed.Time); ok && inv.FromBlock >= uncounted {
			m.putInvoice(is)
			m.events[fmt.Sprint(invoice.EventExpired, " ", id)] = true
		}
	}
	return nil
}

// uncounted returns the newest block with payments that may not be counted.
func (m *memory) uncounted() (block uint64) {
	if m.cur.Gap != nil {
		block = m.cur.Gap.Last
	}
	for id := range m.undecided {
		block = max(block, m.payments[id].BlockNumber)
	}
	return block
}

// decideUndecided attributes the undecided payments and refunds.
func (m *memory) decideUndecided(unfinal uint64) error {
	transfers := make(map[string]invoice.Transfer)
	for id := range m.undecided {
		if p := m.payments[id]; p.Status != invoice.Orphaned {
			transfers[memoryID(invoice.PrefixRefund, p.Transfer)] = p.Transfer
		}
	}
	maps.Copy(transfers, m.deferred)
	all := slices.SortedFunc(maps.Values(transfers), func(a, b invoice.Transfer) int { return a.Compare(b.Position) })
	s := m.snapshot(false, all)
	s.scope.finalized, s.scope.unread, s.scope.deferred = m.cur.Confirmed.Number, nil, true
	ch, err := s.decide(maxReads, func(before *Snapshot) *Changes { return applyUndecided(before, all, unfinal) })
	if err != nil {
		return err
	}
	m.save(ch)
	maps.DeleteFunc(m.undecided, func(id string, _ bool) bool { return m.payments[id].Status != invoice.Orphaned })
	clear(m.deferred)
	m.cur.Unread = nil
	return nil
}

// Rollback orphans what is in blocks above one.
func (m *memory) Rollback(to invoice.Header) error {
	payments, refunds := m.pending(to.Number+1, maxBlock)
	m.setSweeps(to.Number+1, maxBlock, invoice.Orphaned)
	m.cur.Indexed, m.cur.Gap = to, m.cur.Gap.UpTo(to)
	if m.cur.Unread != nil && *m.cur.Unread > to.Number {
		m.cur.Unread = &to.Number
	}
	m.cur.Revision++
	err := m.change(func(ch *Changes) { ch.orphan(payments, refunds, to.Number) })
	for _, r := range refunds {
		m.submitted[cmp.Or(r.PreparedID, r.ID)] = r.TxHash
	}
	maps.DeleteFunc(m.deferred, func(_ string, t invoice.Transfer) bool { return t.BlockNumber > to.Number })
	return err
}

// Rescan schedules blocks to be read again.
func (m *memory) Rescan(from uint64) error {
	m.cur.ReadAgain(from)
	return nil
}

// Fill stores blocks of the gap.
func (m *memory) Fill(next uint64, through invoice.Header, blocks ...Block) error {
	if m.cur.Gap == nil || m.cur.Gap.Next != next {
		return ErrCursorMoved
	}
	stored, err := m.store(true, blocks)
	if err != nil {
		return err
	}
	shrinkGap(&m.cur, through.Number, stored)
	return m.end(m.cur.Indexed.Number - m.cur.Confirmed.Number)
}

// Void makes an invoice or a draft void.
func (m *memory) Void(id string) error {
	inv := m.invoices[id]
	if inv.Status == invoice.Open && inv.FromBlock < m.uncounted() {
		return ErrUnread
	}
	voided, err := inv.Cancel(m.cur.Indexed.Number)
	if err == nil && inv.Status != invoice.Void {
		m.putInvoice(voided)
	}
	return err
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
