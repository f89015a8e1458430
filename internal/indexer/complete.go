package indexer

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
)

// errIncomplete means that a node's receipts of a block do not match the block's header: the node
// lost some, or has not stored them yet.
var errIncomplete = errors.New("the receipts are not those of the block's header")

// blockReceipts returns all receipts of a block with one call. The error is errIncomplete if some are missing.
func (ix *Indexer) blockReceipts(ctx context.Context, n node, h chain.Header) ([]*chain.Receipt, error) {
	receipts, err := n.BlockReceipts(ctx, h.Hash)
	if err != nil {
		return nil, n.wrap(err)
	}
	return receipts, ix.checkComplete(n, h, receipts)
}

// checkComplete fails when a block's receipts are incomplete. Each transaction has one receipt, and the block's bloom
// filter is made of their logs. Logs that are missing in the filter are a failure only if the chain's filters are known
// to hold every log.
func (ix *Indexer) checkComplete(n node, h chain.Header, receipts []*chain.Receipt) error {
	if h.Txs != chain.UnknownTxs && len(receipts) != h.Txs {
		return n.incomplete(h, "%d receipts, and the block has %d transactions", len(receipts), h.Txs)
	}
	seen := make(map[common.Hash]bool, len(receipts))
	var held types.Bloom
	for _, r := range receipts {
		if seen[r.TxHash] {
			return n.incomplete(h, "the receipt of transaction %s twice", r.TxHash)
		}
		seen[r.TxHash] = true
		for i := range r.Logs {
			held.Add(r.Logs[i].Address[:])
			for _, topic := range r.Logs[i].Topics {
				held.Add(topic[:])
			}
		}
	}
	if !h.HasBloom() || h.Bloom == (types.Bloom{}) || !ix.cfg.Chain.FullBloom && ix.blooms(n) != BloomsTrue {
		return nil
	}
	for i, bits := range h.Bloom {
		if bits&^held[i] != 0 || ix.cfg.Chain.FullBloom && bits != held[i] {
			return n.incomplete(h, "receipts whose logs do not make the block's bloom filter")
		}
	}
	return nil
}

// incomplete returns the error for receipts that do not match a header. The node is at fault: another of its servers
// may have all receipts.
func (n node) incomplete(h chain.Header, format string, args ...any) error {
	return n.wrap(fmt.Errorf("%s returned of block %d %s: %w", n, h.Number, fmt.Sprintf(format, args...), errIncomplete))
}
