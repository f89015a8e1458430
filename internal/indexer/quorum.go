package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
)

// verifyQuorum reads the blocks that are about to become final from the provider and
// from a second one, and returns true when both have them and tell of the same
// transfers as were recorded. Who told of what was recorded is not asked: it
// may have been the second one. Where what was recorded is not what the first
// provider tells now, it is rolled back, and the result is false.
func (w *Indexer) verifyQuorum(ctx context.Context, n node, at settle.Header, pending []invoice.Transfer) (bool, error) {
	s := blockRange{first: w.tracker.Final().Number + 1, last: at.Number}
	c := w.newAddressCache()
	own, err := w.readBlockRange(ctx, n, s, c)
	if err != nil {
		return false, err
	}
	first := reading{n, own}
	if first.last().Hash != at.Hash {
		return false, nil // replaced in the meantime
	}
	differs, err := w.deviates(ctx, pending, &first, c)
	if err != nil {
		return false, err
	}
	if differs > 0 {
		w.Logger.Info("what a block holds is not what was recorded; reading it again", "chain", w.Chain.Key, "provider", n.String(), "block", differs)
		return false, w.rollbackBelow(ctx, differs)
	}
	err = w.secondReader(ctx, first, s, c)
	var wrong *nodeError
	if errors.As(err, &wrong) && wrong.rereadFrom > 0 {
		if err := w.rollbackBelow(ctx, wrong.rereadFrom); err != nil {
			return false, err
		}
	}
	return err == nil, err
}

// quorumHeight returns the height up to which blocks are final: to the provider
// and, where two must agree, to another one at least. ok is false when the tag
// of finality holds for no block of any other. The highest line of the others counts, so that one of them
// that lags, or lies, holds nothing up while there is a third. When none of
// them answers the line is the provider's: nothing is confirmed by it alone.
func (w *Indexer) quorumHeight(ctx context.Context, n node, t heads) (line uint64, ok bool) {
	line, _ = w.Chain.Finality.Height(t.head.Number, t.tagged.Number)
	if w.Chain.Quorum < 2 {
		return line, true
	}
	others := w.Pool.Others(n.Node)
	lines := make([]*uint64, len(others)) // nil of those that do not answer
	var group sync.WaitGroup
	for i, p := range others {
		group.Go(func() {
			_ = w.consult(ctx, node{p}, func(ctx context.Context) error { // logged there; a provider that does not answer has no voice
				theirs, err := node{p}.head(ctx, w.Chain.Finality.Tag)
				if err == nil {
					at, _ := w.Chain.Finality.Height(theirs.head.Number, theirs.tagged.Number)
					lines[i] = &at
				}
				return err
			})
		})
	}
	group.Wait()
	lines = slices.DeleteFunc(lines, func(l *uint64) bool { return l == nil })
	if len(lines) == 0 {
		return line, true
	}
	highest := *slices.MaxFunc(lines, func(a, b *uint64) int { return cmp.Compare(*a, *b) })
	// A chain that is younger than its depth begins at block 0; one whose tag
	// is nowhere has no line.
	return min(line, highest), highest > 0 || w.Chain.Finality.Tag == ""
}

// reading is what a provider tells of a span.
type reading struct {
	node
	blocks []settle.Block
}

func (r *reading) last() settle.Header { return r.blocks[len(r.blocks)-1].Header }

func (r *reading) transfers() []invoice.Transfer {
	var all []invoice.Transfer
	for _, b := range r.blocks {
		all = append(all, b.Transfers...)
	}
	return all
}

// secondReading reads a span that ends with a block from another provider. It
// is nil when that does not answer or has another block there.
func (w *Indexer) secondReading(ctx context.Context, n node, s blockRange, last invoice.Hash, c *addressCache) (*reading, error) {
	err := n.ready(ctx)
	var blocks []settle.Block
	if err == nil {
		blocks, err = w.readBlockRange(ctx, n, s, c)
	}
	var failed *nodeError
	switch {
	case err == nil:
		n.ReportSuccess()
	case ctx.Err() != nil || !errors.As(err, &failed):
		return nil, err
	default:
		failed.report()
		w.Logger.Debug("no second reading", "chain", w.Chain.Key, "provider", n.String(), "err", err)
		return nil, nil
	}
	r := &reading{n, blocks}
	if r.last().Hash != last {
		return nil, nil // crosscheck has judged that
	}
	return r, nil
}

// secondReader returns nil when a second provider tells the same of a span as the
// first. Else the receipts show who left something out, and it is set aside;
// where receipts stand against receipts, a third provider that agrees with one
// of them decides. The error is a *providerError when the first provider is
// wrong, and an *UnsureError when that cannot be told or nobody else answers.
func (w *Indexer) secondReader(ctx context.Context, first reading, s blockRange, c *addressCache) error {
	var against []*reading
	for _, p := range w.Pool.Others(first.Node) {
		second, err := w.secondReading(ctx, node{p}, s, first.last().Hash, c)
		if err != nil {
			return err
		}
		if second == nil {
			continue
		}
		less, more := differences(first.transfers(), second.transfers())
		if len(less)+len(more) == 0 {
			for _, r := range against {
				r.Quarantine(fmt.Sprintf("tells of other transfers up to block %d than %s and %s", s.last, first.node, p))
			}
			return nil
		}
		block := slices.MinFunc(append(less, more...), byPosition).BlockNumber
		w.Logger.Warn("two providers tell of different transfers", "chain", w.Chain.Key, "first", first.String(), "second", p.String(),
			"from", block, "only_first", len(less), "only_second", len(more))
		// Where they tell of one movement with different evidence, neither has
		// left it out.
		unseenByFirst, unseenBySecond := differences(withoutEvidence(more), withoutEvidence(less))
		if len(unseenByFirst) > 0 {
			if ok, err := w.receiptsHold(ctx, first.node, unseenByFirst); err != nil {
				return err
			} else if ok {
				return first.contradicts("left out transfers of block %d that are in its receipts", block).rereadingFrom(block)
			}
		} else if len(unseenBySecond) > 0 {
			if ok, err := w.receiptsHold(ctx, second.node, unseenBySecond); err != nil {
				return err
			} else if ok {
				p.Quarantine(fmt.Sprintf("left out transfers of block %d that are in its receipts", block))
				continue
			}
		}
		for _, r := range against {
			if less, more := differences(r.transfers(), second.transfers()); len(less)+len(more) == 0 {
				return first.contradicts("tells of other transfers in block %d than %s and %s", block, r.node, p).rereadingFrom(block)
			}
		}
		against = append(against, second)
	}
	if len(against) > 0 {
		return &NoQuorumError{fmt.Sprintf("%s and %s tell of different transfers up to block %d; add another provider or find out which of them is wrong",
			first.node, against[0].node, s.last)}
	}
	return &NoQuorumError{fmt.Sprintf("two providers must agree, but none besides %s answers for block %d", first.node, s.last)}
}

// deviates returns the lowest block of which a reading tells otherwise than
// what was recorded as pending, and 0 when there is none. What left a
// settlement address is recorded only when it is a refund, so it may be missing
// there.
func (w *Indexer) deviates(ctx context.Context, pending []invoice.Transfer, r *reading, c *addressCache) (uint64, error) {
	less, more := differences(pending, r.transfers())
	var receivers []invoice.Address
	for _, t := range more {
		receivers = append(receivers, t.To)
	}
	watched, err := c.watched(ctx, receivers)
	if err != nil {
		return 0, err
	}
	more = slices.DeleteFunc(more, func(t invoice.Transfer) bool { return !watched[t.To] })
	if len(less)+len(more) == 0 {
		return 0, nil
	}
	return slices.MinFunc(append(less, more...), byPosition).BlockNumber, nil
}

// withoutEvidence returns the transfers without what speaks for their invoices.
func withoutEvidence(transfers []invoice.Transfer) []invoice.Transfer {
	all := slices.Clone(transfers)
	for i := range all {
		all[i].Evidence = invoice.Evidence{}
	}
	return all
}

// differences returns the transfers that only one of two lists holds.
func differences(a, b []invoice.Transfer) (onlyA, onlyB []invoice.Transfer) {
	without := func(list, other []invoice.Transfer) (rest []invoice.Transfer) {
		has := make(map[invoice.Transfer]bool, len(other))
		for _, t := range other {
			has[t] = true
		}
		for _, t := range list {
			if !has[t] {
				rest = append(rest, t)
			}
		}
		return rest
	}
	return without(a, b), without(b, a)
}

func byPosition(a, b invoice.Transfer) int {
	switch {
	case a.Before(b.Position):
		return -1
	case b.Before(a.Position):
		return 1
	}
	return 0
}

// receiptsHold reports whether the provider's receipts hold all of the transfers.
func (w *Indexer) receiptsHold(ctx context.Context, n node, transfers []invoice.Transfer) (bool, error) {
	wrong, err := w.missingFromReceipts(ctx, n, transfers)
	if errors.Is(err, chain.ErrNotFound) {
		return false, nil
	}
	return err == nil && wrong == nil, err
}

// missingFromReceipts returns the lowest of the transfers that is not in the provider's
// receipts as it was told of, and nil when all are.
func (w *Indexer) missingFromReceipts(ctx context.Context, n node, transfers []invoice.Transfer) (*invoice.Transfer, error) {
	var txs []common.Hash
	seen := map[invoice.Hash]bool{}
	for _, t := range transfers {
		if !seen[t.TxHash] {
			seen[t.TxHash] = true
			txs = append(txs, common.Hash(t.TxHash))
		}
	}
	receipts, err := n.receipts(ctx, txs)
	if err != nil {
		return nil, err
	}
	var wrong *invoice.Transfer
	for i := range transfers {
		t := &transfers[i]
		if !w.decoder.receiptHolds(receipts[common.Hash(t.TxHash)], t) && (wrong == nil || t.Before(wrong.Position)) {
			wrong = t
		}
	}
	return wrong, nil
}

// receiptHolds reports whether the receipt holds the transfer just as it was
// recorded.
func (d decoder) receiptHolds(r *chain.Receipt, t *invoice.Transfer) bool {
	if !r.Succeeded() || invoice.Hash(r.BlockHash) != t.BlockHash || t.Ordinal >= len(r.Logs) {
		return false
	}
	log := &r.Logs[t.Ordinal]
	m, ok := d.movement(log)
	return ok && int(log.Index) == t.LogIndex && m.token.Address == t.Token && m.from == t.From && m.to == t.To && m.amount == t.Amount
}
