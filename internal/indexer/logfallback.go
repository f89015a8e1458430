package indexer

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// logsByFallback returns the logs of a block for which the node refuses eth_getLogs: from the block's receipts, by
// parts of the filter, or from each transaction's receipt, whichever works first. It returns the last error.
func (ix *Indexer) logsByFallback(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) (logs []types.Log, err error) {
	for _, ask := range []func(context.Context, node, chain.Header, chain.LogFilter) ([]types.Log, error){
		ix.logsFromBlockReceipts, ix.logsByFilterParts, ix.logsFromReceipts,
	} {
		logs, err = ask(ctx, n, h, filter)
		if err == nil {
			ix.cfg.Logger.Debug("node refused the logs of a block, read by fallback",
				"chain", ix.cfg.Chain.Key, "node", n.String(), "block", h.Hash.String(), "logs", len(logs))
			return logs, nil
		}
		if ctx.Err() != nil || !errors.Is(err, errIncomplete) && !chain.IsRefusal(err) {
			return nil, err
		}
	}
	return nil, err
}

// logsFromBlockReceipts reads a block's logs from all of its receipts at once.
func (ix *Indexer) logsFromBlockReceipts(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) ([]types.Log, error) {
	receipts, err := ix.blockReceipts(ctx, n, h)
	return selected(filter, receipts), err
}

// logsByFilterParts requests a block's logs of one address and one topic at a time.
func (ix *Indexer) logsByFilterParts(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) ([]types.Log, error) {
	var all []types.Log
	for _, address := range filter.Addresses {
		for _, topic := range filter.Topics {
			part := chain.LogFilter{Addresses: []common.Address{address}, Topics: []common.Hash{topic}}
			logs, err := n.logsOfBlocks(ctx, []invoice.Hash{h.Hash}, part)
			if err != nil {
				return nil, err
			}
			all = append(all, logs[0]...)
		}
	}
	slices.SortStableFunc(all, func(a, b types.Log) int { return int(a.Index) - int(b.Index) })
	return all, nil
}

// logsFromReceipts reads a block's logs from the receipt of each of its transactions.
func (ix *Indexer) logsFromReceipts(ctx context.Context, n node, h chain.Header, filter chain.LogFilter) ([]types.Log, error) {
	txs, err := n.BlockTransactions(ctx, h.Hash)
	if err != nil {
		return nil, n.wrap(err)
	}
	receipts, err := n.Receipts(ctx, txs)
	if err != nil && mayBeUnreadable(ctx, err) {
		receipts = nil
		err = ix.readEach(ctx, n, h, txs, func(tx common.Hash) error {
			one, err := n.Receipts(ctx, []common.Hash{tx})
			receipts = append(receipts, one...)
			return n.wrap(err)
		})
	}
	if err != nil {
		return nil, n.wrap(err)
	}
	for _, r := range receipts {
		if invoice.Hash(r.BlockHash) != h.Hash {
			return nil, n.wrap(errReplaced)
		}
	}
	if len(receipts) == len(txs) { // otherwise some are skipped
		err = ix.checkComplete(n, h, receipts)
	}
	return selected(filter, receipts), err
}

// selected returns the logs of receipts that a filter selects.
func selected(filter chain.LogFilter, receipts []*chain.Receipt) []types.Log {
	var logs []types.Log
	for _, r := range receipts {
		for _, l := range r.Logs {
			if selects(filter, l) {
				logs = append(logs, l)
			}
		}
	}
	return logs
}

// selects reports whether a filter selects a log.
func selects(f chain.LogFilter, l types.Log) bool {
	return slices.Contains(f.Addresses, l.Address) && len(l.Topics) > 0 && slices.Contains(f.Topics, l.Topics[0])
}
