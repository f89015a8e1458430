package indexer

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// consultTimeout is how long another node may take to say what it thinks;
// with it slow or unreachable, reading must go on.
const consultTimeout = time.Second

// logsOf returns each block's logs that the filter selects. An empty answer
// for a block whose bloom filter mentions them is right when the bloom filter
// speaks of other logs, and wrong when the node has lost or not yet stored
// these. So the answer is doubted.
func (ix *Indexer) logsOf(ctx context.Context, n node, blocks []chain.Header, filter chain.LogFilter) ([][]types.Log, error) {
	hashes := make([]invoice.Hash, len(blocks))
	for i, h := range blocks {
		hashes[i] = h.Hash
	}
	found, err := n.logsOfBlocks(ctx, hashes, filter)
	if len(blocks) == 1 && chain.IsTooLarge(err) && ctx.Err() == nil {
		// No smaller question is left, so another one is asked.
		logs, err := ix.logsByFallback(ctx, n, hashes[0], filter)
		return [][]types.Log{logs}, err
	}
	if err != nil {
		return nil, err
	}
	var empty []int
	for i, logs := range found {
		if len(logs) == 0 && ix.isEmptySuspect(n, blocks[i], filter) {
			empty = append(empty, i)
		}
	}
	if len(empty) == 0 {
		return found, nil
	}
	doubted := make([]invoice.Hash, len(empty))
	for i, at := range empty {
		doubted[i] = hashes[at]
	}
	certain, err := ix.verifyEmpty(ctx, n, doubted, filter)
	if err != nil {
		return nil, err
	}
	for i, logs := range certain {
		found[empty[i]] = logs
	}
	return found, nil
}

// verifyEmpty returns the logs of blocks that the node said have none. When
// another node has some, that is an error, and the blocks are read there.
// When no other answers, the blocks' receipts decide, or the node's own
// second answer where it does not give them.
func (ix *Indexer) verifyEmpty(ctx context.Context, n node, blocks []invoice.Hash, filter chain.LogFilter) ([][]types.Log, error) {
	for _, other := range ix.Pool.Others(n.Node) {
		found, err := ix.logsFromOther(ctx, node{other}, blocks, filter)
		if err != nil {
			continue
		}
		if r, reason := judgeEmpty(other.String(), blocks, found); r == reject {
			return nil, n.contradicts("%s", reason)
		}
		return found, nil
	}
	found := make([][]types.Log, len(blocks))
	for i, block := range blocks {
		logs, err := ix.logsFromBlockReceipts(ctx, n, block, filter)
		switch {
		case errors.Is(err, chain.ErrUnsupported):
			return n.logsOfBlocks(ctx, blocks, filter)
		case chain.IsTooLarge(err):
			logs, err = ix.logsFromReceipts(ctx, n, block, filter)
		}
		if err != nil {
			return nil, err
		}
		found[i] = logs
		if len(found[i]) > 0 {
			ix.Logger.Warn("a node left out logs that are in the block's receipts", "chain", ix.Chain.Key,
				"node", n.String(), "block", block.String(), "logs", len(found[i]))
		}
	}
	return found, nil
}

// logsFromOther asks another node for the blocks' logs.
func (ix *Indexer) logsFromOther(ctx context.Context, other node, blocks []invoice.Hash, filter chain.LogFilter) (found [][]types.Log, err error) {
	err = ix.consult(ctx, other, func(ctx context.Context) error {
		found, err = other.logsOfBlocks(ctx, blocks, filter)
		return err
	})
	return found, err
}

// consult asks another node within secondOpinion. One that takes longer is
// backed off from, so that it does not cost that time again.
func (ix *Indexer) consult(ctx context.Context, other node, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, consultTimeout)
	defer cancel()
	err := other.ready(limited)
	if err == nil {
		err = ask(limited)
	}
	switch {
	case err == nil:
		other.ReportSuccess()
		return nil
	case ctx.Err() == nil && limited.Err() != nil:
		other.ReportFailure(errConsultTimeout)
	default:
		var failed *nodeError
		if errors.As(err, &failed) && !failed.reported {
			other.ReportFailure(err)
		}
	}
	ix.Logger.Debug("no second opinion", "chain", ix.Chain.Key, "node", other.String(), "err", err)
	return err
}

// errConsultTimeout is what a node did that gave no second opinion.
var errConsultTimeout = errors.New("gave no second opinion within " + consultTimeout.String())
