package indexer

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
)

// Ledger is where an Indexer writes what it reads. Each method that changes
// something is one database transaction, together with the cursor it moves.
type Ledger interface {
	// Cursor returns how far the chain is read.
	Cursor(ctx context.Context, chainKey string) (settle.Cursor, error)
	// Genesis returns the oldest block that is remembered of a chain, or nil.
	Genesis(ctx context.Context, chainKey string) (*invoice.Header, error)
	// SetGenesis remembers the oldest block of a chain, unless one is remembered.
	SetGenesis(ctx context.Context, chainKey string, at invoice.Header) error
	// SinceFirstInvoice returns how long ago the first invoice of a chain that was never
	// read was created; ok is false before the first invoice.
	SinceFirstInvoice(ctx context.Context, chainKey string) (d time.Duration, ok bool, err error)
	// Registries returns the registries whose events count, but for the
	// configured one.
	Registries(ctx context.Context, chainKey string) ([]invoice.Address, error)
	// Start begins a chain that was never read: at counts as read and final,
	// but for a gap of blocks from..at.Number that is still to be filled. It
	// has no gap when from is above at.
	Start(ctx context.Context, chainKey string, at invoice.Header, from uint64) error
	// Headers returns the stored canonical blocks from..to, in ascending order.
	// All that are not final are among them, and some of the final ones.
	Headers(ctx context.Context, chainKey string, from, to uint64) ([]invoice.Header, error)
	// Watched returns which of the accounts are settlement addresses.
	Watched(ctx context.Context, chainKey string, accounts []invoice.Address) (map[invoice.Address]bool, error)
	// Observe records blocks on top of the newest one read. The parent of the
	// first must be that block, else it is settle.ErrCursorMoved; between the
	// others there may be gaps of blocks that hold nothing of interest.
	Observe(ctx context.Context, chainKey string, blocks []settle.Block) error
	// Rollback orphans everything above to, which becomes the newest block
	// read. Below the newest final block it is settle.ErrFinalityViolated.
	Rollback(ctx context.Context, chainKey string, to invoice.Header) error
	// Pending returns the transfers in blocks up to through that are recorded
	// and not final, and the revision that Confirm is to be given.
	Pending(ctx context.Context, chainKey string, through uint64) (transfers []invoice.Transfer, revision int64, err error)
	// Orphaned returns the transfers of payments that are orphaned, and were last
	// seen in blocks above the newest final one and up to through.
	Orphaned(ctx context.Context, chainKey string, through uint64) ([]invoice.Transfer, error)
	// Confirm makes everything in blocks up to finalized final. It is
	// settle.ErrCursorMoved when the chain's revision is another one: what was
	// verified was rolled back since. unfinal is how many of the chain's newest blocks
	// are not final. more reports that it leaves work to Expire.
	Confirm(ctx context.Context, chainKey string, finalized invoice.Header, revision int64, unfinal uint64) (more bool, err error)
	// Expire does a part of what Confirm left, and reports whether there is more.
	Expire(ctx context.Context, chainKey string) (more bool, err error)
	// Fill records what the final blocks next..through of the cursor's gap hold,
	// of which those that hold nothing of interest may be left out. All of it
	// is final at once. It is settle.ErrCursorMoved when the gap begins
	// elsewhere, and settle.ErrFinalityViolated when through is not the block
	// that is stored at its height.
	Fill(ctx context.Context, chainKey string, next uint64, blocks []settle.Block, through invoice.Header) error
	// ReportUnread records that a block that was read holds a transfer to an address of ours
	// that is not recorded, unless that is known.
	ReportUnread(ctx context.Context, chainKey string, tx invoice.Hash, block uint64, reason store.UnreadReason) error
	// DueUnread returns up to limit unread transactions that are to be read now.
	DueUnread(ctx context.Context, chainKey string, limit int) ([]settle.UnreadTransaction, error)
	// PostponeUnread records why a transaction could not be read.
	PostponeUnread(ctx context.Context, chainKey string, u settle.UnreadTransaction, reason string) error
	// CountUnread returns how many unread transactions wait to be read.
	CountUnread(ctx context.Context, chainKey string) (map[store.UnreadReason]int, error)
	// CanSkipTransaction fails when no more transactions may be set aside that no node returns.
	CanSkipTransaction(ctx context.Context, chainKey string) error
	// Supplement records what a block that was read before holds, and that these unread
	// transactions are read. It is settle.ErrCursorMoved when the block is still to be read.
	Supplement(ctx context.Context, chainKey string, b settle.Block, above invoice.Header, settled ...invoice.Hash) error
	// ChainAudits returns how far the final blocks were read a second time.
	ChainAudits(ctx context.Context, chainKey string) ([]store.ChainAudit, error)
	// AdvanceAudit records that a part is audited up to the block below next.
	AdvanceAudit(ctx context.Context, chainKey string, from store.ChainAudit, next uint64, more store.AuditCounts) error
	// RecordedTransactions returns the given transactions that have recorded transfers.
	RecordedTransactions(ctx context.Context, chainKey string, txs []invoice.Hash) (map[invoice.Hash]bool, error)
	// UnlinkedNotices returns when notices of transfers were received, in a range of time, of
	// which no payment is stored.
	UnlinkedNotices(ctx context.Context, chainKey string, from, before time.Time) ([]time.Time, error)
	// GiveWay waits until the creates that wait are done, for at most as long, and reports whether any waited.
	GiveWay(ctx context.Context, most time.Duration) (waited bool)
	// Halt records why the chain is read no further.
	Halt(ctx context.Context, chainKey, reason string) error
}
