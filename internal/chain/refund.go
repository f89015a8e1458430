package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// ErrIncomplete is returned if too few nodes answered to prove that no node has something.
var ErrIncomplete = errors.New("too few nodes answered")

// RefundTransaction returns the state of a transaction that was to send a refund, by all nodes of the chain. It is
// Settled if all nodes have it in a block up to through, the last final one that is read, and Mined if a node has it in a
// later one. If the answers differ, Mined comes first, then Queued, because the transaction may still be mined, then
// Unknown. Errors are ErrUnavailable and, with Unknown or Settled, ErrIncomplete.
func (i *Inspector) RefundTransaction(ctx context.Context, chainKey string, tx invoice.Hash, through uint64) (TransactionState, error) {
	certain := []TransactionState{Settled, Unknown, Queued, Mined}
	var best int
	var mu sync.Mutex
	err := i.every(ctx, chainKey, Timeout, callsOfTransaction, func(ctx context.Context, s Source, node BatchCaller) error {
		report, err := s.transaction(ctx, node, tx, invoice.Address{})
		if err != nil {
			return err
		}
		switch state := report.State; {
		case state != Mined && state != Failed:
		case report.Block <= through:
			report.State = Settled
		default:
			report.State = Mined
		}
		mu.Lock()
		defer mu.Unlock()
		best = max(best, slices.Index(certain, report.State))
		return nil
	})
	if state := certain[best]; state == Queued || state == Mined {
		return state, nil
	}
	return certain[best], err
}

// HasWaiting reports whether any of the chain's nodes knows a transaction of an account that waits to be mined. Errors
// are ErrUnavailable and ErrIncomplete.
func (i *Inspector) HasWaiting(ctx context.Context, chainKey string, account invoice.Address) (bool, error) {
	var waiting atomic.Bool
	err := i.every(ctx, chainKey, AccountTimeout, callsOfWaiting, func(ctx context.Context, _ Source, node BatchCaller) error {
		waits, err := hasWaiting(ctx, node, account)
		if waits {
			waiting.Store(true)
		}
		return err
	})
	if waiting.Load() {
		return true, nil
	}
	return false, err
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

// every asks all nodes of a chain. The error is ErrUnavailable if no node answered, and ErrIncomplete if their answers
// prove nothing.
func (i *Inspector) every(ctx context.Context, chainKey string, timeout time.Duration, calls int,
	ask func(ctx context.Context, s Source, node BatchCaller) error,
) error {
	var answered atomic.Int64
	all, err := i.each(ctx, chainKey, timeout, calls, func(ctx context.Context, s Source, node BatchCaller) error {
		err := ask(ctx, s, node)
		if err == nil {
			answered.Add(1)
		}
		return err
	})
	if err == nil && !proven(int(answered.Load()), i.nodes(chainKey), all) {
		err = fmt.Errorf("chain %s: %w", chainKey, ErrIncomplete)
	}
	return err
}

// proven reports whether equal answers of some nodes prove what one node may get wrong: all nodes that were asked
// answered, and two gave this answer, or the only one of the chain. nodes is how many the chain has.
func proven(agree, nodes int, all bool) bool { return all && agree >= min(2, nodes) }

// nodes returns how many nodes a chain has, also those that are not usable now.
func (i *Inspector) nodes(chainKey string) int {
	n := i.indexOf(chainKey)
	if n < 0 {
		return 0
	}
	return i.sources[n].Node.Nodes()
}

// each asks all nodes of a chain. all reports whether all nodes answered that were asked. The error is ErrUnavailable.
func (i *Inspector) each(ctx context.Context, chainKey string, timeout time.Duration, calls int,
	ask func(ctx context.Context, s Source, node BatchCaller) error,
) (all bool, err error) {
	n := i.indexOf(chainKey)
	if n < 0 {
		return false, fmt.Errorf("%w: chain %s is not configured", ErrUnavailable, chainKey)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := i.sources[n]
	all, err = s.Node.Each(ctx, calls, func(ctx context.Context, node BatchCaller) error { return ask(ctx, s, node) })
	if err != nil {
		return false, fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, err)
	}
	return all, nil
}
