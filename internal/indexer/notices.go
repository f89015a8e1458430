package indexer

import (
	"context"
	"time"
)

// Limits of following notices of transfers.
const (
	// noticeGrace is how long a notice waits for the payment that it announces.
	noticeGrace = 5 * time.Minute
	// noticeMaxAge is the greatest age of a notice that is followed after a start.
	noticeMaxAge = time.Hour
	// noticeWindow is how long before the notice the transfer may have been mined.
	noticeWindow = 30 * time.Minute
	// maxNoticeBlocks bounds the blocks that are compared because of notices.
	maxNoticeBlocks = 2000
)

// followNotices compares the blocks around a notice if its transfer is not recorded noticeGrace after the notice was
// received. It uses the logs of two nodes, or reads the only node's logs again. A notice names no transaction, so it
// compares all blocks that can hold the transfer. If it finds a transfer that is not recorded, the transfer's block is
// read again.
func (ix *Indexer) followNotices(ctx context.Context) error {
	before := ix.cfg.Now().Add(-noticeGrace)
	from := ix.noticesSeen
	if oldest := before.Add(-noticeMaxAge); from.Before(oldest) {
		from = oldest
	}
	at, err := ix.cfg.Ledger.UnlinkedNotices(ctx, ix.cfg.Chain.Key, from, before)
	if err != nil || len(at) == 0 {
		return err
	}
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil || !cursor.Started || cursor.Halted != "" {
		return err
	}
	last := cursor.Indexed.Number
	nodes := ix.cfg.Pool.Having(last)
	if len(nodes) == 0 {
		return errNoHealthyNode
	}
	// Use the chain's time: only the rate of this machine's clock is trusted.
	age := ix.cfg.Now().Sub(at[0]) + noticeWindow
	older, err := blockBefore(ctx, node{nodes[0]}, last, cursor.Indexed.Time.Add(-age))
	if err != nil {
		return err
	}
	first := max(older.Number+1, last+1-min(last, maxNoticeBlocks))
	for ; first <= last; first += auditRange {
		if _, err := ix.auditByNodes(ctx, nodes[:min(len(nodes), 2)], first, min(last, first+auditRange-1)); err != nil {
			return err
		}
	}
	ix.noticesSeen = before
	return nil
}
