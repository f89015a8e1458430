package indexer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// minWholeBlockTxs is the number of transactions from which reading all receipts of a block may be cheaper than reading
// them one by one.
const minWholeBlockTxs = 16

// evidenceRequest lists the transactions of a block to read with their receipts and input.
type evidenceRequest struct {
	block      chain.Header
	txs        []common.Hash
	wholeBlock bool // they are most of the block
}

// evidence is the receipt and the calldata of a transaction.
type evidence struct {
	receipt *chain.Receipt
	input   []byte
}

// preferWholeBlock reports whether to read all receipts of the block, because the transactions are many and have at
// least half of the block's logs.
func preferWholeBlock(logs []types.Log, txs []common.Hash) bool {
	if len(txs) < minWholeBlockTxs {
		return false
	}
	theirs := 0
	for i := range logs {
		// Both are in the logs' order.
		if len(txs) > 1 && logs[i].TxHash == txs[1] {
			txs = txs[1:]
		}
		if logs[i].TxHash == txs[0] {
			theirs++
		}
	}
	return 2*theirs >= len(logs)
}

// evidence reads the evidence of transactions, in the order requested. It leaves out transactions that no node returns,
// once they are skipped.
func (ix *Indexer) evidence(ctx context.Context, n node, blocks []evidenceRequest) ([][]evidence, error) {
	found := make([][]evidence, len(blocks))
	var single []common.Hash
	for i := range blocks {
		b := &blocks[i]
		b.txs = slices.DeleteFunc(b.txs, func(tx common.Hash) bool { return ix.isOversized(b.block, tx) })
		var err error
		if found[i], err = ix.wholeEvidence(ctx, n, *b); err != nil {
			return nil, err
		}
		if found[i] == nil {
			single = append(single, b.txs...)
		}
	}
	if len(single) == 0 {
		return found, nil
	}
	receipts, inputs, err := n.Evidence(ctx, single)
	if err != nil && !mayBeUnreadable(ctx, err) {
		return nil, n.wrap(err)
	}
	read := make(map[common.Hash]evidence, len(single))
	for i, r := range receipts {
		read[single[i]] = evidence{r, inputs[i]}
	}
	if err != nil {
		err = ix.evidenceOfEach(ctx, n, blocks, found, read)
	}
	for i, b := range blocks {
		if found[i] == nil {
			found[i] = b.among(read)
		}
	}
	ix.forgetUnreadable(slices.Collect(maps.Keys(read))...)
	return found, err
}

// wholeEvidence returns the evidence of a block from all of its receipts, with one call, or nil if its transactions are
// to be read one by one.
func (ix *Indexer) wholeEvidence(ctx context.Context, n node, b evidenceRequest) ([]evidence, error) {
	if !b.wholeBlock || n.Limit(chain.KindReceiptsOfBlock).Next() == 0 {
		return nil, nil
	}
	all, err := ix.blockEvidence(ctx, n, b)
	if err != nil && isReadable(ctx, err) {
		return nil, nil
	}
	return all, err
}

// isReadable reports whether the transactions of a block can still be read one by one after reading all of its receipts
// failed.
func isReadable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (chain.IsRefusal(err) || errors.Is(err, errIncomplete))
}

// among returns the evidence of the requested transactions, in their order.
func (b evidenceRequest) among(read map[common.Hash]evidence) (found []evidence) {
	for _, tx := range b.txs {
		if e, ok := read[tx]; ok {
			found = append(found, e)
		}
	}
	return found
}

// evidenceOfEach reads the evidence of the blocks that are not found yet, one transaction at a time. It leaves out skipped
// transactions. At one that the node does not return it goes on, so that all of them become skipped at the same time, and
// returns the error of the first one.
func (ix *Indexer) evidenceOfEach(ctx context.Context, n node, blocks []evidenceRequest, found [][]evidence, read map[common.Hash]evidence) (first error) {
	failing := 0
	for i, b := range blocks {
		if found[i] != nil {
			continue
		}
		err := ix.readEach(ctx, n, b.block, b.txs, func(tx common.Hash) error {
			receipts, inputs, err := n.Evidence(ctx, []common.Hash{tx})
			if err == nil {
				read[tx] = evidence{receipts[0], inputs[0]}
			}
			return n.wrap(err)
		})
		if err == nil {
			continue
		}
		if !isUnreadable(err) {
			return err
		}
		if first, failing = cmp.Or(first, err), failing+1; failing == maxUnreadableBlocks {
			break
		}
	}
	return first
}

// blockEvidence reads the receipts and inputs of a whole block, and returns those requested.
func (ix *Indexer) blockEvidence(ctx context.Context, n node, b evidenceRequest) ([]evidence, error) {
	var receipts []*chain.Receipt
	var inputs map[common.Hash][]byte
	both, reading := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		receipts, err = ix.blockReceipts(reading, n, b.block)
		return err
	})
	both.Go(func() (err error) {
		inputs, err = n.BlockInputs(reading, b.block.Hash)
		return n.wrap(err)
	})
	if err := both.Wait(); err != nil {
		return nil, err
	}
	byTx := make(map[common.Hash]*chain.Receipt, len(receipts))
	for _, r := range receipts {
		byTx[r.TxHash] = r
	}
	found := make([]evidence, len(b.txs))
	for i, tx := range b.txs {
		input, ok := inputs[tx]
		if byTx[tx] == nil || !ok {
			return nil, n.contradicts("returned a log of transaction %s in block %s, and of the block without that transaction", tx, b.block.Hash)
		}
		found[i] = evidence{byTx[tx], input}
	}
	return found, nil
}

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
