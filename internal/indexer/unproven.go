package indexer

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// maxUnproven is how many transactions of a block are stored as unread because only another node returns them. The
// audit finds the remaining ones.
const maxUnproven = 16

// keepUnproven stores transactions as unread, together with their block, if only another node has their logs and their
// receipts in this block. They are then read again.
func (ix *Indexer) keepUnproven(ctx context.Context, other node, h chain.Header, logs []types.Log) error {
	watched, err := ix.newAddressCache().watched(ctx, ix.decoder.accounts(logs))
	if err != nil {
		return err
	}
	txs := ix.decoder.touching(logs, watched)
	txs = txs[:min(len(txs), maxUnproven)]
	if len(txs) == 0 {
		return nil
	}
	counts, err := ix.cfg.Ledger.CountUnread(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return err
	}
	if ledger.TotalUnread(counts)+len(txs) > ledger.MaxUnread {
		return nil
	}
	logs = slices.DeleteFunc(slices.Clone(logs), func(l types.Log) bool { return !slices.Contains(txs, l.TxHash) })
	var proven []types.Log
	_ = ix.consult(ctx, other, func(ctx context.Context) error { // logged there; without an answer there is no proof
		proven, _ = ix.provenBy(ctx, other, h, logs)
		return ctx.Err()
	})
	var found []ledger.UnreadTransaction
	for _, tx := range txs {
		of := slices.DeleteFunc(slices.Clone(logs), func(l types.Log) bool { return l.TxHash != tx })
		if lacksOf(proven, of) {
			continue
		}
		ix.cfg.Logger.Warn("only another node returns a transaction; it will be read again", "chain", ix.cfg.Chain.Key,
			"node", other.String(), "block", h.Number, "tx", tx.String())
		found = append(found, ledger.UnreadTransaction{
			TxHash: invoice.Hash(tx), Block: h.Number, Reason: ledger.UnreadNode,
			Detail: "only " + other.String() + " returns it",
		})
	}
	ix.setUnproven(h.Hash, found)
	return ctx.Err()
}

// setUnproven sets the transactions to store as unread with a block.
func (ix *Indexer) setUnproven(block invoice.Hash, txs []ledger.UnreadTransaction) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(txs) == 0 {
		delete(ix.unproven, block)
		return
	}
	if len(ix.unproven) >= maxComparedKnown {
		clear(ix.unproven)
	}
	ix.unproven[block] = txs
}

// takeUnproven returns the transactions to store as unread with a block, once.
func (ix *Indexer) takeUnproven(block invoice.Hash) []ledger.UnreadTransaction {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	txs := ix.unproven[block]
	delete(ix.unproven, block)
	return txs
}
