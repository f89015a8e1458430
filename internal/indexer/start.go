package indexer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// startMargin is how much older than the first invoice a new chain's first block to read is. A clock that was set in
// the wrong time zone is wrong by up to 14 hours.
const startMargin = 24 * time.Hour

// start begins a new chain at the finalized height. Blocks above it are read next. Blocks below it become a gap, which
// begins at the configured block or when the first invoice was created: invoices can be older than the first answer of
// a node. The service's clock may have been moved since, or differ from the chain's. So that time is the older of what
// the invoice holds and what is counted back from the chain's time, with a margin. A node without a tagged block is an
// error: reading from block 0 would take years.
func (ix *Indexer) start(ctx context.Context, n node, t heads, line uint64) error {
	if tag := ix.cfg.Chain.Finality.Tag; tag != "" && t.tagged.Hash.IsZero() {
		return n.wrap(fmt.Errorf("%s knows no %s block yet, so where to begin on chain %s is open; wait until it is synced, or set a finality in blocks: %w",
			n, tag, ix.cfg.Chain.Key, chain.ErrNotFound))
	}
	from := line + 1
	if first := ix.cfg.Chain.StartBlock; first != nil {
		from = min(from, max(*first, 1)) // block 0 holds no transactions
	} else if first, ok, err := ix.cfg.Ledger.FirstInvoice(ctx, ix.cfg.Chain.Key); err != nil {
		return err
	} else if ok {
		if counted := t.head.Time.Add(first.Sub(ix.cfg.Now())); counted.Before(first) {
			first = counted
		}
		older, err := blockBefore(ctx, n, line, first.Add(-startMargin))
		if err == nil && older.Number > 0 {
			err = ix.checkStart(ctx, n, older.Header)
		}
		if err != nil {
			return err
		}
		from = older.Number + 1
	}
	headers, err := n.headers(ctx, line)
	if err != nil {
		return err
	}
	if err := ix.checkStart(ctx, n, headers[0].Header); err != nil {
		return err
	}
	ix.cfg.Logger.Info("indexing starts", "chain", ix.cfg.Chain.Key, "block", line+1, "older_from", from)
	return ix.cfg.Ledger.Start(ctx, ix.cfg.Chain.Key, headers[0].Header, from)
}

// checkStart fails unless other nodes confirm the block at which a chain begins, because that block is final from then
// on.
func (ix *Indexer) checkStart(ctx context.Context, n node, at invoice.Header) error {
	if err := ix.verifyBlock(ctx, n, at, invoice.Header{}); err != nil || ix.cfg.Chain.Quorum < 2 {
		return err
	}
	var p poll
	p.ask(ctx, ix, ix.cfg.Pool.Others(n.Node), at.Number)
	if slices.ContainsFunc(p.readings, func(r blockReading) bool { return r.block == idOf(at) }) {
		return nil
	}
	return &NoQuorumError{fmt.Sprintf("the quorum is two nodes, but none besides %s answers for block %d, where reading is to begin", n, at.Number)}
}

// blockBefore returns the newest block at or below a height that is older than a time, or block 0, of which it does not
// read the rest of the header.
func blockBefore(ctx context.Context, n node, line uint64, since time.Time) (found chain.Header, err error) {
	low, high := uint64(0), line // the answer is between low and high, both included
	for low < high {
		middle := high - (high-low)/2
		headers, err := n.headers(ctx, middle)
		if err != nil {
			return found, err
		}
		if headers[0].Time.Before(since) {
			low, found = middle, headers[0]
		} else {
			high = middle - 1
		}
	}
	return found, nil
}
