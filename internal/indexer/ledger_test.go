package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// record is a transfer as the ledger stores it.
type record struct {
	invoice.Transfer
	Status invoice.PaymentStatus
}

// memory is a Ledger that keeps the contract of the real one, and records every breach of it by the indexer.
type memory struct {
	settlement map[invoice.Address]bool
	lost       map[invoice.Address]bool // deposit addresses of lost invoices
	first      time.Time                // when the first invoice was created; zero without one
	registries []invoice.Address        // former registries

	mu       sync.Mutex
	cursor   ledger.Progress
	headers  []invoice.Header
	records  map[string]record // by the payment's id
	events   map[ledger.RegistryEvent]int
	lines    []invoice.Header // of each Confirm
	unfinal  []uint64         // of each Confirm
	fills    []uint64         // the last block of each Fill
	gaveWay  int              // calls of GiveWay
	genesis  *invoice.Header
	due      int      // number of Expire calls until no work is left
	expired  []uint64 // the newest indexed block at each call of Expire
	unread   map[invoice.Hash]ledger.UnreadTransaction
	reports  int // calls of ReportUnread
	audits   []ledger.ChainAudit
	notices  []time.Time                   // without a stored payment
	noSkips  map[ledger.UnreadReason]error // of CanSkipTransaction
	breaches []string

	// fail, if set, is called before and after each change. An error before the change is a failed transaction; an
	// error after it is a commit with a lost response.
	fail func(after bool) error
}

func newMemory(settlement ...invoice.Address) *memory {
	m := &memory{settlement: map[invoice.Address]bool{}, records: map[string]record{}, events: map[ledger.RegistryEvent]int{}, unread: map[invoice.Hash]ledger.UnreadTransaction{}}
	for _, a := range settlement {
		m.settlement[a] = true
	}
	return m
}

func (m *memory) breach(format string, args ...any) error {
	m.breaches = append(m.breaches, fmt.Sprintf(format, args...))
	return errors.New(m.breaches[len(m.breaches)-1])
}

// change runs one transaction.
func (m *memory) change(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(false); err != nil {
			return err
		}
	}
	err := f()
	if m.fail != nil && err == nil {
		err = m.fail(true)
	}
	return err
}

func (m *memory) Cursor(context.Context, string) (ledger.Progress, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.cursor
	if c.Gap != nil {
		gap := *c.Gap
		c.Gap = &gap
	}
	return c, nil
}

func (m *memory) Start(_ context.Context, _ string, at invoice.Header, from uint64) error {
	return m.change(func() error {
		if m.cursor.Started {
			return ledger.ErrCursorMoved
		}
		m.cursor = ledger.Progress{Started: true, Indexed: at, Confirmed: at}
		m.audits = []ledger.ChainAudit{{Part: ledger.AuditNew, Next: at.Number + 1}}
		if from <= at.Number {
			m.cursor.Gap = &ledger.Gap{Next: from, Last: at.Number, LastTime: at.Time}
		}
		m.headers = []invoice.Header{at}
		return nil
	})
}

func (m *memory) Headers(_ context.Context, _ string, from, to uint64) ([]invoice.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []invoice.Header
	for _, h := range m.headers {
		if from <= h.Number && h.Number <= to {
			found = append(found, h)
		}
	}
	return found, nil
}

func (m *memory) Registries(context.Context, string) ([]invoice.Address, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.registries, nil
}

func (m *memory) FirstInvoice(context.Context, string) (time.Time, bool, error) {
	return m.first, !m.first.IsZero(), nil
}

func (m *memory) Watched(_ context.Context, _ string, accounts []invoice.Address) (map[invoice.Address]bool, error) {
	watched := map[invoice.Address]bool{}
	for _, a := range accounts {
		if m.settlement[a] {
			watched[a] = true
		}
	}
	return watched, nil
}

func (m *memory) LostDeposits(_ context.Context, _ string, accounts []invoice.Address) (map[invoice.Address]bool, error) {
	lost := map[invoice.Address]bool{}
	for _, a := range accounts {
		lost[a] = m.lost[a]
	}
	return lost, nil
}

func (m *memory) MayBeRefunds(_ context.Context, _ string, outgoing []ledger.Pair) (map[ledger.Pair]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	may := map[ledger.Pair]bool{}
	for _, pair := range outgoing {
		for _, r := range m.records {
			may[pair] = may[pair] || r.From == pair.Payer && r.To == pair.Receiver
		}
	}
	return may, nil
}

func (m *memory) Observe(_ context.Context, _ string, blocks []ledger.Block) error {
	return m.change(func() error {
		for i, b := range blocks {
			if i == 0 && b.Parent != m.cursor.Indexed.Hash {
				return ledger.ErrCursorMoved
			}
			if below := m.cursor.Indexed; b.Number <= below.Number || (b.Number == below.Number+1 && b.Parent != below.Hash) {
				return m.breach("block %d is observed above block %d, which is not its parent", b.Number, below.Number)
			}
			for _, t := range b.Transfers {
				id := invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)
				if r, ok := m.records[id]; ok && r.Status != invoice.Orphaned {
					return m.breach("transfer %s is observed in block %d while it is %s in block %d", id, t.BlockNumber, r.Status, r.BlockNumber)
				}
				if t.BlockHash != b.Hash || t.BlockNumber != b.Number {
					return m.breach("transfer %s of block %d is observed in block %d", id, t.BlockNumber, b.Number)
				}
				if !m.lost[t.From] {
					m.records[id] = record{t, invoice.Pending}
				}
			}
			for _, e := range b.Registry {
				e.TxHash = invoice.Hash{} // no test expects it
				m.events[e]++
			}
			m.addUnread(b.Unread)
			m.cursor.Indexed = b.Header
			m.headers = append(m.headers, b.Header)
		}
		return nil
	})
}

func (m *memory) Rollback(_ context.Context, _ string, to invoice.Header) error {
	return m.change(func() error {
		if to.Number < m.cursor.Confirmed.Number {
			return ledger.ErrFinalityViolated
		}
		if !slices.Contains(m.headers, to) {
			return ledger.ErrCursorMoved
		}
		for id, r := range m.records {
			if r.BlockNumber > to.Number {
				if r.Status == invoice.Confirmed {
					return m.breach("transfer %s is confirmed in block %d and rolled back to %d", id, r.BlockNumber, to.Number)
				}
				r.Status = invoice.Orphaned
				m.records[id] = r
			}
		}
		m.headers = slices.DeleteFunc(m.headers, func(h invoice.Header) bool { return h.Number > to.Number })
		m.cursor.Indexed = to
		m.cursor.Revision++
		return nil
	})
}

func (m *memory) Pending(_ context.Context, _ string, through uint64) ([]invoice.Transfer, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []invoice.Transfer
	for _, r := range m.records {
		if r.Status == invoice.Pending && r.BlockNumber <= through {
			found = append(found, r.Transfer)
		}
	}
	return found, m.cursor.Revision, nil
}

func (m *memory) Orphaned(_ context.Context, _ string, through uint64) ([]invoice.Transfer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []invoice.Transfer
	for _, r := range m.records {
		if r.Status == invoice.Orphaned && m.cursor.Confirmed.Number < r.BlockNumber && r.BlockNumber <= through {
			found = append(found, r.Transfer)
		}
	}
	return found, nil
}

func (m *memory) Expire(context.Context, string) (more bool, err error) {
	err = m.change(func() error {
		if m.due > 0 {
			m.due--
			m.expired = append(m.expired, m.cursor.Indexed.Number)
		}
		more = m.due > 0
		return nil
	})
	return more, err
}

func (m *memory) Confirm(_ context.Context, _ string, line invoice.Header, revision int64, unfinal uint64) (more bool, err error) {
	err = m.change(func() error {
		if line.Number <= m.cursor.Confirmed.Number {
			return m.breach("block %d is confirmed although block %d is", line.Number, m.cursor.Confirmed.Number)
		}
		if m.cursor.Indexed.Number-line.Number < unfinal {
			return m.breach("block %d is confirmed when block %d is read, where the newest %d are not final", line.Number, m.cursor.Indexed.Number, unfinal)
		}
		if revision != m.cursor.Revision || !slices.Contains(m.headers, line) {
			return ledger.ErrCursorMoved
		}
		for id, r := range m.records {
			if r.Status == invoice.Pending && r.BlockNumber <= line.Number {
				r.Status = invoice.Confirmed
				m.records[id] = r
			}
		}
		m.cursor.Confirmed = line
		m.lines, m.unfinal = append(m.lines, line), append(m.unfinal, unfinal)
		return nil
	})
	return m.due > 0, err
}

func (m *memory) Fill(_ context.Context, _ string, next uint64, blocks []ledger.Block, through invoice.Header) error {
	return m.change(func() error {
		gap := m.cursor.Gap
		if gap == nil || gap.Next != next || through.Number > min(gap.Last, m.cursor.Confirmed.Number) {
			return ledger.ErrCursorMoved
		}
		if i := slices.IndexFunc(m.headers, func(h invoice.Header) bool { return h.Number == through.Number }); i >= 0 && m.headers[i].Hash != through.Hash {
			return ledger.ErrFinalityViolated
		}
		for _, b := range blocks {
			if b.Number < next || b.Number > through.Number {
				return m.breach("block %d fills the gap of blocks %d to %d", b.Number, next, through.Number)
			}
			next = b.Number + 1
			for _, t := range b.Transfers {
				m.records[invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)] = record{t, invoice.Confirmed}
			}
			for _, e := range b.Registry {
				e.TxHash = invoice.Hash{} // no test expects it
				m.events[e]++
			}
			m.addUnread(b.Unread)
		}
		m.fills = append(m.fills, through.Number)
		last := through.Number
		if len(m.audits) < 2 {
			m.audits = append(m.audits, ledger.ChainAudit{Part: ledger.AuditOlder, Next: gap.Next})
		}
		m.audits[len(m.audits)-1].Last = &last
		m.cursor.Gap = gap.After(through.Number)
		return nil
	})
}

func (m *memory) addUnread(all []ledger.UnreadTransaction) {
	for _, u := range all {
		m.unread[u.TxHash] = u
	}
}

func (m *memory) ReportUnread(_ context.Context, _ string, tx invoice.Hash, block uint64, reason ledger.UnreadReason) error {
	return m.change(func() error {
		m.reports++
		m.addUnread([]ledger.UnreadTransaction{{TxHash: tx, Block: block, Reason: reason}})
		return nil
	})
}

func (m *memory) DueUnread(_ context.Context, _ string, limit int, oversized bool) (due []ledger.UnreadTransaction, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.unread {
		if oversized || u.Reason != ledger.UnreadOversized {
			due = append(due, u)
		}
	}
	return due[:min(len(due), limit)], nil
}

func (m *memory) PostponeUnread(_ context.Context, _ string, u ledger.UnreadTransaction, reason string) error {
	return m.change(func() error {
		u.Attempts, u.Detail = u.Attempts+1, reason
		m.unread[u.TxHash] = u
		return nil
	})
}

func (m *memory) ForgetUnread(_ context.Context, _ string, tx invoice.Hash) error {
	return m.change(func() error {
		delete(m.unread, tx)
		return nil
	})
}

func (m *memory) CountUnread(context.Context, string) (map[ledger.UnreadReason]int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := map[ledger.UnreadReason]int{}
	for _, u := range m.unread {
		counts[u.Reason]++
	}
	return counts, nil
}

func (m *memory) ChainAudits(context.Context, string) ([]ledger.ChainAudit, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.audits) == 0 {
		m.audits = []ledger.ChainAudit{{Part: ledger.AuditNew, Next: m.cursor.Confirmed.Number + 1}}
	}
	return slices.Clone(m.audits), nil
}

func (m *memory) AdvanceAudit(_ context.Context, _ string, from ledger.ChainAudit, next uint64, more ledger.AuditCounts) error {
	return m.change(func() error {
		for i := range m.audits {
			if a := &m.audits[i]; a.Part == from.Part && a.Next == from.Next {
				a.Next = next
				a.Counted.Header += more.Header
				a.Counted.Receipts += more.Receipts
				a.Counted.Node += more.Node
				a.Counted.Unverified += more.Unverified
			}
		}
		return nil
	})
}

func (m *memory) RecordedTransactions(_ context.Context, _ string, txs []invoice.Hash) (map[invoice.Hash]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	recorded := map[invoice.Hash]bool{}
	for _, r := range m.records {
		if r.Status != invoice.Orphaned && slices.Contains(txs, r.TxHash) {
			recorded[r.TxHash] = true
		}
	}
	return recorded, nil
}

func (m *memory) UnlinkedNotices(_ context.Context, _ string, from, before time.Time) (in []time.Time, err error) {
	for _, at := range m.notices {
		if !at.Before(from) && at.Before(before) {
			in = append(in, at)
		}
	}
	return in, nil
}

func (m *memory) CanSkipTransaction(_ context.Context, _ string, reason ledger.UnreadReason) error {
	return m.noSkips[reason]
}

func (m *memory) Supplement(_ context.Context, _ string, b ledger.Block, above invoice.Header, settled ...invoice.Hash) error {
	return m.change(func() error {
		gap := m.cursor.Gap
		if b.Number > m.cursor.Indexed.Number || gap != nil && gap.Next <= b.Number && b.Number <= gap.Last {
			return ledger.ErrCursorMoved
		}
		status := invoice.Pending
		if b.Number <= m.cursor.Confirmed.Number {
			status = invoice.Confirmed
		} else if !slices.Contains(m.headers, b.Header) {
			i := slices.IndexFunc(m.headers, func(h invoice.Header) bool { return h.Number >= b.Number })
			if i < 0 || m.headers[i].Number == b.Number || above.Number <= b.Number || !slices.Contains(m.headers, above) {
				return ledger.ErrCursorMoved
			}
			m.headers = slices.Insert(m.headers, i, b.Header)
		}
		for _, t := range b.Transfers {
			m.records[invoice.TransferID(invoice.PrefixPayment, t.ChainKey, t.TxHash, t.Ordinal)] = record{t, status}
		}
		for _, tx := range settled {
			delete(m.unread, tx)
		}
		m.cursor.Revision++
		return nil
	})
}

func (m *memory) GiveWay(context.Context, time.Duration) (waited bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gaveWay++
	return true
}

func (m *memory) Halt(_ context.Context, _ string, reason string) error {
	return m.change(func() error {
		m.cursor.Halted = reason
		return nil
	})
}

// count returns how many transfers are in a state.
func (m *memory) count(status invoice.PaymentStatus) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, r := range m.records {
		if r.Status == status {
			n++
		}
	}
	return n
}

func (m *memory) Genesis(context.Context, string) (*invoice.Header, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.genesis, nil
}

func (m *memory) SetGenesis(_ context.Context, _ string, at invoice.Header) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.genesis == nil {
		m.genesis = &at
	}
	return nil
}
