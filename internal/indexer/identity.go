package indexer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// checkIdentity fails if the node's oldest block differs from the chain's stored one: the node serves another chain
// with the same chain id. A node that returns that block is checked once; other nodes are checked again later. The
// first node's answer is stored, unless another node contradicts it or the node lacks the newest final block.
func (ix *Indexer) checkIdentity(ctx context.Context, n node) error {
	of := chainPair{n.Node, ix.cfg.Chain.Key}
	at, asked := ix.distinctChecks[of]
	if asked && (at.IsZero() || ix.cfg.Now().Sub(at) < distinctEvery) {
		return nil
	}
	genesis, err := ix.cfg.Ledger.Genesis(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return err
	}
	found, ok := ix.oldestBlock(ctx, n, genesis)
	ix.distinctChecks[of] = ix.cfg.Now()
	if !ok {
		return ctx.Err()
	}
	if genesis == nil {
		if recorded, err := ix.recordGenesis(ctx, n, found); err != nil || !recorded {
			return err
		}
	}
	if c := (chain.KnownChain{Key: ix.cfg.Chain.Key, Genesis: genesis}).CompareGenesis(found); c != nil {
		mismatch := fmt.Errorf("%w: %s", chain.ErrMismatch, c)
		n.ReportMisconfigured(mismatch)
		delete(ix.distinctChecks, of)
		return &nodeError{node: n.Node, err: mismatch, reported: true}
	}
	ix.distinctChecks[of] = time.Time{}
	return nil
}

// oldestBlock returns the node's block at the height of the stored one. If no block is stored, it returns the node's
// block 0, or startBlock if the node does not return block 0. ok is false if the node returns no such block: nodes that
// have deleted their history answer with various errors, and still serve the chain.
func (ix *Indexer) oldestBlock(ctx context.Context, n node, known *invoice.Header) (h invoice.Header, ok bool) {
	heights := []uint64{0}
	if known != nil {
		heights[0] = known.Number
	} else if first := ix.cfg.Chain.StartBlock; first != nil {
		heights = append(heights, *first)
	}
	for _, number := range heights {
		if headers, err := n.headers(ctx, number); err == nil {
			return headers[0].Header, true
		}
	}
	return h, false
}

// recordGenesis stores the oldest block of a node, unless the node lacks the newest final block or other nodes have a
// different block.
func (ix *Indexer) recordGenesis(ctx context.Context, n node, oldest invoice.Header) (bool, error) {
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return false, err
	}
	if cursor.Started {
		headers, err := n.headers(ctx, cursor.Confirmed.Number)
		if err != nil || headers[0].Hash != cursor.Confirmed.Hash {
			return false, ctx.Err()
		}
	}
	var undecided *NoQuorumError
	if err := ix.verifyBlock(ctx, n, oldest, invoice.Header{}); errors.As(err, &undecided) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, ix.cfg.Ledger.SetGenesis(ctx, ix.cfg.Chain.Key, oldest)
}

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
