package indexer

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/chain"
)

// minWholeBlockTxs is from how many transactions on all receipts of a block may be
// cheaper to read than one by one.
const minWholeBlockTxs = 16

// evidenceRequest names the transactions of a block whose receipts and input are
// read.
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

// preferWholeBlock reports whether to read all receipts of the block: the transactions
// are many and have at least half of the block's logs.
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

// evidence reads the evidence of transactions, in the order requested.
func (ix *Indexer) evidence(ctx context.Context, n node, blocks []evidenceRequest) ([][]evidence, error) {
	found := make([][]evidence, len(blocks))
	var single []common.Hash
	var of []int // the index of each one's block
	for i, b := range blocks {
		if b.wholeBlock {
			all, err := ix.blockEvidence(ctx, n, b)
			if err == nil {
				found[i] = all
				continue
			}
			if !errors.Is(err, chain.ErrUnsupported) && !errors.Is(err, errIncomplete) && !chain.IsTooLarge(err) {
				return nil, err
			}
		}
		for _, tx := range b.txs {
			single, of = append(single, tx), append(of, i)
		}
	}
	if len(single) == 0 {
		return found, nil
	}
	receipts, inputs, err := n.Evidence(ctx, single)
	if err != nil {
		return nil, n.wrap(err)
	}
	for i, r := range receipts {
		found[of[i]] = append(found[of[i]], evidence{r, inputs[i]})
	}
	return found, nil
}

// blockEvidence reads the receipts and inputs of a whole block, and returns those
// requested.
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
