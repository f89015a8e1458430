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
