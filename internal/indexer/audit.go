package indexer

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of the audit of final blocks.
const (
	// AuditHorizon is the greatest age, by the chain's time, of a block that is still audited. If the rate limit leaves
	// older blocks unaudited, they are skipped and counted. Back-filled blocks are audited whatever their age, after
	// the others.
	AuditHorizon = 24 * time.Hour
	// auditPollInterval is the wait when all final blocks are audited.
	auditPollInterval = 10 * time.Second
	// auditRange is how many blocks are compared with one request to each of two nodes.
	auditRange = 100
	// auditStored is how many blocks one step looks up that were compared when they were read.
	auditStored = 256
	// maxAuditFailures is how often auditing a block is tried before the block is skipped.
	maxAuditFailures = 5
)

// Audit is the progress of reading the chain's final blocks a second time.
type Audit struct {
	Next, Behind uint64 // first block that is not audited, and the number of unaudited final blocks
	Older        uint64 // unaudited blocks of a back-fill
	Counted      ledger.AuditCounts
}

// auditBlocks audits final blocks until ctx ends, at the configured rate of calls.
func (ix *Indexer) auditBlocks(ctx context.Context) {
	if ix.cfg.Chain.AuditCallsPerMinute == 0 {
		return
	}
	perCall := time.Minute / time.Duration(ix.cfg.Chain.AuditCallsPerMinute)
	said := ""
	for ctx.Err() == nil {
		var calls int
		var more bool
		var err error
		ix.step(ctx, loopAudit, func(ctx context.Context) { calls, more, err = ix.auditStep(ctx) })
		pause := time.Duration(calls) * perCall
		if !more || err != nil {
			pause = max(pause, auditPollInterval)
		}
		if err != nil && ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			ix.cfg.Logger.Warn("audit of final blocks failed, will retry", "chain", ix.cfg.Chain.Key, "err", err)
		}
		clock.Sleep(ctx, pause, nil)
	}
}

// auditStep audits the next blocks. It returns how many calls it made to nodes, and whether there are more blocks to
// audit.
func (ix *Indexer) auditStep(ctx context.Context) (calls int, more bool, err error) {
	if !ix.reads() {
		return 0, false, nil
	}
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil || !cursor.Started || cursor.Halted != "" {
		return 0, false, err
	}
	audits, err := ix.cfg.Ledger.ChainAudits(ctx, ix.cfg.Chain.Key)
	if err != nil {
		return 0, false, err
	}
	ix.showAudits(audits, cursor)
	for _, a := range audits { // the new blocks first
		last := cursor.Confirmed.Number
		if a.Last != nil {
			last = min(last, *a.Last)
		}
		if gap := cursor.Gap; gap != nil && a.Next <= gap.Last && gap.Next <= last {
			last = max(gap.Next, 1) - 1 // the blocks above are read again first
		}
		if a.Next > last {
			continue
		}
		calls, err := ix.auditPart(ctx, a, last, cursor.Confirmed)
		if err != nil {
			ix.auditFailures++
			if ix.auditFailures < maxAuditFailures || ctx.Err() != nil {
				return calls, true, err
			}
			err = ix.cfg.Ledger.AdvanceAudit(ctx, ix.cfg.Chain.Key, a, a.Next+1, ledger.AuditCounts{Unverified: 1})
		}
		ix.auditFailures = 0
		return calls, true, err
	}
	return 0, false, nil
}

// showAudits writes the progress of the audits to the status.
func (ix *Indexer) showAudits(audits []ledger.ChainAudit, cursor ledger.Progress) {
	shown := &Audit{}
	for _, a := range audits {
		shown.Counted.Header += a.Counted.Header
		shown.Counted.Receipts += a.Counted.Receipts
		shown.Counted.Node += a.Counted.Node
		shown.Counted.Unverified += a.Counted.Unverified
		if a.Last == nil {
			shown.Next, shown.Behind = a.Next, max(cursor.Confirmed.Number+1, a.Next)-a.Next
		} else {
			shown.Older = max(*a.Last+1, a.Next) - a.Next
		}
	}
	ix.updateStatus(func(s *Status) { s.Audit = shown })
}

// auditPart audits the next blocks of a part, up to a final one, and returns how many calls it made.
func (ix *Indexer) auditPart(ctx context.Context, a ledger.ChainAudit, last uint64, final invoice.Header) (calls int, err error) {
	advance := func(next uint64, more ledger.AuditCounts) error {
		return ix.cfg.Ledger.AdvanceAudit(ctx, ix.cfg.Chain.Key, a, next, more)
	}
	if next, counts, err := ix.comparedBefore(ctx, a.Next, last); err != nil || next > a.Next {
		if err == nil {
			err = advance(next, counts)
		}
		return 0, err
	}
	if ix.cfg.Chain.Quorum > 1 { // two nodes read it before it was final
		return 0, advance(last+1, ledger.AuditCounts{Node: last + 1 - a.Next})
	}
	nodes := ix.cfg.Pool.Having(final.Number)
	if len(nodes) == 0 {
		return 0, errNoHealthyNode
	}
	n := node{nodes[0]}
	if err := n.ready(ctx); err != nil {
		return 0, err
	}
	headers, err := n.headers(ctx, a.Next)
	if err != nil {
		return 1, err
	}
	h := headers[0]
	if a.Part == ledger.AuditNew && h.Time.Before(final.Time.Add(-AuditHorizon)) {
		older, err := blockBefore(ctx, n, final.Number, final.Time.Add(-AuditHorizon))
		if err != nil {
			return 1, err
		}
		next := max(older.Number+1, a.Next+1)
		return 1, advance(next, ledger.AuditCounts{Unverified: next - a.Next})
	}
	calls, next, counts, err := ix.auditFrom(ctx, nodes, h, last)
	if err == nil {
		err = advance(next, counts)
	}
	return calls + 1, err
}

// auditFrom audits a final block and the blocks after it, up to last, that fit into one step. It returns the calls it
// made after the one for the header, and the next block to audit.
func (ix *Indexer) auditFrom(ctx context.Context, nodes []*chain.Node, h chain.Header, last uint64) (calls int, next uint64, counts ledger.AuditCounts, err error) {
	n := node{nodes[0]}
	switch {
	case ix.canSkipByBloom(n) && h.Excludes(ix.decoder.filter()):
		return 0, h.Number + 1, ledger.AuditCounts{Header: 1}, nil
	case len(nodes) > 1:
		next = min(last, h.Number+auditRange-1) + 1
		calls, err = ix.auditByNodes(ctx, nodes[:2], h.Number, next-1)
		return calls, next, ledger.AuditCounts{Node: next - h.Number}, err
	case !ix.offersReceipts(n) && len(ix.cfg.Pool.Nodes()) > 1: // another may be healthy soon
		return 0, h.Number, counts, errNoSecondNode
	case !ix.offersReceipts(n) && ix.hasReturnedReceipts(n): // this one may become healthy again
		return 0, h.Number + 1, ledger.AuditCounts{Unverified: 1}, nil
	case !ix.offersReceipts(n):
		return 0, last + 1, ledger.AuditCounts{Unverified: last + 1 - h.Number}, nil
	}
	return 1, h.Number + 1, ledger.AuditCounts{Receipts: 1}, ix.auditByReceipts(ctx, n, h)
}

// auditByReceipts compares a final block with all of its receipts.
func (ix *Indexer) auditByReceipts(ctx context.Context, n node, h chain.Header) error {
	logs, err := ix.logsFromBlockReceipts(ctx, n, h, ix.decoder.filter())
	if ctx.Err() == nil {
		ix.noteReceipts(n, err)
	}
	if err != nil {
		return err
	}
	return ix.requireRecorded(ctx, logs)
}

// errNoHealthyNode means that no node is healthy now.
var errNoHealthyNode = errors.New("no node is healthy")

// errNoSecondNode means that an audit needs a second node, and no other node is healthy now.
var errNoSecondNode = errors.New("the node returns no receipts of whole blocks, and no other node is healthy")

// comparedBefore returns the first block, starting at one, that was not compared when it was read. It also returns how
// the blocks below it were compared.
func (ix *Indexer) comparedBefore(ctx context.Context, from, last uint64) (next uint64, counts ledger.AuditCounts, err error) {
	headers, err := ix.cfg.Ledger.Headers(ctx, ix.cfg.Chain.Key, from, min(last, from+auditStored-1))
	if err != nil {
		return from, counts, err
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	next = from
	for _, h := range headers {
		by, ok := ix.compared[h.Hash]
		if h.Number != next || !ok {
			break
		}
		switch by {
		case ComparedReceipts:
			counts.Receipts++
		case ComparedNode:
			counts.Node++
		case ComparedHeader:
			counts.Header++
		case ComparedNone:
		}
		delete(ix.compared, h.Hash)
		next++
	}
	return next, counts, nil
}

// auditByNodes compares the logs of a range of final blocks from two nodes, one of which did not read the range first.
// It returns how many calls it made.
func (ix *Indexer) auditByNodes(ctx context.Context, nodes []*chain.Node, first, last uint64) (calls int, err error) {
	for _, p := range nodes {
		n := node{p}
		if err := n.ready(ctx); err != nil {
			return calls, err
		}
		logs, err := ix.logsInParts(ctx, n, first, last)
		calls++
		if err == nil {
			err = ix.requireRecorded(ctx, logs)
		}
		if err != nil {
			return calls, err
		}
	}
	return calls, nil
}

// requireRecorded looks in the logs of final blocks for transactions that move a token to one of our addresses or may
// refund a payment, and are not recorded. It reports them, and their blocks are read again.
func (ix *Indexer) requireRecorded(ctx context.Context, logs []types.Log) error {
	var moved []movement
	var of []types.Log
	for i := range logs {
		if m, ok := ix.decoder.movement(&logs[i]); ok && !m.amount.IsZero() {
			moved, of = append(moved, m), append(of, logs[i])
		}
	}
	required, err := ix.recordable(ctx, ix.newAddressCache(), moved, true)
	if err != nil {
		return err
	}
	blocks := map[invoice.Hash]uint64{}
	var txs []invoice.Hash
	for i := range of {
		tx := invoice.Hash(of[i].TxHash)
		if _, seen := blocks[tx]; required[i] && !seen {
			blocks[tx] = of[i].BlockNumber
			txs = append(txs, tx)
		}
	}
	recorded, err := ix.cfg.Ledger.RecordedTransactions(ctx, ix.cfg.Chain.Key, txs)
	if err != nil {
		return err
	}
	for _, tx := range txs {
		if recorded[tx] {
			continue
		}
		ix.cfg.Logger.Error("the audit found a transfer that is not recorded", "chain", ix.cfg.Chain.Key, "block", blocks[tx], "tx", tx.String())
		if err := ix.cfg.Ledger.ReportUnread(ctx, ix.cfg.Chain.Key, tx, blocks[tx], ledger.UnreadNode); err != nil {
			return err
		}
	}
	return nil
}
