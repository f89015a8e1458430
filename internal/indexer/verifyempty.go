package indexer

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// consultTimeout bounds a request to another node for comparison, so that a slow one does not delay indexing.
const consultTimeout = time.Second

// logsOf returns each block's logs that the filter selects. It verifies an empty answer for a block with a bloom filter
// that may match: the filter may match other logs, or the node may have lost these or not stored them yet.
func (ix *Indexer) logsOf(ctx context.Context, n node, blocks []chain.Header, filter chain.LogFilter) ([][]types.Log, error) {
	found, err := n.logsOfBlocks(ctx, hashesOf(blocks), filter)
	if err != nil {
		if found, err = ix.logsOneByOne(ctx, n, blocks, found, filter, err); err != nil {
			return nil, err
		}
	}
	var empty []int
	var suspect []chain.Header
	for i, logs := range found {
		if len(logs) == 0 && ix.isEmptySuspect(n, blocks[i], filter) {
			empty, suspect = append(empty, i), append(suspect, blocks[i])
		}
	}
	if len(empty) == 0 {
		return found, nil
	}
	verified, err := ix.verifyEmpty(ctx, n, suspect, filter)
	if err != nil {
		return nil, err
	}
	for i, logs := range verified {
		found[empty[i]] = logs
	}
	return found, nil
}

// hashesOf returns the hashes of headers.
func hashesOf(headers []chain.Header) []invoice.Hash {
	hashes := make([]invoice.Hash, len(headers))
	for i, h := range headers {
		hashes[i] = h.Hash
	}
	return hashes
}

// logsOneByOne returns the logs of blocks after the node returned only some of them. If the node refuses a single
// block, no smaller request is left, so other methods are used. refused is the error of the request for all blocks.
func (ix *Indexer) logsOneByOne(
	ctx context.Context, n node, blocks []chain.Header, found [][]types.Log, filter chain.LogFilter, refused error,
) ([][]types.Log, error) {
	if ctx.Err() != nil || !chain.IsRefusal(refused) {
		return nil, refused
	}
	for i, h := range blocks {
		if found[i] != nil {
			continue
		}
		alone, err := [][]types.Log(nil), refused
		if len(blocks) > 1 {
			alone, err = n.logsOfBlocks(ctx, []invoice.Hash{h.Hash}, filter)
		}
		switch {
		case err == nil:
			found[i] = alone[0]
			continue
		case ctx.Err() != nil || !chain.IsRefusal(err):
			return nil, err
		}
		if found[i], err = ix.logsByFallback(ctx, n, h, filter); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// maxSingleReceipts bounds the transactions of a block to read one by one, if the node does not offer the receipts of a
// block. In larger blocks the filters are so full that they match by chance, and reading each block would take a call
// for each of its transactions.
const maxSingleReceipts = 20

// verifyEmpty returns the logs of blocks for which the node returned an empty answer. The error is a *nodeError if
// another node has some. If no other node answers, the blocks' receipts decide, which must be complete: all in one
// call, or one by one if the node refuses that. A node that does not offer the receipts of a block is believed if it
// answers a second time and the block is large.
func (ix *Indexer) verifyEmpty(ctx context.Context, n node, headers []chain.Header, filter chain.LogFilter) ([][]types.Log, error) {
	blocks := hashesOf(headers)
	for _, other := range ix.cfg.Pool.Others(n.Node) {
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
	for i, h := range headers {
		logs, err := ix.logsFromBlockReceipts(ctx, n, h, filter)
		switch {
		case errors.Is(err, chain.ErrUnsupported) && h.Txs > maxSingleReceipts:
			var again [][]types.Log
			if again, err = n.logsOfBlocks(ctx, blocks[i:i+1], filter); err == nil {
				logs = again[0]
			}
		case err != nil && isReadable(ctx, err):
			logs, err = ix.logsFromReceipts(ctx, n, h, filter)
		}
		if err != nil {
			return nil, err
		}
		found[i] = logs
		if len(found[i]) > 0 {
			ix.cfg.Logger.Warn("node left out logs that are in the block's receipts", "chain", ix.cfg.Chain.Key,
				"node", n.String(), "block", h.Hash.String(), "logs", len(found[i]))
		}
	}
	return found, nil
}

// logsFromOther reads the blocks' logs from another node.
func (ix *Indexer) logsFromOther(ctx context.Context, other node, blocks []invoice.Hash, filter chain.LogFilter) (found [][]types.Log, err error) {
	err = ix.consult(ctx, other, func(ctx context.Context) error {
		found, err = other.logsOfBlocks(ctx, blocks, filter)
		return err
	})
	return found, err
}

// consult calls another node within consultTimeout, and reports the outcome to its health. A node that takes longer
// backs off. The wait for its pace does not count.
func (ix *Indexer) consult(ctx context.Context, other node, ask func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, consultTimeout+other.PaceDelay())
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
	ix.cfg.Logger.Debug("node not compared", "chain", ix.cfg.Chain.Key, "node", other.String(), "err", err)
	return err
}

// errConsultTimeout is the error of a node that exceeds consultTimeout.
var errConsultTimeout = errors.New("did not answer a comparison within " + consultTimeout.String())
