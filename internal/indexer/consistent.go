package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// errReplaced means that a block was replaced while it was read. The next sync handles the reorg.
var errReplaced = fmt.Errorf("the block was replaced while it was read: %w", chain.ErrNotFound)

// checkConsistent compares a node's answers about one block: its header, its logs and
// the receipts of transactions in it. A contradiction quarantines the node.
func (ix *Indexer) checkConsistent(ctx context.Context, n node, h chain.Header, logs []types.Log, found []evidence) error {
	if len(found) == 0 {
		return nil
	}
	told := make(map[common.Hash][]*types.Log, len(found))
	for _, e := range found {
		told[e.receipt.TxHash] = nil
	}
	for i := range logs {
		l := &logs[i]
		of, ok := told[l.TxHash]
		if !ok {
			continue
		}
		if err := ix.checkBloom(n, h, l); err != nil {
			return err
		}
		told[l.TxHash] = append(of, l)
	}
	filter := ix.decoder.filter()
	for _, e := range found {
		if err := ix.checkReceiptBlock(ctx, n, h, e.receipt); err != nil {
			return err
		}
		if err := n.sameLogs(h, e.receipt, told[e.receipt.TxHash], filter); err != nil {
			return err
		}
	}
	return nil
}

// checkReceiptBlock fails when a receipt names another block than the one with the transaction's logs.
func (ix *Indexer) checkReceiptBlock(ctx context.Context, n node, h chain.Header, r *chain.Receipt) error {
	if invoice.Hash(r.BlockHash) != h.Hash {
		return ix.checkMovedReceipt(ctx, n, h, r.TxHash)
	}
	if uint64(r.BlockNumber) != h.Number {
		return n.contradicts("returned block %s with the number %d, and a receipt of it with %d", h.Hash, h.Number, uint64(r.BlockNumber))
	}
	if !r.Succeeded() {
		return n.contradicts("returned logs of transaction %s in block %d, and in its receipt that it failed", r.TxHash, h.Number)
	}
	for i := range r.Logs {
		if l := &r.Logs[i]; l.TxHash != r.TxHash || l.BlockHash != (common.Hash{}) && l.BlockHash != r.BlockHash {
			return n.contradicts("answered with the receipt of transaction %s in block %d, and in it a log of transaction %s in block %s",
				r.TxHash, h.Number, l.TxHash, l.BlockHash)
		}
	}
	return nil
}

// checkMovedReceipt handles a receipt that names another block than the one with the transaction's logs. The error is
// errReplaced if the block was replaced between the two answers; otherwise the node contradicts itself.
func (ix *Indexer) checkMovedReceipt(ctx context.Context, n node, h chain.Header, tx common.Hash) error {
	again, err := n.receipts(ctx, []common.Hash{tx})
	if err != nil {
		return err
	}
	headers, err := n.headers(ctx, h.Number)
	if err != nil {
		return err
	}
	if headers[0].Hash != h.Hash || invoice.Hash(again[tx].BlockHash) == h.Hash {
		return n.wrap(errReplaced)
	}
	return n.contradicts("returned logs of transaction %s in block %d, %s, and in its receipt that it is in block %s", tx, h.Number, h.Hash, again[tx].BlockHash)
}

// sameLogs compares a transaction's logs from the node with the logs in its receipt that the filter selects, and fails
// if they differ.
func (n node) sameLogs(h chain.Header, r *chain.Receipt, told []*types.Log, filter chain.LogFilter) error {
	var held []*types.Log
	for i := range r.Logs {
		if selects(filter, r.Logs[i]) {
			held = append(held, &r.Logs[i])
		}
	}
	byIndex := func(a, b *types.Log) int { return int(a.Index) - int(b.Index) }
	slices.SortStableFunc(told, byIndex)
	if !slices.EqualFunc(told, held, sameLog) {
		return n.contradicts("returned %d logs of transaction %s in block %d, and its receipt holds %d, or other ones", len(told), r.TxHash, h.Number, len(held))
	}
	return nil
}

func sameLog(a, b *types.Log) bool {
	return a.Address == b.Address && slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}

// believeMissing returns nil if the node is right that its receipts do not hold a recorded transfer. The error is a
// *nodeError if the node's own logs hold the transfer, or one of askOthers.
func (ix *Indexer) believeMissing(ctx context.Context, n node, t invoice.Transfer) error {
	held, err := ix.ownLogsHold(ctx, n, t)
	switch {
	case err != nil:
		return err
	case held:
		return n.contradictsReceipt(t)
	}
	return ix.askOthers(ctx, n, t)
}

// contradictsReceipt is the error of a node with logs that hold a transfer which its receipts lack.
func (n node) contradictsReceipt(t invoice.Transfer) error {
	return n.contradicts("returned a transfer of transaction %s in block %d, which its receipt lacks", t.TxHash, t.BlockNumber)
}

// askOthers returns nil unless other nodes hold a transfer that a node has neither in its receipts nor in its logs. The
// error is a *nodeError if they outvote the node, and a *NoQuorumError on a tie; see judgeMissing.
func (ix *Indexer) askOthers(ctx context.Context, n node, t invoice.Transfer) error {
	var held []bool
	for _, p := range ix.cfg.Pool.Others(n.Node) {
		var wrong *invoice.Transfer
		err := ix.consult(ctx, node{p}, func(ctx context.Context) (err error) {
			wrong, err = ix.missingFromReceipts(ctx, node{p}, []invoice.Transfer{t})
			if errors.Is(err, chain.ErrNotFound) { // it may lack the receipt only for a while: its logs have the vote
				var held bool
				if held, err = ix.ownLogsHold(ctx, node{p}, t); err == nil && !held {
					wrong = &t
				}
			}
			return err
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil { // a node that does not answer has no vote
			held = append(held, wrong == nil)
		}
	}
	switch r, reason := judgeMissing(n.String(), t, held); r {
	case reject:
		return n.contradicts("%s", reason)
	case undecided:
		return &NoQuorumError{reason}
	default:
		return nil
	}
}

// ownLogsHold reports whether a node's logs of a transfer's block hold the transfer. It fails unless the node's chain has
// the block.
func (ix *Indexer) ownLogsHold(ctx context.Context, n node, t invoice.Transfer) (bool, error) {
	headers, err := n.headers(ctx, t.BlockNumber)
	if err == nil && headers[0].Hash != t.BlockHash {
		err = n.wrap(errReplaced)
	}
	if err != nil {
		return false, err
	}
	logs, err := n.logsOfBlocks(ctx, []invoice.Hash{t.BlockHash}, ix.decoder.filter())
	if err != nil {
		return false, err
	}
	for i := range logs[0] {
		l := &logs[0][i]
		m, ok := ix.decoder.movement(l)
		if ok && invoice.Hash(l.TxHash) == t.TxHash && m.token.Address == t.Token && m.from == t.From && m.to == t.To && m.amount == t.Amount {
			return true, nil
		}
	}
	return false, nil
}
