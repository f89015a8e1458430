package indexer

import (
	"context"
	"slices"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// recheckOrphaned verifies, before blocks become final, that no payment in them is orphaned while its block is
// canonical. A node that replaced a block and then restored it may have left the payment out the second time, or
// invented it the first time. If the node's receipts hold such a payment, its block is rolled back and the result is
// false. With a quorum the check is not needed, because both nodes have read the blocks.
func (ix *Indexer) recheckOrphaned(ctx context.Context, n node, through invoice.Header) (bool, error) {
	orphans, err := ix.canonicalOrphans(ctx, n, through.Number)
	if err != nil {
		return false, err
	}
	for _, t := range orphans {
		held, err := ix.receiptsHold(ctx, n, []invoice.Transfer{t})
		if err == nil && !held {
			err = ix.believeMissing(ctx, n, t)
		}
		if err != nil {
			return false, err
		}
		if !held {
			continue
		}
		if err := ix.checkReread(ctx, n, t); err != nil {
			return false, err
		}
		ix.cfg.Logger.Error("payment was left out of its block, will reindex the block",
			"chain", ix.cfg.Chain.Key, "node", n.String(), "block", t.BlockNumber, "tx", t.TxHash.String(), "ordinal", t.Ordinal)
		return false, ix.rollbackBelow(ctx, t.BlockNumber)
	}
	return true, nil
}

// canonicalOrphans returns the orphaned payments up to a block that are in canonical blocks, in the order of the chain.
func (ix *Indexer) canonicalOrphans(ctx context.Context, n node, through uint64) ([]invoice.Transfer, error) {
	orphans, err := ix.cfg.Ledger.Orphaned(ctx, ix.cfg.Chain.Key, through)
	if len(orphans) == 0 || err != nil {
		return nil, err
	}
	slices.SortFunc(orphans, byPosition)
	var numbers []uint64
	for _, t := range orphans {
		numbers = append(numbers, t.BlockNumber)
	}
	headers, err := n.headers(ctx, slices.Compact(numbers)...)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(orphans, func(t invoice.Transfer) bool {
		return !slices.ContainsFunc(headers, func(h chain.Header) bool { return h.Hash == t.BlockHash })
	}), nil
}

// checkReread fails if a node's logs of a block leave out a transfer that the node's receipts hold.
func (ix *Indexer) checkReread(ctx context.Context, n node, t invoice.Transfer) error {
	headers, err := n.headers(ctx, t.BlockNumber)
	if err != nil {
		return err
	}
	blocks, _, err := ix.readBlocks(ctx, n, headers, ix.newAddressCache())
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(blocks[0].Transfers, func(read invoice.Transfer) bool {
		return read.TxHash == t.TxHash && read.Ordinal == t.Ordinal
	}) {
		return n.contradicts("left out a transfer of transaction %s in block %d, which its receipt holds", t.TxHash, t.BlockNumber)
	}
	return nil
}
