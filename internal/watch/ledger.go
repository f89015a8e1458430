package watch

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// Ledger is where a Watcher writes what it reads. Each method that changes
// something is one database transaction, together with the cursor it moves.
type Ledger interface {
	// Cursor returns how far the chain is read.
	Cursor(ctx context.Context, chainKey string) (settle.Cursor, error)
	// Since returns the earliest time of a block that could hold a payment,
	// for a chain that was never read; ok is false while there can be none.
	Since(ctx context.Context, chainKey string) (since int64, ok bool, err error)
	// Start begins a chain that was never read: at counts as read and final.
	Start(ctx context.Context, chainKey string, at settle.Header) error
	// Headers returns the stored canonical blocks from..to, in ascending order.
	// All that are not final are among them, and some of the final ones.
	Headers(ctx context.Context, chainKey string, from, to uint64) ([]settle.Header, error)
	// Watched tells which of the accounts are settlement addresses.
	Watched(ctx context.Context, chainKey string, accounts []invoice.Address) (map[invoice.Address]bool, error)
	// Observe records blocks on top of the newest one read. The parent of the
	// first must be that block, else it is settle.ErrCursorMoved; between the
	// others there may be gaps of blocks that hold nothing of interest.
	Observe(ctx context.Context, chainKey string, blocks []settle.Block) error
	// Rollback orphans everything above to, which becomes the newest block
	// read. Below the newest final block it is settle.ErrFinalityViolated.
	Rollback(ctx context.Context, chainKey string, to settle.Header) error
	// Pending returns the transfers in blocks up to through that are recorded
	// and not final.
	Pending(ctx context.Context, chainKey string, through uint64) ([]invoice.Transfer, error)
	// Confirm makes everything in blocks up to line final.
	Confirm(ctx context.Context, chainKey string, line settle.Header) error
	// Halt records why the chain is read no further.
	Halt(ctx context.Context, chainKey, reason string) error
}

// Source is one node of the chain. *chain.Endpoint is one.
type Source interface {
	// String names the node in logs.
	String() string
	// Check holds the chain's configuration against the node; what does not
	// fit is a chain.ErrMismatch.
	Check(ctx context.Context, c chain.Chain) error
	Head(ctx context.Context) (chain.Header, error)
	Tagged(ctx context.Context, tag string) (chain.Header, error)
	Headers(ctx context.Context, numbers []uint64) ([]chain.Header, error)
	LogsOfBlocks(ctx context.Context, blocks []invoice.Hash, f chain.LogFilter) ([][]types.Log, error)
	LogsInRange(ctx context.Context, first, last uint64, f chain.LogFilter) ([]types.Log, error)
	Receipts(ctx context.Context, txs []common.Hash) ([]*chain.Receipt, error)
	Inputs(ctx context.Context, txs []common.Hash) ([][]byte, error)
	// Listen calls wake for every announced head until it returns; it returns
	// chain.ErrNoSubscription when the node cannot announce any.
	Listen(ctx context.Context, wake func()) error
}

var _ Source = (*chain.Endpoint)(nil)
