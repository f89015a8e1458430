package indexer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of comparing logs.
const (
	// maxReceiptsInFlight is how many blocks' receipts are requested at a time.
	maxReceiptsInFlight = 4
	// maxReceiptFailures is how often in a row a node may fail to return the receipts of a block before the indexer
	// treats it as a node that does not serve them.
	maxReceiptFailures = 3
	// receiptsRecheck is how long afterwards such a node is asked again.
	receiptsRecheck = time.Hour
	// maxCompareParts is how many requests another node gets for the logs of a range near the head.
	maxCompareParts = 4
	// maxComparedKnown bounds the blocks that are remembered as compared.
	maxComparedKnown = 1 << 14
)

// Comparison is the means by which a block's logs were compared when it was read.
type Comparison string

// Comparisons of a block's logs.
const (
	ComparedNone     Comparison = "none"     // no comparison was possible
	ComparedHeader   Comparison = "header"   // the header rules out logs of interest
	ComparedReceipts Comparison = "receipts" // with all receipts of the block
	ComparedNode     Comparison = "node"     // with another node's logs
)

// Comparisons lists all of them.
var Comparisons = []Comparison{ComparedHeader, ComparedReceipts, ComparedNode, ComparedNone}

// receiptsOffer is whether a node returns all receipts of a block in one answer.
type receiptsOffer struct {
	known    bool // it has returned receipts
	failures int  // in a row
	again    time.Time
}

// offersReceipts reports whether the node can be asked for the receipts of a block.
func (ix *Indexer) offersReceipts(n node) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return !ix.cfg.Now().Before(ix.offers[n.Node].again)
}

// hasReturnedReceipts reports whether a node has ever returned the receipts of a block.
func (ix *Indexer) hasReturnedReceipts(n node) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.offers[n.Node].known
}

// noteReceipts records whether a node returned the receipts of a block. The reason for a failure does not matter.
func (ix *Indexer) noteReceipts(n node, err error) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	o := ix.offers[n.Node]
	if err == nil {
		ix.offers[n.Node] = receiptsOffer{known: true}
		return
	}
	if o.failures++; o.failures >= maxReceiptFailures || errors.Is(err, chain.ErrUnsupported) {
		o.failures, o.again = 0, ix.cfg.Now().Add(receiptsRecheck)
	}
	ix.offers[n.Node] = o
}

// compareLogs compares the blocks' logs from a node with the blocks' receipts or, if the node does not return receipts,
// with another node's logs. It returns the logs. If the node is the only one, logs that it left out are added; if there
// is another node, logs that were left out are an error. It is no error if no comparison is possible.
func (ix *Indexer) compareLogs(ctx context.Context, n node, headers []chain.Header, found [][]types.Log, filter chain.LogFilter) ([][]types.Log, error) {
	if !ix.cfg.Chain.CompareLogs || ix.cfg.Chain.Quorum > 1 || len(headers) == 0 { // otherwise two nodes read each block
		return found, nil
	}
	theirs := ix.logsOfReceipts(ctx, n, headers, filter)
	by, other := ComparedReceipts, node{}
	if slices.ContainsFunc(theirs, func(l []types.Log) bool { return l == nil }) {
		if from, logs := ix.compareWithNode(ctx, n, headers, filter); logs != nil {
			other, theirs, by = from, logs, ComparedNode
		}
	}
	for i, h := range headers {
		how, err := ix.compareBlock(ctx, n, h, &found[i], namedLogs{theirs[i], by, other})
		if err != nil {
			return nil, err
		}
		ix.noteCompared(h.Hash, how)
	}
	return found, ctx.Err()
}

// namedLogs are the logs of a block according to a second source.
type namedLogs struct {
	logs  []types.Log // nil if the source does not return the block's logs
	by    Comparison  // the kind of source
	other node        // the second node, for ComparedNode
}

// compareBlock compares a node's logs of one block with a second source, and adds what is missing. It returns how the
// block was compared.
func (ix *Indexer) compareBlock(ctx context.Context, n node, h chain.Header, told *[]types.Log, second namedLogs) (Comparison, error) {
	ix.setUnproven(h.Hash, nil)
	switch {
	case second.logs == nil:
		return ComparedNone, nil
	case lacksOf(*told, second.logs):
		return ix.leftOut(ctx, n, h, told, second)
	case !lacksOf(second.logs, *told):
		return second.by, nil
	case second.by == ComparedReceipts:
		return "", n.contradicts("returned logs of block %d, %s, that its receipts do not hold", h.Number, h.Hash)
	}
	return ComparedNone, nil // the other node lacks some logs of the block, so it may lack others
}

// logsOfReceipts returns the logs in each block's receipts. They are nil for a block if the node does not return all of
// its receipts.
func (ix *Indexer) logsOfReceipts(ctx context.Context, n node, headers []chain.Header, filter chain.LogFilter) [][]types.Log {
	logs := make([][]types.Log, len(headers))
	if !ix.offersReceipts(n) {
		return logs
	}
	slots := make(chan struct{}, maxReceiptsInFlight)
	var group sync.WaitGroup
	for i, h := range headers {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if !ix.offersReceipts(n) {
				return // it failed for other blocks
			}
			held, err := ix.logsFromBlockReceipts(ctx, n, h, filter)
			if ctx.Err() != nil {
				return
			}
			ix.noteReceipts(n, err)
			if err == nil {
				logs[i] = append([]types.Log{}, held...)
			}
		})
	}
	group.Wait()
	return logs
}

// otherThan returns the node that a node is compared with, or zero. It need not be known to have the blocks, because
// each comparison shows that.
func (ix *Indexer) otherThan(n *chain.Node) node { return node{ix.cfg.Pool.OtherHaving(0, n)} }

// compareWithNode returns the blocks' logs according to another node, and that node; nil if no other node answers.
func (ix *Indexer) compareWithNode(ctx context.Context, n node, headers []chain.Header, filter chain.LogFilter) (other node, logs [][]types.Log) {
	if other = ix.otherThan(n.Node); other.Node == nil {
		return node{}, nil
	}
	logs, err := ix.logsFromOther(ctx, other, hashesOf(headers), filter)
	if err != nil {
		return node{}, nil
	}
	for i := range logs {
		logs[i] = append([]types.Log{}, logs[i]...)
	}
	return other, logs
}

// compareRange compares a node's logs of a range near the head with another node's, if there is one. below and last are
// the hashes of the block below the range and of its last block. It returns how the range was compared, or "" if no
// comparison is needed, and whether the other node has logs that are missing. The result is ComparedNone if the other
// node does not prove that it has the blocks, or lacks logs.
func (ix *Indexer) compareRange(
	ctx context.Context, n node, r blockRange, below, last invoice.Hash, told []types.Log,
) (by Comparison, more bool) {
	other := ix.otherThan(n.Node)
	switch {
	case !ix.cfg.Chain.CompareLogs || ix.cfg.Chain.Quorum > 1: // with a quorum two nodes read each block
		return "", false
	case other.Node == nil:
		return ComparedNone, false
	}
	if (r.last-r.first)/max(1, other.Limit(chain.KindRange).Next()) >= maxCompareParts {
		return ComparedNone, false // it would take too long
	}
	var logs []types.Log
	var has bool
	err := ix.consult(ctx, other, func(ctx context.Context) (err error) {
		logs, has, err = ix.logsOfChain(ctx, other, r, below, last)
		return err
	})
	switch {
	case err != nil || !has:
		return ComparedNone, false
	case lacksOf(told, logs):
		return ComparedNode, true
	case lacksOf(logs, told):
		return ComparedNone, false
	}
	return ComparedNode, false
}

// logsOfChain returns the logs of a range near the head, in requests within the node's limit. has reports whether the
// node's headers prove that it has the range's blocks, from the one above below to last. A server that lags returns an
// answer without the logs that it lacks.
func (ix *Indexer) logsOfChain(ctx context.Context, n node, r blockRange, below, last invoice.Hash) (all []types.Log, has bool, err error) {
	limit := n.Limit(chain.KindRange)
	for at := r.first; at <= r.last; {
		end := min(r.last, at+max(1, limit.Next())-1)
		logs, ends, err := n.logsAndEnds(ctx, at, end, ix.decoder.filter())
		switch {
		case err != nil && end > at && max(1, limit.Next()) < end-at+1 && ctx.Err() == nil && isSmallerRangeNext(err):
			continue
		case errors.Is(err, chain.ErrNotFound), errors.Is(err, errNotTogether):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		case ends[0].Parent != below:
			return nil, false, nil
		}
		grow(limit, end-at+1, len(logs))
		all, below, at = append(all, logs...), ends[1].Hash, end+1
	}
	return all, below == last, nil
}

// compareCounted compares the blocks of a range near the head that concern the ledger, as compareLogs does, unless the
// range was compared with another node. logs are the logs of the blocks; it completes them, and returns which of their
// accounts are settlement addresses. The headers of the other blocks are not known, so without another node only the
// audit checks those blocks.
func (ix *Indexer) compareCounted(
	ctx context.Context, n node, r blockRange, headers []chain.Header, logs map[invoice.Hash][]types.Log, c *addressCache,
) (map[invoice.Address]bool, error) {
	counted := slices.DeleteFunc(slices.Clone(headers), func(h chain.Header) bool { return logs[h.Hash] == nil })
	ix.countCompared(r.compared, r.last-r.first+1-uint64(len(counted)))
	found := make([][]types.Log, len(counted))
	for i, h := range counted {
		found[i] = logs[h.Hash]
		if r.compared == ComparedNode {
			ix.noteCompared(h.Hash, ComparedNode)
		}
	}
	if r.compared != ComparedNode {
		var err error
		if found, err = ix.compareLogs(ctx, n, counted, found, ix.decoder.filter()); err != nil {
			return nil, err
		}
	}
	for i, h := range counted {
		logs[h.Hash] = found[i]
	}
	return c.watched(ctx, ix.decoder.accounts(slices.Concat(found...)))
}

// leftOut handles logs of a block that a node left out and a second source holds. If there is another node to read the
// block from, they are an error; otherwise they are added to the node's logs. Logs that only another node holds are
// believed if the node's own receipts hold them. Otherwise the block does not count as compared: the audit reads it,
// and transactions that the other node proves are read again.
func (ix *Indexer) leftOut(ctx context.Context, n node, h chain.Header, told *[]types.Log, second namedLogs) (Comparison, error) {
	missing := second.logs
	if second.by == ComparedNode {
		missing = slices.DeleteFunc(slices.Clone(missing), func(l types.Log) bool { return !lacksOf(*told, []types.Log{l}) })
		held, unreturned := ix.provenBy(ctx, n, h, missing)
		if len(held) == 0 {
			return ComparedNone, ix.keepUnproven(ctx, second.other, h, unreturned)
		}
		missing = held
	}
	if ix.cfg.Pool.OtherHaving(h.Number, n.Node) != nil {
		return "", n.contradicts("left out logs of block %d, %s, that its receipts hold", h.Number, h.Hash)
	}
	all := merged(*told, missing)
	ix.cfg.Logger.Warn("node left out logs that are in the block's receipts", "chain", ix.cfg.Chain.Key,
		"node", n.String(), "block", h.Hash.String(), "logs", len(all)-len(*told))
	*told = all
	return second.by, nil
}

// provenBy returns the logs of a block that a node's receipts hold, and the logs of transactions for which the node
// returns no receipt in this block.
func (ix *Indexer) provenBy(ctx context.Context, n node, h chain.Header, logs []types.Log) (held, unreturned []types.Log) {
	returned := map[common.Hash]bool{}
	for _, l := range logs {
		if _, asked := returned[l.TxHash]; !asked {
			receipts, err := n.receipts(ctx, []common.Hash{l.TxHash})
			returned[l.TxHash] = err == nil && invoice.Hash(receipts[l.TxHash].BlockHash) == h.Hash
			if returned[l.TxHash] {
				held = append(held, selected(ix.decoder.filter(), []*chain.Receipt{receipts[l.TxHash]})...)
			}
		}
		if !returned[l.TxHash] {
			unreturned = append(unreturned, l)
		}
	}
	return held, unreturned
}

// noteCompared records how a block was compared.
func (ix *Indexer) noteCompared(block invoice.Hash, by Comparison) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.comparisons[by]++
	if by == ComparedNone {
		return
	}
	if len(ix.compared) >= maxComparedKnown {
		clear(ix.compared)
	}
	ix.compared[block] = by
}

// countCompared counts blocks near the head by the way in which they were compared. Their hashes are not known.
func (ix *Indexer) countCompared(by Comparison, blocks uint64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.comparisons[by] += blocks
}

// comparesBy returns how blocks can be compared now: with all receipts of a block, with another node, or not at all.
func (ix *Indexer) comparesBy() Comparison {
	ix.mu.Lock()
	n := ix.lastNode
	ix.mu.Unlock()
	if n == nil {
		return ComparedNone
	}
	switch {
	case ix.hasReturnedReceipts(node{n}) && ix.offersReceipts(node{n}):
		return ComparedReceipts
	case ix.otherThan(n).Node != nil:
		return ComparedNode
	}
	return ComparedNone
}
