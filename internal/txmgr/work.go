package txmgr

import (
	"context"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// work is one kind of work of a writer. The writer calls its methods from one
// goroutine, and only while it holds the lease.
type work interface {
	// carries reports whether transactions of a kind belong to this work.
	carries(kind TxKind) bool
	// budgetPercent is the part of the daily budget up to which this work may begin a transaction.
	budgetPercent() uint64
	// count publishes how much is due. It is called every countEvery.
	count(ctx context.Context) error
	// finish finishes what is due and needs no transaction.
	finish(ctx context.Context, cursor ledger.Cursor) error
	// check fails with a blocker if every transaction of this work would be reverted.
	check(ctx context.Context) error
	// next returns the contents of the next transaction, or a batch without items if no item is due. It calls a node
	// only if an item may be due.
	next(ctx context.Context) (batch, error)
	// mined is called when a transaction was mined and succeeded, once unless a reorg removes it.
	mined(t ChainTx, r *chain.Receipt)
	// reverted is called when a transaction was mined and reverted, before its items are due again. The writer calls
	// the function that it returns, if any, afterwards: it may make the items wait.
	reverted(ctx context.Context, t ChainTx) (then func() error, err error)
	// settle is called while the transaction is in a final block and items are still assigned to it. It may be called
	// again after it succeeded.
	settle(ctx context.Context, t ChainTx, r *chain.Receipt) error
	// resign drops state that another writer may change.
	resign()
}

// batch is the contents of one transaction.
type batch struct {
	kind  TxKind
	to    common.Address
	items []string // ids of the rows, the most urgent ones first; SaveChainTx assigns them
	// most returns the most gas that a transaction with the first n items may take.
	most func(n int) uint64
	// pack returns the calldata for the first n items.
	pack func(n int) []byte
	// refused is called when a node reports that the call for the first n items would be reverted or takes too much
	// gas. It returns the error of the round.
	refused func(ctx context.Context, n int, why error) error
}

// workOf returns the work with transactions of a kind, or nil.
func (w *Writer) workOf(kind TxKind) work {
	for _, k := range w.works {
		if k.carries(kind) {
			return k
		}
	}
	return nil
}
