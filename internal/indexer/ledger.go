package indexer

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Ledger stores what an Indexer reads. Each method that changes the ledger is one database transaction, which includes
// the cursor that it moves.
type Ledger interface {
	// Cursor returns how far the chain is read.
	Cursor(ctx context.Context, chainKey string) (ledger.Progress, error)
	// Genesis returns the stored oldest block of a chain, or nil.
	Genesis(ctx context.Context, chainKey string) (*invoice.Header, error)
	// SetGenesis stores the oldest block of a chain, unless one is stored.
	SetGenesis(ctx context.Context, chainKey string, at invoice.Header) error
	// FirstInvoice returns when the first invoice of a chain was created. ok is false before the first invoice.
	FirstInvoice(ctx context.Context, chainKey string) (createdAt time.Time, ok bool, err error)
	// Registries returns the registries that count, except the configured one.
	Registries(ctx context.Context, chainKey string) ([]invoice.Address, error)
	// Start begins a chain that was never read: blocks up to at count as read and final, except for a gap of blocks
	// from..at.Number that must still be filled. There is no gap if from is above at.
	Start(ctx context.Context, chainKey string, at invoice.Header, from uint64) error
	// Headers returns the stored canonical blocks from..to, in ascending order. They include all blocks that are not
	// final, and some final ones.
	Headers(ctx context.Context, chainKey string, from, to uint64) ([]invoice.Header, error)
	// Watched returns which of the accounts are settlement addresses.
	Watched(ctx context.Context, chainKey string, accounts []invoice.Address) (map[invoice.Address]bool, error)
	// LostDeposits returns which of the accounts are deposit addresses of lost invoices. Transfers from these are not
	// recorded.
	LostDeposits(ctx context.Context, chainKey string, accounts []invoice.Address) (map[invoice.Address]bool, error)
	// Observe records blocks on top of the newest indexed one. The parent of the first must be that block; otherwise
	// the error is ledger.ErrCursorMoved. Between the other blocks there may be gaps of blocks without events of
	// interest.
	Observe(ctx context.Context, chainKey string, blocks []ledger.Block) error
	// Rollback orphans everything above to, which becomes the newest indexed block. The error is
	// ledger.ErrFinalityViolated if to is below the newest final block.
	Rollback(ctx context.Context, chainKey string, to invoice.Header) error
	// Pending returns the recorded transfers in blocks up to through that are not final, and the revision to pass to
	// Confirm.
	Pending(ctx context.Context, chainKey string, through uint64) (transfers []invoice.Transfer, revision int64, err error)
	// Orphaned returns the transfers of orphaned payments that were last seen above the newest final block and not
	// above through.
	Orphaned(ctx context.Context, chainKey string, through uint64) ([]invoice.Transfer, error)
	// Confirm makes everything in blocks up to finalized final. The error is ledger.ErrCursorMoved if the chain's
	// revision differs, because the verified blocks were rolled back in between. unfinal is how many of the chain's
	// newest blocks are not final. more reports that work is left for Expire.
	Confirm(ctx context.Context, chainKey string, finalized invoice.Header, revision int64, unfinal uint64) (more bool, err error)
	// Expire does part of the work that Confirm left, and reports whether there is more.
	Expire(ctx context.Context, chainKey string) (more bool, err error)
	// Fill records the final blocks next..through of the cursor's gap; blocks without events of interest may be left
	// out. Their contents are final immediately. The error is ledger.ErrCursorMoved if the gap begins elsewhere, and
	// ledger.ErrFinalityViolated if through is not the block that is stored at its height.
	Fill(ctx context.Context, chainKey string, next uint64, blocks []ledger.Block, through invoice.Header) error
	// ReportUnread records that an indexed block holds an unrecorded transfer to one of our addresses, unless that is
	// known.
	ReportUnread(ctx context.Context, chainKey string, tx invoice.Hash, block uint64, reason ledger.UnreadReason) error
	// DueUnread returns up to limit unread transactions that are due to be read.
	DueUnread(ctx context.Context, chainKey string, limit int) ([]ledger.UnreadTransaction, error)
	// PostponeUnread records why a transaction could not be read.
	PostponeUnread(ctx context.Context, chainKey string, u ledger.UnreadTransaction, reason string) error
	// CountUnread returns how many unread transactions wait to be read.
	CountUnread(ctx context.Context, chainKey string) (map[ledger.UnreadReason]int, error)
	// CanSkipTransaction fails if the limit of skipped transactions, which no node returns, is reached.
	CanSkipTransaction(ctx context.Context, chainKey string) error
	// Supplement records what an indexed block holds in addition, and that these unread transactions are read. The
	// error is ledger.ErrCursorMoved if the block is not indexed yet.
	Supplement(ctx context.Context, chainKey string, b ledger.Block, above invoice.Header, settled ...invoice.Hash) error
	// ChainAudits returns the progress of reading the final blocks a second time.
	ChainAudits(ctx context.Context, chainKey string) ([]ledger.ChainAudit, error)
	// AdvanceAudit records that a part is audited up to the block before next.
	AdvanceAudit(ctx context.Context, chainKey string, from ledger.ChainAudit, next uint64, more ledger.AuditCounts) error
	// RecordedTransactions returns which of the given transactions have recorded transfers.
	RecordedTransactions(ctx context.Context, chainKey string, txs []invoice.Hash) (map[invoice.Hash]bool, error)
	// UnlinkedNotices returns the receipt times, within a time range, of transfer notices without a stored payment.
	UnlinkedNotices(ctx context.Context, chainKey string, from, before time.Time) ([]time.Time, error)
	// GiveWay waits until the waiting creates are done, but not longer than most, and reports whether any waited.
	GiveWay(ctx context.Context, most time.Duration) (waited bool)
	// Halt records why the chain is not read any further.
	Halt(ctx context.Context, chainKey, reason string) error
}
