package chain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// RefundTransaction returns the state of a transaction that was to send a refund, by all nodes of the
// chain. It is Mined if it transferred the token from the settlement address to the recipient, and
// Failed if it was mined and did not. It is Unknown only if all answers are Unknown. If the answers
// differ, Mined comes first and then Queued, because the transaction may still be mined. The error is
// ErrUnavailable.
func (i *Inspector) RefundTransaction(ctx context.Context, r invoice.RefundRecord, tx invoice.Hash) (TransactionState, error) {
	sent := func(t Transfer) bool { return t.Token == r.Token && t.From == r.From && t.To == r.To }
	certain := []TransactionState{Unknown, Failed, Queued, Mined}
	var best int
	var mu sync.Mutex
	err := i.each(ctx, r.ChainKey, Timeout, callsOfTransaction, func(ctx context.Context, s Source, node BatchCaller) error {
		report, err := s.transaction(ctx, node, tx, r.To)
		if err != nil {
			return err
		}
		if report.State == Mined && !slices.ContainsFunc(report.Transfers, sent) {
			report.State = Failed
		}
		mu.Lock()
		defer mu.Unlock()
		best = max(best, slices.Index(certain, report.State))
		return nil
	})
	return certain[best], err
}

// HasWaiting reports whether any of the chain's nodes knows a transaction of an account that waits to be mined. The
// error is ErrUnavailable.
func (i *Inspector) HasWaiting(ctx context.Context, chainKey string, account invoice.Address) (bool, error) {
	var waiting atomic.Bool
	err := i.each(ctx, chainKey, AccountTimeout, callsOfWaiting, func(ctx context.Context, _ Source, node BatchCaller) error {
		waits, err := hasWaiting(ctx, node, account)
		if waits {
			waiting.Store(true)
		}
		return err
	})
	return waiting.Load(), err
}

// callsOfWaiting is how many calls hasWaiting makes.
const callsOfWaiting = 2

// hasWaiting reports whether a node knows a transaction of an account that waits to be mined.
func hasWaiting(ctx context.Context, node BatchCaller, account invoice.Address) (bool, error) {
	var mined, all Quantity
	batch := []rpc.BatchElem{
		{Method: "eth_getTransactionCount", Args: []any{common.Address(account), "latest"}, Result: &mined},
		{Method: "eth_getTransactionCount", Args: []any{common.Address(account), "pending"}, Result: &all},
	}
	err := node.BatchCallContext(ctx, batch)
	for _, elem := range batch {
		err = cmp.Or(err, elem.Error)
	}
	return err == nil && all.N > mined.N, err
}

// each asks all nodes of a chain. The error is ErrUnavailable.
func (i *Inspector) each(ctx context.Context, chainKey string, timeout time.Duration, calls int,
	ask func(ctx context.Context, s Source, node BatchCaller) error,
) error {
	n := i.indexOf(chainKey)
	if n < 0 {
		return fmt.Errorf("%w: chain %s is not configured", ErrUnavailable, chainKey)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := i.sources[n]
	err := s.Node.Each(ctx, calls, func(ctx context.Context, node BatchCaller) error { return ask(ctx, s, node) })
	if err != nil {
		return fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, err)
	}
	return nil
}
