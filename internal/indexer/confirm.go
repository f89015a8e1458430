package indexer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// maxQuorumBlocks is how many blocks a quorum confirms in one step: after days with only one node there are many.
const maxQuorumBlocks = 4 * maxBlocks

// MaxConfirmed bounds the transfers that one transaction confirms, unless one block has more. Anyone can make many
// transfers, and a statement that takes too long would fail again each time.
const MaxConfirmed = 20_000

// confirmable returns the height up to which blocks may be confirmed if unfinal of the chain's newest blocks are not
// final. A block is confirmable once that many blocks above it were read. So a transfer that sends a payment back
// before the payment is final is read before the payment is confirmed, even while old blocks are read.
func (ix *Indexer) confirmable(unfinal uint64) uint64 {
	tip := ix.tracker.Tip().Number
	return tip - min(tip, unfinal)
}

// confirm makes blocks up to the finalized height final. First it verifies that their records still match what the node
// and the others report, and rolls back if they do not. settled is false after a rollback, and if more blocks remain to
// be confirmed.
func (ix *Indexer) confirm(ctx context.Context, n node, t heads, finalized, unfinal uint64) (settled bool, err error) {
	last, ok := ix.tracker.At(finalized)
	if !ok || last.Number <= ix.tracker.Final().Number {
		return true, nil
	}
	at := last
	if next := ix.tracker.Ahead(maxQuorumBlocks); ix.cfg.Chain.Quorum > 1 && next.Number < at.Number {
		at = next
	}
	pending, revision, err := ix.cfg.Ledger.Pending(ctx, ix.cfg.Chain.Key, at.Number)
	if err != nil {
		return false, err
	}
	at = ix.tracker.Part(at, pending, MaxConfirmed)
	pending = slices.DeleteFunc(pending, func(t invoice.Transfer) bool { return t.BlockNumber > at.Number })
	if ok, err := ix.verifyCanonical(ctx, n, t, at, pending); !ok || err != nil {
		return false, err
	}
	if ok, err := ix.verifyRead(ctx, n, at); !ok || err != nil {
		return false, err
	}
	if ix.cfg.Chain.Quorum > 1 {
		ok, err = ix.verifyTransfers(ctx, n, at, pending, rangedUpTo(t.head.Number-min(unfinal, t.head.Number)))
	} else {
		ok, err = ix.verifyReceipts(ctx, n, at, pending)
	}
	if !ok || err != nil {
		return false, err
	}
	more, err := ix.cfg.Ledger.Confirm(ctx, ix.cfg.Chain.Key, at, revision, unfinal)
	if err != nil {
		return false, err
	}
	ix.expiring = more
	ix.tracker.Finalize(at)
	return at.Number == last.Number, nil
}

// verifyCanonical compares the newest block to confirm and the blocks of pending transfers with the node's canonical
// blocks, and rolls back what differs. Blocks that are linked by parent hashes to the node's present head are
// canonical. They are compared anyway if another node returned them, maybe with a wrong time.
func (ix *Indexer) verifyCanonical(ctx context.Context, n node, t heads, finalized invoice.Header, pending []invoice.Transfer) (bool, error) {
	read := map[uint64]invoice.Header{finalized.Number: finalized}
	for _, t := range pending {
		h, _ := ix.tracker.At(t.BlockNumber)
		if h.Number < t.BlockNumber {
			return false, ledger.ErrCursorMoved // the block was added since the cursor was loaded
		}
		if h.Hash != t.BlockHash {
			return false, fmt.Errorf("the ledger holds a pending transfer in block %s, which is not the block %d that was read", t.BlockHash, t.BlockNumber)
		}
		read[h.Number] = h
	}
	linked := uint64(math.MaxUint64)
	if ix.tracker.Tip().Hash == t.head.Hash {
		linked = ix.tracker.Linked()
	}
	maps.DeleteFunc(read, func(number uint64, h invoice.Header) bool {
		return ix.readFrom[idOf(h)] == n && (number >= linked || h.Hash == t.tagged.Hash)
	})
	headers, err := n.headers(ctx, slices.Sorted(maps.Keys(read))...)
	if err != nil {
		return false, err
	}
	for _, h := range headers {
		switch was := read[h.Number]; {
		case h.Hash != was.Hash:
			_, err := ix.follow(ctx, n, h)
			return false, err
		case !h.SameBlock(was):
			return false, ix.rereadTimes(ctx, n, was, h.Header)
		}
	}
	return true, nil
}

// verifyReceipts compares pending transfers and orphaned payments with the receipts of their transactions. It rolls
// back from the first block that differs, unless the node contradicts itself or other nodes hold the transfer. It
// reports transfers that are in the receipts and not recorded.
func (ix *Indexer) verifyReceipts(ctx context.Context, n node, at invoice.Header, pending []invoice.Transfer) (bool, error) {
	receipts, refused := n.receiptsOf(ctx, pending)
	if refused != nil && !errors.Is(refused, chain.ErrNotFound) {
		return false, refused
	}
	wrong := ix.decoder.missingFrom(receipts, pending)
	if wrong == nil {
		if err := ix.reportUnrecorded(ctx, receipts, pending); err != nil {
			return false, err
		}
		return ix.recheckOrphaned(ctx, n, at)
	}
	held, err := ix.ownLogsHold(ctx, n, *wrong)
	switch {
	case err != nil:
		return false, err
	case held && receipts[common.Hash(wrong.TxHash)] == nil: // it may lack the receipt only for a while
		return false, refused
	case held:
		return false, n.contradictsReceipt(*wrong)
	}
	if err := ix.askOthers(ctx, n, *wrong); err != nil {
		return false, err
	}
	ix.cfg.Logger.Error("recorded transfer is not in its receipt, will reindex its block",
		"chain", ix.cfg.Chain.Key, "node", n.String(), "block", wrong.BlockNumber, "tx", wrong.TxHash.String(), "ordinal", wrong.Ordinal)
	return false, ix.rollbackBelow(ctx, wrong.BlockNumber)
}

// rollbackBelow orphans a block that is not final, and everything above.
func (ix *Indexer) rollbackBelow(ctx context.Context, block uint64) error {
	below, ok := ix.tracker.At(block - 1)
	if !ok {
		return fmt.Errorf("block %d is to be read again, but is not above the final block %d", block, ix.tracker.Final().Number)
	}
	return ix.rollback(ctx, below)
}

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

// quorumHeight returns the height up to which blocks are final for the node and, if the quorum is two, for another
// node; see judgeHeight.
func (ix *Indexer) quorumHeight(ctx context.Context, n node, t heads) (height uint64, ok bool) {
	own, _ := ix.cfg.Chain.Finality.Height(t.head.Number, t.tagged.Number)
	if ix.cfg.Chain.Quorum < 2 {
		return own, true
	}
	nodes := ix.cfg.Pool.Others(n.Node)
	heights := make([]*uint64, len(nodes)) // nil for nodes that do not answer
	var group sync.WaitGroup
	for i, p := range nodes {
		group.Go(func() {
			_ = ix.consult(ctx, node{p}, func(ctx context.Context) error { // logged there; a node that does not answer has no vote
				theirs, err := node{p}.head(ctx, ix.cfg.Chain.Finality.Tag)
				if err == nil {
					at, _ := ix.cfg.Chain.Finality.Height(theirs.head.Number, theirs.tagged.Number)
					heights[i] = &at
				}
				return err
			})
		})
	}
	group.Wait()
	var others []uint64
	for _, h := range heights {
		if h != nil {
			others = append(others, *h)
		}
	}
	return judgeHeight(own, others, ix.cfg.Chain.Finality.Tag != "")
}
