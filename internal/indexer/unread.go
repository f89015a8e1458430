package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of reading unrecorded transactions.
const (
	// unreadPollInterval is the time between two checks for such transactions.
	unreadPollInterval = 5 * time.Second
	// maxUnreadAtOnce is how many of them are read before the next check.
	maxUnreadAtOnce = 16
	// oversizedPause is how long no oversized ones are read after one that still is: each answer takes maxAnswerMiB from
	// each node.
	oversizedPause = time.Minute
)

// readUnreadTransactions reads unrecorded transactions again until ctx ends.
func (ix *Indexer) readUnreadTransactions(ctx context.Context) {
	said := ""
	for ctx.Err() == nil {
		var err error
		ix.step(ctx, loopUnread, func(ctx context.Context) { err = ix.readUnread(ctx) })
		if ctx.Err() == nil && err != nil && err.Error() != said {
			said = err.Error()
			ix.cfg.Logger.Warn("unread transactions not read, will retry", "chain", ix.cfg.Chain.Key, "err", err)
		}
		clock.Sleep(ctx, unreadPollInterval, ix.unreadSeen)
	}
}

// readUnread reads the transactions that are due.
func (ix *Indexer) readUnread(ctx context.Context) error {
	if !ix.reads() {
		return nil
	}
	isPaused := func() bool { return ix.cfg.Now().Before(ix.oversizedFrom) }
	due, err := ix.cfg.Ledger.DueUnread(ctx, ix.cfg.Chain.Key, maxUnreadAtOnce, !isPaused())
	if err != nil {
		return err
	}
	for _, u := range due {
		if u.Reason == ledger.UnreadOversized && isPaused() {
			continue
		}
		if err := ix.retryUnread(ctx, u); err != nil {
			return err
		}
	}
	if err := ix.followNotices(ctx); err != nil {
		return err
	}
	counts, err := ix.cfg.Ledger.CountUnread(ctx, ix.cfg.Chain.Key)
	if err == nil {
		ix.updateStatus(func(s *Status) { s.Unread = counts })
	}
	return err
}

// retryUnread reads a transaction again. It postpones one that no node returns, and forgets one that is not on the chain.
func (ix *Indexer) retryUnread(ctx context.Context, u ledger.UnreadTransaction) error {
	err := ix.readAgain(ctx, u)
	if errors.Is(err, chain.ErrResponseTooLarge) {
		ix.oversizedFrom = ix.cfg.Now().Add(oversizedPause)
	}
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	switch dropped, failed := ix.isDropped(ctx, u); {
	case failed != nil:
		return failed
	case dropped:
		return ix.cfg.Ledger.ForgetUnread(ctx, ix.cfg.Chain.Key, u.TxHash)
	}
	return ix.cfg.Ledger.PostponeUnread(ctx, ix.cfg.Chain.Key, u, err.Error())
}

// isDropped reports whether a transaction is on no node's chain: its block is final, and all nodes answer, have that height
// and no receipt of it. Mined again, it is read with its block. One that its block named is not dropped.
func (ix *Indexer) isDropped(ctx context.Context, u ledger.UnreadTransaction) (bool, error) {
	if u.Reason.IsOfBlock() {
		return false, nil
	}
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil || u.Block > cursor.Confirmed.Number {
		return false, err
	}
	for _, p := range ix.cfg.Pool.Nodes() {
		lacks := false
		_ = ix.consult(ctx, node{p}, func(ctx context.Context) error { // logged there; a node that does not answer shows nothing
			_, err := (node{p}).receipts(ctx, []common.Hash{common.Hash(u.TxHash)})
			if lacks = errors.Is(err, chain.ErrNotFound) && !chain.IsErrorAnswer(err); lacks {
				_, err = (node{p}).headers(ctx, u.Block)
				lacks = err == nil
			}
			return err
		})
		if !lacks {
			return false, ctx.Err()
		}
	}
	return true, nil
}

// readAgain reads the block of an unread transaction, if possible from another node than the first one, and records its
// contents. Nodes with logs that lack a part of it are quarantined. If all nodes agree that the transaction moves no
// money from or to our addresses, it counts as read.
func (ix *Indexer) readAgain(ctx context.Context, u ledger.UnreadTransaction) error {
	var found *rereadBlock
	var failed error
	err := ix.try(ctx, 1, func(n node) error {
		b, err := ix.readBlockOf(ctx, n, u)
		if err != nil {
			failed = err
			return err
		}
		if found = b; !b.holds(u.TxHash) {
			return n.wrap(errNothingMoved)
		}
		return nil
	})
	if err != nil && (failed != nil || !errors.Is(err, errNothingMoved)) {
		return cmp.Or(failed, err)
	}
	if err := ix.cfg.Ledger.Supplement(ctx, ix.cfg.Chain.Key, found.Block, found.above, u.TxHash); err != nil || !found.holds(u.TxHash) {
		return err
	}
	ix.cfg.Logger.Warn("transaction was not recorded with its block, and is now", "chain", ix.cfg.Chain.Key,
		"node", found.node.String(), "block", found.Number, "tx", u.TxHash.String(), "reason", string(u.Reason))
	ix.quarantineOmitters(ctx, found)
	return nil
}

// errNothingMoved means that a transaction moves no token from or to an address of ours.
var errNothingMoved = fmt.Errorf("the transaction moves nothing from or to an address of the service: %w", chain.ErrNotFound)

// rereadBlock is a block that was read by its receipts, with the logs in them.
type rereadBlock struct {
	ledger.Block
	node  node
	logs  []types.Log
	above invoice.Header // newest indexed block, if the node's chain has both; else zero
}

// holds reports whether a transfer of a transaction is among the block's.
func (b *rereadBlock) holds(tx invoice.Hash) bool {
	return slices.ContainsFunc(b.Transfers, func(t invoice.Transfer) bool { return t.TxHash == tx })
}

// readBlockOf reads the block of a transaction by its receipts, from one node.
func (ix *Indexer) readBlockOf(ctx context.Context, n node, u ledger.UnreadTransaction) (*rereadBlock, error) {
	if err := n.ready(ctx); err != nil {
		return nil, err
	}
	receipts, err := n.receipts(ctx, []common.Hash{common.Hash(u.TxHash)})
	if err != nil {
		return nil, n.refusedOne(ctx, u.Block, err)
	}
	ix.forgetUnreadable(common.Hash(u.TxHash))
	r := receipts[common.Hash(u.TxHash)]
	h, above, err := ix.headerBelowTip(ctx, n, uint64(r.BlockNumber))
	if err != nil {
		return nil, err
	}
	if invoice.Hash(r.BlockHash) != h.Hash {
		return nil, n.wrap(errReplaced)
	}
	b, err := ix.readByReceipts(ctx, n, h, r)
	if err != nil {
		return nil, err
	}
	if b.above = above; ix.cfg.Chain.Quorum < 2 {
		return b, nil
	}
	return b, ix.requireSecond(ctx, reading{n, []ledger.Block{b.Block}}, blockRange{first: h.Number, last: h.Number}, invoice.Header{}, ix.newAddressCache())
}

// headerBelowTip returns the header of a block, and the newest indexed block if the node's chain has both; otherwise
// above is zero.
func (ix *Indexer) headerBelowTip(ctx context.Context, n node, block uint64) (h chain.Header, above invoice.Header, err error) {
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return h, above, err
	}
	if cursor.Confirmed.Number < block && block < cursor.Indexed.Number {
		headers, err := n.headers(ctx, block, cursor.Indexed.Number)
		if err == nil && headers[1].Hash == cursor.Indexed.Hash {
			above = cursor.Indexed
		}
		if err == nil || ctx.Err() != nil {
			return append(headers, chain.Header{})[0], above, err
		}
	}
	headers, err := n.headers(ctx, block)
	if err != nil {
		return h, above, err
	}
	return headers[0], above, nil
}

// readByReceipts reads a block by all of its receipts. If the node does not return these, it uses the block's logs and
// the logs of the given receipts.
func (ix *Indexer) readByReceipts(ctx context.Context, n node, h chain.Header, known ...*chain.Receipt) (*rereadBlock, error) {
	filter := ix.decoder.filter()
	logs, err := ix.logsFromBlockReceipts(ctx, n, h, filter)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		var told [][]types.Log
		if told, err = n.logsOfBlocks(ctx, []invoice.Hash{h.Hash}, filter); err != nil {
			return nil, err
		}
		logs = told[0]
	}
	logs = merged(logs, selected(filter, known))
	watched, err := ix.newAddressCache().watched(ctx, ix.decoder.accounts(logs))
	if err != nil {
		return nil, err
	}
	blocks, err := ix.blocks(ctx, n, []chain.Header{h}, map[invoice.Hash][]types.Log{h.Hash: logs}, watched)
	if err != nil {
		return nil, err
	}
	b := &rereadBlock{Block: blocks[0], node: n, logs: logs}
	for _, r := range known {
		if i := slices.IndexFunc(b.Unread, func(u ledger.UnreadTransaction) bool { return u.TxHash == invoice.Hash(r.TxHash) }); i >= 0 {
			return nil, n.wrap(fmt.Errorf("%s: %w", b.Unread[i].Detail, chain.ErrNotFound))
		}
	}
	return b, nil
}

// merged returns the logs of a block that either list has, in their order.
func merged(logs, more []types.Log) []types.Log {
	all := slices.Concat(logs, more)
	slices.SortStableFunc(all, func(a, b types.Log) int { return cmp.Compare(a.Index, b.Index) })
	return slices.CompactFunc(all, func(a, b types.Log) bool { return a.Index == b.Index && a.TxHash == b.TxHash })
}

// lacksOf reports whether one of the logs is missing in another list of them.
func lacksOf(told, logs []types.Log) bool { return len(merged(told, logs)) > len(merged(told, nil)) }

// quarantineOmitters asks all nodes for the logs of a block, and quarantines those that leave one out.
func (ix *Indexer) quarantineOmitters(ctx context.Context, b *rereadBlock) {
	for _, p := range ix.cfg.Pool.Nodes() {
		n := node{p}
		_ = ix.consult(ctx, n, func(ctx context.Context) error { // logged there; a node that does not answer is not judged
			told, err := n.logsOfBlocks(ctx, []invoice.Hash{b.Hash}, ix.decoder.filter())
			if err == nil && lacksOf(told[0], b.logs) {
				err = n.contradicts("left out a log of block %d that a receipt of %s holds", b.Number, b.node)
			}
			return err
		})
	}
}

// reportUnrecorded looks in receipts for unrecorded transfers to our addresses and possible refunds, and reports their
// transactions.
func (ix *Indexer) reportUnrecorded(ctx context.Context, receipts map[common.Hash]*chain.Receipt, recorded []invoice.Transfer) error {
	type place struct {
		tx      invoice.Hash
		ordinal int
	}
	known := make(map[place]bool, len(recorded))
	for _, t := range recorded {
		known[place{t.TxHash, t.Ordinal}] = true
	}
	var moved []movement
	var of []common.Hash
	for hash, r := range receipts {
		for _, l := range ix.decoder.locate(r.Logs) {
			if !known[place{invoice.Hash(hash), l.ordinal}] && !l.amount.IsZero() {
				moved, of = append(moved, l.movement), append(of, hash)
			}
		}
	}
	lacks, err := ix.recordable(ctx, ix.newAddressCache(), moved, true)
	reported := make(map[common.Hash]bool)
	for i, hash := range of {
		if err == nil && lacks[i] && !reported[hash] {
			reported[hash] = true
			err = ix.cfg.Ledger.ReportUnread(ctx, ix.cfg.Chain.Key, invoice.Hash(hash), uint64(receipts[hash].BlockNumber), ledger.UnreadReceipt)
		}
	}
	return err
}

// errIncomplete means that a node's receipts of a block do not match the block's header: the node
// lost some, or has not stored them yet.
var errIncomplete = errors.New("the receipts are not those of the block's header")

// blockReceipts returns all receipts of a block with one call. The error is errIncomplete if some are missing.
func (ix *Indexer) blockReceipts(ctx context.Context, n node, h chain.Header) ([]*chain.Receipt, error) {
	receipts, err := n.BlockReceipts(ctx, h.Hash)
	if err != nil {
		return nil, n.wrap(err)
	}
	return receipts, ix.checkComplete(n, h, receipts)
}

// checkComplete fails when a block's receipts are incomplete. Each transaction has one receipt, and the block's bloom
// filter is made of their logs. Logs that are missing in the filter are a failure only if the chain's filters are known
// to hold every log.
func (ix *Indexer) checkComplete(n node, h chain.Header, receipts []*chain.Receipt) error {
	if h.Txs != chain.UnknownTxs && len(receipts) != h.Txs {
		return n.incomplete(h, "%d receipts, and the block has %d transactions", len(receipts), h.Txs)
	}
	seen := make(map[common.Hash]bool, len(receipts))
	var held types.Bloom
	for _, r := range receipts {
		if seen[r.TxHash] {
			return n.incomplete(h, "the receipt of transaction %s twice", r.TxHash)
		}
		seen[r.TxHash] = true
		for i := range r.Logs {
			held.Add(r.Logs[i].Address[:])
			for _, topic := range r.Logs[i].Topics {
				held.Add(topic[:])
			}
		}
	}
	if !h.HasBloom() || h.Bloom == (types.Bloom{}) || !ix.cfg.Chain.FullBloom && ix.blooms(n) != BloomsTrue {
		return nil
	}
	for i, bits := range h.Bloom {
		if bits&^held[i] != 0 || ix.cfg.Chain.FullBloom && bits != held[i] {
			return n.incomplete(h, "receipts whose logs do not make the block's bloom filter")
		}
	}
	return nil
}

// incomplete returns the error for receipts that do not match a header. The node is at fault: another of its servers
// may have all receipts.
func (n node) incomplete(h chain.Header, format string, args ...any) error {
	return n.wrap(fmt.Errorf("%s returned of block %d %s: %w", n, h.Number, fmt.Sprintf(format, args...), errIncomplete))
}
