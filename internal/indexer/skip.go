package indexer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits for skipping a transaction that a node names in a log and does not return.
const (
	// unreadableAfter is how long all nodes must have failed to return the transaction: a node may take seconds to
	// store a block that it has announced. A transaction for which the answers of all are too long is skipped at once.
	unreadableAfter = 30 * time.Second
	// minUnreadable is how often they must have failed.
	minUnreadable = 3
	// maxUnreadableBlocks is after how many blocks with such transactions a reading ends.
	maxUnreadableBlocks = 20
	// maxUnreadableKnown is from how many transactions on that are remembered as failing those are forgotten that are not
	// skipped, or were not for unreadableKept. A skipped one must be known until its block is recorded.
	maxUnreadableKnown = 1000
	unreadableKept     = time.Hour
)

// unreadable is a transaction of a block with a receipt or calldata that some nodes do not return.
type unreadable struct {
	block    chain.Header
	since    time.Time // of the first failure or, if it is skipped, the last time it was
	attempts int
	nodes    map[*chain.Node]bool // that failed, and whether the last answer of each was too long
	skipped  bool                 // the block is read without it
	reason   ledger.UnreadReason  // why it is skipped
	detail   string
}

// isUnreadable reports whether an error means that a node cannot return one transaction, while it may return others.
func isUnreadable(err error) bool {
	return errors.Is(err, chain.ErrNotFound) || errors.Is(err, chain.ErrResponseTooLarge)
}

// mayBeUnreadable reports whether an error may mean that a node cannot return one transaction; see node.refusedOne.
func mayBeUnreadable(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (isUnreadable(err) || chain.IsErrorAnswer(err))
}

// refusedOne returns the error of a node that did not return a transaction or its receipt. It is an ErrNotFound if the
// node answered with any error and returns the header of the transaction's block at that moment: the node works, but
// does not return this transaction.
func (n node) refusedOne(ctx context.Context, block uint64, err error) error {
	if ctx.Err() != nil || isUnreadable(err) || !chain.IsErrorAnswer(err) {
		return err
	}
	if _, failed := n.headers(ctx, block); failed != nil {
		return err
	}
	return n.wrap(fmt.Errorf("%w: %w", chain.ErrNotFound, err))
}

// readEach calls read for each transaction of a block. It leaves out a transaction that the node cannot return once the
// transaction is skipped; until then, it returns the error of the first one.
func (ix *Indexer) readEach(ctx context.Context, n node, h chain.Header, txs []common.Hash, read func(common.Hash) error) error {
	var first error
	for _, tx := range txs {
		err := read(tx)
		if err == nil {
			ix.forgetUnreadable(tx)
			continue
		}
		if err = n.refusedOne(ctx, h.Number, err); !isUnreadable(err) || ctx.Err() != nil {
			return err
		}
		skip, failed := ix.skipUnreadable(ctx, n, h, tx, err)
		if failed != nil {
			return failed
		}
		if !skip && first == nil {
			first = fmt.Errorf("transaction %s in block %d: %w", tx, h.Number, err)
		}
	}
	return n.wrap(first)
}

// skipUnreadable records that a node cannot return a transaction. It reports whether to read the block without it,
// because the answers of all nodes are too long, or all have failed for unreadableAfter.
func (ix *Indexer) skipUnreadable(ctx context.Context, n node, h chain.Header, tx common.Hash, failure error) (bool, error) {
	usable := ix.cfg.Pool.Usable()
	ix.mu.Lock()
	u := ix.unreadable[tx]
	if u == nil || u.block.Hash != h.Hash {
		if len(ix.unreadable) >= maxUnreadableKnown {
			maps.DeleteFunc(ix.unreadable, func(_ common.Hash, u *unreadable) bool {
				return !u.skipped || ix.cfg.Now().Sub(u.since) >= unreadableKept
			})
		}
		u = &unreadable{block: h, since: ix.cfg.Now(), nodes: map[*chain.Node]bool{}}
		ix.unreadable[tx] = u
	}
	u.attempts++
	u.nodes[n.Node], u.detail = errors.Is(failure, chain.ErrResponseTooLarge), failure.Error()
	reason := ledger.UnreadUnreadable
	ripe := u.attempts >= minUnreadable && ix.cfg.Now().Sub(u.since) >= unreadableAfter
	if !slices.ContainsFunc(usable, func(p *chain.Node) bool { return !u.nodes[p] }) {
		// Anyone can make a receipt that is longer than the client reads, and the nodes are not at fault.
		reason, ripe = ledger.UnreadOversized, true
	}
	for _, p := range usable {
		_, failed := u.nodes[p]
		ripe = ripe && failed
	}
	known := u.skipped
	if known {
		u.since = ix.cfg.Now()
	}
	ix.mu.Unlock()
	if known || !ripe {
		return known, nil
	}
	if err := ix.cfg.Ledger.CanSkipTransaction(ctx, ix.cfg.Chain.Key, reason); err != nil {
		return false, err
	}
	ix.mu.Lock()
	u.skipped, u.reason, u.since = true, reason, ix.cfg.Now()
	ix.mu.Unlock()
	ix.cfg.Logger.Error("transaction set aside, since no node returns it", "chain", ix.cfg.Chain.Key,
		"node", n.String(), "block", h.Number, "tx", tx.String(), "err", failure)
	return true, nil
}

// isOversized reports whether a transaction of a block was skipped because it is too long. It is not requested again with
// its block.
func (ix *Indexer) isOversized(h chain.Header, tx common.Hash) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	u := ix.unreadable[tx]
	is := u != nil && u.skipped && u.reason == ledger.UnreadOversized && u.block.Hash == h.Hash
	if is {
		u.since = ix.cfg.Now()
	}
	return is
}

func (ix *Indexer) forgetUnreadable(txs ...common.Hash) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if len(ix.unreadable) == 0 {
		return
	}
	for _, tx := range txs {
		delete(ix.unreadable, tx)
	}
}

// skippedIn returns the skipped transactions of a block.
func (ix *Indexer) skippedIn(h invoice.Header) (all []ledger.UnreadTransaction) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for tx, u := range maps.All(ix.unreadable) {
		if u.skipped && u.block.Hash == h.Hash {
			all = append(all, ledger.UnreadTransaction{
				TxHash: invoice.Hash(tx), Block: h.Number, Reason: u.reason, Detail: u.detail, Attempts: 1,
			})
		}
	}
	return all
}
