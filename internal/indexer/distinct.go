package indexer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
)

// distinctEvery is the time between two comparisons of a node with another chain while the result is unknown.
const distinctEvery = time.Minute

// chainPair is a node and the key of another chain.
type chainPair struct {
	of  *chain.Node
	key string
}

// checkDistinct fails when the node serves the blocks of another configured chain, whatever its chain id: every
// transfer would count under two keys. A chain that was never read yields to any other chain, and a chain that was read
// yields to its seniors.
func (ix *Indexer) checkDistinct(ctx context.Context, n node) error {
	for _, key := range ix.cfg.Others {
		at, asked := ix.distinctChecks[chainPair{n.Node, key}]
		if asked && (at.IsZero() || ix.cfg.Now().Sub(at) < distinctEvery) {
			continue
		}
		known, err := ix.isOtherChain(ctx, n, key)
		if err != nil {
			return err
		}
		ix.distinctChecks[chainPair{n.Node, key}] = ix.cfg.Now()
		if known {
			ix.distinctChecks[chainPair{n.Node, key}] = time.Time{}
		}
	}
	return nil
}

// isOtherChain reports whether the node's block differs from the newest final block of another chain; false while that
// is unknown. If the block is the same, it is an error unless the other chain yields.
func (ix *Indexer) isOtherChain(ctx context.Context, n node, key string) (bool, error) {
	theirs, err := ix.cfg.Ledger.Cursor(ctx, key)
	if err != nil || !theirs.Started || theirs.Confirmed.Number == 0 {
		return false, err
	}
	headers, err := n.headers(ctx, theirs.Confirmed.Number)
	if errors.Is(err, chain.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if headers[0].Hash != theirs.Confirmed.Hash {
		return true, nil
	}
	if yields, err := ix.yieldsTo(ctx, key); err != nil || !yields {
		return false, err
	}
	mismatch := fmt.Errorf("%w: %s serves the blocks of chain %s under the key %s as well; each transfer would pay twice, so correct its rpc or keep one of the keys",
		chain.ErrMismatch, n, key, ix.cfg.Chain.Key)
	n.ReportMisconfigured(mismatch)
	return false, &nodeError{node: n.Node, err: mismatch, reported: true}
}

// yieldsTo reports whether this chain stops when it is the same as another one.
func (ix *Indexer) yieldsTo(ctx context.Context, key string) (bool, error) {
	for _, senior := range ix.cfg.Senior {
		if senior == key {
			return true, nil
		}
	}
	own, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	return !own.Started, err
}
