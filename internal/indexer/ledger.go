package indexer

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Ledger stores what an Indexer reads. Each method that changes the ledger is one database transaction, which includes
// the cursor that it moves. *ledger.Service implements it and documents the methods and their errors.
type Ledger interface {
	Cursor(ctx context.Context, chainKey string) (ledger.Progress, error)
	Genesis(ctx context.Context, chainKey string) (*invoice.Header, error)
	SetGenesis(ctx context.Context, chainKey string, at invoice.Header) error
	FirstInvoice(ctx context.Context, chainKey string) (createdAt time.Time, ok bool, err error)
	Registries(ctx context.Context, chainKey string) ([]invoice.Address, error)
	Start(ctx context.Context, chainKey string, at invoice.Header, from uint64) error
	Headers(ctx context.Context, chainKey string, from, to uint64) ([]invoice.Header, error)
	Watched(ctx context.Context, chainKey string, accounts []invoice.Address) (map[invoice.Address]bool, error)
	LostDeposits(ctx context.Context, chainKey string, accounts []invoice.Address) (map[invoice.Address]bool, error)
	MayBeRefunds(ctx context.Context, chainKey string, outgoing []ledger.Pair) (map[ledger.Pair]bool, error)
	Observe(ctx context.Context, chainKey string, blocks []ledger.Block) error
	Rollback(ctx context.Context, chainKey string, to invoice.Header) error
	Pending(ctx context.Context, chainKey string, through uint64) (transfers []invoice.Transfer, revision int64, err error)
	Orphaned(ctx context.Context, chainKey string, through uint64) ([]invoice.Transfer, error)
	Confirm(ctx context.Context, chainKey string, finalized invoice.Header, revision int64, unfinal uint64) (more bool, err error)
	Expire(ctx context.Context, chainKey string) (more bool, err error)
	Fill(ctx context.Context, chainKey string, next uint64, blocks []ledger.Block, through invoice.Header) error
	ReportUnread(ctx context.Context, chainKey string, tx invoice.Hash, block uint64, reason ledger.UnreadReason) error
	DueUnread(ctx context.Context, chainKey string, limit int, oversized bool) ([]ledger.UnreadTransaction, error)
	PostponeUnread(ctx context.Context, chainKey string, u ledger.UnreadTransaction, reason string) error
	ForgetUnread(ctx context.Context, chainKey string, tx invoice.Hash) error
	CountUnread(ctx context.Context, chainKey string) (map[ledger.UnreadReason]int, error)
	CanSkipTransaction(ctx context.Context, chainKey string, reason ledger.UnreadReason) error
	Supplement(ctx context.Context, chainKey string, b ledger.Block, above invoice.Header, settled ...invoice.Hash) error
	ChainAudits(ctx context.Context, chainKey string) ([]ledger.ChainAudit, error)
	AdvanceAudit(ctx context.Context, chainKey string, from ledger.ChainAudit, next uint64, more ledger.AuditCounts) error
	RecordedTransactions(ctx context.Context, chainKey string, txs []invoice.Hash) (map[invoice.Hash]bool, error)
	UnlinkedNotices(ctx context.Context, chainKey string, from, before time.Time) ([]time.Time, error)
	GiveWay(ctx context.Context, most time.Duration) (waited bool)
	Halt(ctx context.Context, chainKey, reason string) error
}
