package indexer

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// verifyTransfers reads the blocks that are about to become final from the node and from a second one, up to the block
// ranged by range: a range that a stream recorded may be long. It returns true if both have the blocks and report the
// recorded transfers. If the records differ from the node's present reading, they are rolled back and the result is
// false: the node is not blamed, because another node may have reported them.
func (ix *Indexer) verifyTransfers(ctx context.Context, n node, at invoice.Header, pending []invoice.Transfer, ranged uint64) (bool, error) {
	s := blockRange{first: ix.tracker.Final().Number + 1, last: at.Number, rangedUpTo: ranged}
	c := ix.newAddressCache()
	own, err := ix.readBlockRange(ctx, n, s, c)
	if err != nil {
		return false, err
	}
	first := reading{n, own}
	if first.last().Hash != at.Hash {
		return false, nil // replaced in between
	}
	for _, b := range own {
		if h, _ := ix.tracker.At(b.Number); h.Number == b.Number && h.Hash == b.Hash && !h.SameBlock(b.Header) {
			return false, ix.rereadTimes(ctx, n, h, b.Header)
		}
	}
	differs, err := ix.deviates(ctx, pending, &first, c)
	if err != nil {
		return false, err
	}
	if differs > 0 {
		ix.cfg.Logger.Info("block differs from what was recorded, will reindex it", "chain", ix.cfg.Chain.Key, "node", n.String(), "block", differs)
		return false, ix.rollbackBelow(ctx, differs)
	}
	err = ix.requireSecond(ctx, first, s, ix.tracker.Final(), c)
	var wrong *nodeError
	if errors.As(err, &wrong) && wrong.rereadFrom > 0 {
		if err := ix.rollbackBelow(ctx, wrong.rereadFrom); err != nil {
			return false, err
		}
	}
	return err == nil, err
}

// reading is a node's report of a block range.
type reading struct {
	node
	blocks []ledger.Block
}

func (r *reading) last() invoice.Header { return r.blocks[len(r.blocks)-1].Header }

func (r *reading) transfers() []invoice.Transfer {
	var all []invoice.Transfer
	for _, b := range r.blocks {
		all = append(all, b.Transfers...)
	}
	return all
}

// secondReading reads a block range from another node than the first. It returns nil if the node does not answer or has
// another last block, and also the lowest block that has another hash or time according to the node, or nil.
func (ix *Indexer) secondReading(ctx context.Context, n node, s blockRange, first *reading, c *addressCache) (_ *reading, differs *invoice.Header, _ error) {
	err := n.ready(ctx)
	var blocks []ledger.Block
	if err == nil {
		blocks, err = ix.readBlockRange(ctx, n, s, c)
	}
	r := &reading{n, blocks}
	if err == nil && r.last().Hash == first.last().Hash {
		differs, err = n.differing(ctx, first.blocks, blocks)
	}
	var failed *nodeError
	switch {
	case err == nil:
		n.ReportSuccess()
	case ctx.Err() != nil || !errors.As(err, &failed):
		return nil, nil, err
	default:
		failed.report()
		ix.cfg.Logger.Debug("no second reading", "chain", ix.cfg.Chain.Key, "node", n.String(), "err", err)
		return nil, nil, nil
	}
	if r.last().Hash != first.last().Hash {
		return nil, nil, nil // verifyBlock has judged the block
	}
	return r, differs, nil
}

// differing returns the lowest of some blocks that has another hash or time according to the node, or nil. read are
// blocks that the node has returned already.
func (n node) differing(ctx context.Context, blocks, read []ledger.Block) (*invoice.Header, error) {
	known, numbers := make([]chain.Header, len(read)), make([]uint64, len(blocks))
	for i, b := range read {
		known[i].Header = b.Header
	}
	for i, b := range blocks {
		numbers[i] = b.Number
	}
	theirs, err := n.headersBesides(ctx, known, numbers...)
	if err != nil {
		return nil, err
	}
	for i, b := range blocks {
		if !theirs[i].SameBlock(b.Header) {
			return &blocks[i].Header, nil
		}
	}
	return nil, nil
}

// requireSecond returns nil if a second node reports the same blocks and transfers of a block range as the first. final
// is the newest final block, or zero. verifyBlock judges about blocks and judgeTransfers about transfers, and nodes that
// are wrong are quarantined. The error is a *nodeError if the first node is wrong, and a *NoQuorumError if the result is
// undecided or no other node answers.
func (ix *Indexer) requireSecond(ctx context.Context, first reading, s blockRange, final invoice.Header, c *addressCache) error {
	nodes := []node{first.node}
	readings := []transfersReading{{node: first.String(), transfers: first.transfers()}}
	rest := ix.cfg.Pool.Others(first.Node)
	for {
		v := judgeTransfers(s.last, readings, len(rest) == 0)
		quarantine(nodes, v.wrong)
		switch v.ruling {
		case accept:
			return nil
		case reject:
			return first.rejected(v.wrong[len(v.wrong)-1].reason, v.block)
		case undecided:
			return &NoQuorumError{v.reason}
		case askMore:
		}
		if v.prove != nil {
			held, err := ix.receiptsHold(ctx, nodes[v.prove.of], v.prove.transfers)
			if err != nil {
				return err
			}
			readings[v.prove.result].proof = proofOf(held)
			continue
		}
		n := node{rest[0]}
		rest = rest[1:]
		second, differs, err := ix.secondReading(ctx, n, s, &first, c)
		if err == nil && differs != nil {
			second, err = nil, ix.verifyBlock(ctx, first.node, *differs, final)
		}
		if err != nil {
			return err
		}
		if second != nil {
			nodes = append(nodes, n)
			readings = append(readings, transfersReading{node: n.String(), transfers: second.transfers()})
			ix.logDifference(readings)
		}
	}
}

// logDifference logs how the last reading differs from the first, if it does.
func (ix *Indexer) logDifference(readings []transfersReading) {
	first, second := readings[0], readings[len(readings)-1]
	if d := compare(first.transfers, second.transfers); !d.equal() {
		ix.cfg.Logger.Warn("two nodes report different transfers", "chain", ix.cfg.Chain.Key, "first", first.node, "second", second.node,
			"from", d.block, "only_first", len(d.onlyFirst), "only_second", len(d.onlySecond))
	}
}

// deviates returns the lowest block where a reading differs from the pending transfers, or 0. Outgoing transfers are
// recorded only if they are refunds, and transfers from deposit addresses of lost invoices never, so both may be missing
// from pending if the block was recorded with them.
func (ix *Indexer) deviates(ctx context.Context, pending []invoice.Transfer, r *reading, c *addressCache) (uint64, error) {
	wrong, more := differences(pending, r.transfers())
	moved := make([]movement, len(more))
	for i, t := range more {
		moved[i] = movement{from: t.From, to: t.To}
	}
	lacks, err := ix.recordable(ctx, c, moved, false)
	if err != nil {
		return 0, err
	}
	known := make(map[uint64]bool)
	for _, b := range r.blocks {
		known[b.Number] = ix.observed[idOf(b.Header)] == hashOf(b.Transfers)
	}
	for i, t := range more {
		if lacks[i] || !known[t.BlockNumber] {
			wrong = append(wrong, t)
		}
	}
	if len(wrong) == 0 {
		return 0, nil
	}
	return slices.MinFunc(wrong, byPosition).BlockNumber, nil
}

// receiptsHold reports whether the node's receipts hold all of the transfers.
func (ix *Indexer) receiptsHold(ctx context.Context, n node, transfers []invoice.Transfer) (bool, error) {
	wrong, err := ix.missingFromReceipts(ctx, n, transfers)
	if errors.Is(err, chain.ErrNotFound) {
		return false, nil
	}
	return err == nil && wrong == nil, err
}

// missingFromReceipts returns the lowest transfer that is not in the node's receipts as recorded, or nil.
func (ix *Indexer) missingFromReceipts(ctx context.Context, n node, transfers []invoice.Transfer) (*invoice.Transfer, error) {
	receipts, err := n.receiptsOf(ctx, transfers)
	if err != nil {
		return nil, err
	}
	return ix.decoder.missingFrom(receipts, transfers), nil
}

// receiptsOf returns the receipts of the transactions of transfers.
func (n node) receiptsOf(ctx context.Context, transfers []invoice.Transfer) (map[common.Hash]*chain.Receipt, error) {
	var txs []common.Hash
	seen := map[invoice.Hash]bool{}
	for _, t := range transfers {
		if !seen[t.TxHash] {
			seen[t.TxHash] = true
			txs = append(txs, common.Hash(t.TxHash))
		}
	}
	return n.receipts(ctx, txs)
}

// missingFrom returns the lowest transfer that is not in the receipts as recorded, or nil.
func (d decoder) missingFrom(receipts map[common.Hash]*chain.Receipt, transfers []invoice.Transfer) (wrong *invoice.Transfer) {
	for i := range transfers {
		t := &transfers[i]
		if !d.receiptHolds(receipts[common.Hash(t.TxHash)], t) && (wrong == nil || t.Before(wrong.Position)) {
			wrong = t
		}
	}
	return wrong
}

// receiptHolds reports whether the receipt holds the transfer as recorded.
func (d decoder) receiptHolds(r *chain.Receipt, t *invoice.Transfer) bool {
	if r == nil || !r.Succeeded() || invoice.Hash(r.BlockHash) != t.BlockHash || t.Ordinal >= len(r.Logs) {
		return false
	}
	log := &r.Logs[t.Ordinal]
	m, ok := d.movement(log)
	return ok && int(log.Index) == t.LogIndex && m.token.Address == t.Token && m.from == t.From && m.to == t.To && m.amount == t.Amount
}
