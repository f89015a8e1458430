package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// Cursor returns how far the chain is read.
func (s *Service) Cursor(ctx context.Context, chainKey string) (Progress, error) {
	cur, err := NewReader(s.conf.Store).Cursor(ctx, chainKey)
	if errors.Is(err, db.ErrNotFound) {
		return Progress{}, nil
	}
	return Progress{Started: err == nil, Indexed: cur.Indexed, Confirmed: cur.Confirmed, Halted: cur.Halted, Gap: cur.Gap, Revision: cur.Revision}, err
}

// Awaited returns the payments that are awaited on a chain.
func (s *Service) Awaited(ctx context.Context, chainKey string) (Awaited, error) {
	return readAwaited(ctx, s.conf.Store, chainKey)
}

// FirstInvoice returns when the first invoice of a chain was created, by the service's clock at that
// time; ok is false before the first invoice.
func (s *Service) FirstInvoice(ctx context.Context, chainKey string) (createdAt time.Time, ok bool, err error) {
	first, err := firstInvoice(ctx, s.conf.Store, chainKey)
	return first.CreatedAt, err == nil, db.IgnoreNotFound(err)
}

// Start records a chain that is read for the first time. at is a final block; Observe continues with the block after
// it. The blocks from the number from up to at are a gap, for Fill; the chain has no gap when from is above at. It
// returns ErrCursorMoved when another process started the chain already.
func (s *Service) Start(ctx context.Context, chainKey string, at invoice.Header, from uint64) error {
	var gap *Gap
	if from <= at.Number {
		gap = &Gap{Next: from, Last: at.Number, LastTime: at.Time}
	}
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		fresh, err := InsertChain(ctx, tx, chainKey, at, gap)
		if err != nil {
			return err
		}
		if !fresh {
			return ErrCursorMoved
		}
		if err := beginAudit(ctx, tx, chainKey, at.Number+1); err != nil {
			return err
		}
		return insertHeaders(ctx, tx, chainKey, []invoice.Header{at})
	})
}

// Headers returns the stored headers from one number to another, both included, in ascending order.
// The headers above the finalized height and the newest below it are stored.
func (s *Service) Headers(ctx context.Context, chainKey string, from, to uint64) ([]invoice.Header, error) {
	return Headers(ctx, s.conf.Store, chainKey, from, to)
}

// Watched returns which of the addresses are settlement or deposit addresses.
func (s *Service) Watched(ctx context.Context, chainKey string, addrs []invoice.Address) (map[invoice.Address]bool, error) {
	return WatchedAddresses(ctx, s.conf.Store, chainKey, addrs)
}

// Pending returns the transfers up to a block that are not final yet: pending payments, refunds and sweeps, and
// possible refunds that are undecided. Verify them by their receipts, then pass the revision to Confirm.
func (s *Service) Pending(ctx context.Context, chainKey string, through uint64) (all []invoice.Transfer, revision int64, err error) {
	cur, err := NewReader(s.conf.Store).Cursor(ctx, chainKey) // read first, so that the revision is not newer than the transfers
	if err != nil {
		return nil, 0, err
	}
	payments, err := PendingPayments(ctx, s.conf.Store, chainKey, 0, through)
	if err != nil {
		return nil, 0, err
	}
	refunds, err := PendingRefunds(ctx, s.conf.Store, chainKey, 0, through)
	if err != nil {
		return nil, 0, err
	}
	for _, p := range payments {
		all = append(all, p.Transfer)
	}
	for _, r := range refunds {
		all = append(all, r.Transfer)
	}
	sweeps, err := PendingSweeps(ctx, s.conf.Store, chainKey, 0, through)
	if err != nil {
		return nil, 0, err
	}
	for _, w := range sweeps {
		all = append(all, w.Transfer)
	}
	undecided, err := UndecidedRefunds(ctx, s.conf.Store, chainKey, cur.Confirmed.Number+1, through, math.MaxInt32)
	return append(all, undecided...), cur.Revision, err
}

// Orphaned returns the transfers of orphaned payments and sweeps in blocks above the finalized height and up to a
// number. Where such a block is canonical, the transfer was missed when the block was read again.
func (s *Service) Orphaned(ctx context.Context, chainKey string, through uint64) ([]invoice.Transfer, error) {
	cur, err := NewReader(s.conf.Store).Cursor(ctx, chainKey)
	if err != nil {
		return nil, err
	}
	payments, err := OrphanedPayments(ctx, s.conf.Store, chainKey, cur.Confirmed.Number+1, through)
	if err != nil {
		return nil, err
	}
	sweeps, err := OrphanedSweeps(ctx, s.conf.Store, chainKey, cur.Confirmed.Number+1, through)
	var transfers []invoice.Transfer
	for _, p := range payments {
		transfers = append(transfers, p.Transfer)
	}
	for _, w := range sweeps {
		transfers = append(transfers, w.Transfer)
	}
	return transfers, err
}

// Halt stops the chain's indexer until Resume. It returns ErrNotStarted for a chain that was never read.
func (s *Service) Halt(ctx context.Context, chainKey, reason string) error {
	return s.updateCursor(ctx, chainKey, func(_ *db.Tx, cur *Cursor) error { cur.Halted = reason; return nil })
}

// Resume ends a Halt. It returns ErrNotStarted for a chain that was never read.
func (s *Service) Resume(ctx context.Context, chainKey string) error {
	return s.updateCursor(ctx, chainKey, func(tx *db.Tx, cur *Cursor) error {
		if cur.Halted == "" {
			return nil
		}
		was := auditedHalt{cur.Halted}
		cur.Halted = ""
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, s.conf.Now(), access.Change{Action: access.ActionChainResume, Object: chainKey, Before: was}))
	})
}

// auditedHalt is a halt in the audit log.
type auditedHalt struct {
	Halted string `json:"halted"` // why
}

// updateCursor changes the chain's cursor, also while the chain is halted.
func (s *Service) updateCursor(ctx context.Context, chainKey string, change func(*db.Tx, *Cursor) error) error {
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error {
		cur, err := LockCursor(ctx, tx, chainKey)
		if errors.Is(err, db.ErrNotFound) {
			return fmt.Errorf("%s: %w", chainKey, ErrNotStarted)
		}
		if err != nil {
			return err
		}
		if err := change(tx, &cur); err != nil {
			return err
		}
		return SaveCursor(ctx, tx, chainKey, cur)
	})
}

// ChainAudits returns how far the final blocks of a chain were read a second time. The
// first call for a chain begins with the blocks that become final afterwards.
func (s *Service) ChainAudits(ctx context.Context, chainKey string) ([]ChainAudit, error) {
	all, err := chainAudits(ctx, s.conf.Store, chainKey)
	if err != nil || len(all) > 0 && all[0].Part == AuditNew {
		return all, err
	}
	err = s.updateCursor(ctx, chainKey, func(tx *db.Tx, cur *Cursor) error {
		return beginAudit(ctx, tx, chainKey, cur.Confirmed.Number+1)
	})
	if err != nil {
		return nil, err
	}
	return chainAudits(ctx, s.conf.Store, chainKey)
}

// AdvanceAudit records that a part of a chain is audited up to a block.
func (s *Service) AdvanceAudit(ctx context.Context, chainKey string, from ChainAudit, next uint64, more AuditCounts) error {
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error { return advanceAudit(ctx, tx, chainKey, from, next, more) })
}

// MayBeRefunds returns the pairs of accounts for which a transfer from the settlement address may be a refund.
func (s *Service) MayBeRefunds(ctx context.Context, chainKey string, outgoing []Pair) (map[Pair]bool, error) {
	return PaidPairs(ctx, s.conf.Store, chainKey, outgoing, true)
}

// RecordedTransactions returns the transactions with recorded transfers.
func (s *Service) RecordedTransactions(ctx context.Context, chainKey string, txs []invoice.Hash) (map[invoice.Hash]bool, error) {
	return recordedTransactions(ctx, s.conf.Store, chainKey, txs)
}

// Block is what the indexer read of one block: the transfers to and from
// settlement and deposit addresses, in the order of their logs, and the registry's events.
type Block struct {
	invoice.Header
	Transfers []invoice.Transfer
	Registry  []RegistryEvent
	// Unread are transactions that the nodes do not return. Their logs move a token from or to such an address.
	Unread []UnreadTransaction
}

// RegistryEvent is a change of a commitment in an event of a registry.
type RegistryEvent struct {
	Registry     invoice.Address
	Kind         RegistryEventKind
	CommitmentID invoice.Hash
	TxHash       invoice.Hash
	Merchant     invoice.Address // recipient of the payment; zero unless it was paid
}

// RegistryEventKind is the new state of a commitment.
type RegistryEventKind string

// The events of the registry.
const (
	RegistryOpened RegistryEventKind = "opened"
	RegistryPaid   RegistryEventKind = "paid"
	RegistryClosed RegistryEventKind = "closed"
)

// Progress is how far a chain is read.
type Progress struct {
	Started   bool           // false for a chain that was never read
	Indexed   invoice.Header // the newest block with stored transfers
	Confirmed invoice.Header // the newest block with final transfers
	Halted    string         // why the chain's indexer stopped; empty while it runs
	Gap       *Gap           // nil without a gap
	Revision  int64          // the argument of Confirm
}

// Errors by which the ledger rejects blocks of an indexer.
var (
	// ErrCursorMoved: the chain is read up to another block than the caller
	// continues from. Another replica reads it too: load the cursor again.
	ErrCursorMoved = errors.New("the chain has been read up to another block")
	// ErrFinalityViolated: the change would undo blocks that are final.
	ErrFinalityViolated = errors.New("the change would undo a final block")
	// ErrNotStarted: the chain was never read.
	ErrNotStarted = errors.New("the chain was never read")
)
