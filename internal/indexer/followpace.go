package indexer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of how often the nodes of a chain are called.
const (
	// headEvery is how often, in poll intervals, the chain's head is requested if blocks are faster than the poll
	// interval. In between, one call asks only for new logs.
	headEvery = 6
	// maxTogether is how many blocks one call reads near the head. Further behind, catchUp reads final blocks.
	maxTogether = 1024
	// minTimed is how many blocks it takes to measure the block time, and maxTimed is when the measurement starts anew.
	minTimed, maxTimed = 16, 256
	// standbyPatience is how long the replica that reads a chain may record no block before another replica asks a node
	// for the head.
	standbyPatience = 15 * time.Second
)

// pace is how long the indexer waits until it looks at the chain again.
type pace int

const (
	paceEach     pace = iota // the poll interval; each block is read by its hash
	paceTogether             // blocks are faster than the poll interval; several are read by one call
	paceIdle                 // the idle interval, because no event is awaited
)

// blockTimes measures the block time by the blocks' timestamps.
type blockTimes struct {
	from  chain.Header  // zero before the first
	every time.Duration // 0 while it is unknown
}

func (b *blockTimes) observe(h chain.Header) {
	blocks := h.Number - b.from.Number
	switch {
	case b.from.Time.IsZero() || h.Number < b.from.Number:
		*b = blockTimes{from: h}
	case blocks >= minTimed:
		b.every = h.Time.Sub(b.from.Time) / time.Duration(blocks)
		if blocks >= maxTimed {
			b.from = h
		}
	}
}

// pace returns how long to wait now.
func (ix *Indexer) pace(ctx context.Context) pace {
	if ix.cfg.Awaited == nil {
		return paceEach
	}
	switch awaited, err := ix.cfg.Awaited(ctx); {
	case err != nil: // the next sync reports the error
	case !awaited.Any && ix.cfg.IdleInterval > ix.cfg.PollInterval:
		return paceIdle
	case ix.blockTimes.every == 0 || ix.blockTimes.every >= ix.cfg.PollInterval:
	case !awaited.Unconfirmed || ix.cfg.Chain.Finality.Tag != "":
		return paceTogether // payments that wait only for a number of blocks are confirmed within seconds
	}
	return paceEach
}

// isIdle reports whether the ledger awaits no event.
func (ix *Indexer) isIdle(ctx context.Context) bool {
	if ix.cfg.Awaited == nil || ix.cfg.IdleInterval <= ix.cfg.PollInterval {
		return false
	}
	awaited, err := ix.cfg.Awaited(ctx)
	return err == nil && !awaited.Any
}

// rest waits until it is time to look at the chain again: for the poll interval, or for longer if the pace allows it
// and no news concerns the ledger.
func (ix *Indexer) rest(ctx context.Context) {
	before := paceEach
	for turn := 1; ; turn++ {
		standsBy := !ix.reads()
		p := paceEach
		if !standsBy {
			p = ix.pace(ctx)
		}
		if turn > 1 && p != before {
			return // an event is awaited now
		}
		before, ix.together = p, p != paceEach
		if woken := ix.sleep(ctx, ix.cfg.PollInterval, ix.wakeups); woken || ctx.Err() != nil {
			return
		}
		waited := time.Duration(turn) * ix.cfg.PollInterval
		if ix.isDue(ctx, p, standsBy, turn, waited) {
			return
		}
	}
}

// isDue reports whether to look at the chain again after a number of poll intervals.
func (ix *Indexer) isDue(ctx context.Context, p pace, standsBy bool, turn int, waited time.Duration) bool {
	switch {
	case standsBy:
		return ix.reads() || !ix.followsLedger(ctx, waited)
	case p == paceIdle && waited < ix.cfg.IdleInterval:
		ix.updateStatus(func(s *Status) { s.Succeeded = ix.cfg.Now() })
		return false
	}
	return p != paceTogether || turn >= headEvery || ix.hasMoreThanRange(waited) || ix.hasNews(ctx)
}

// sleepOrWake waits for d, and reports whether a wake-up ended the wait.
func sleepOrWake(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
		return true
	case <-ctx.Done():
	}
	return false
}

// followsLedger takes over what another replica recorded, without calling a node. It returns false when a node must be
// asked for the head, because the other replica has recorded no block for longer than expected.
func (ix *Indexer) followsLedger(ctx context.Context, waited time.Duration) bool {
	cursor, err := ix.cfg.Ledger.Cursor(ctx, ix.cfg.Chain.Key)
	if err != nil || !cursor.Started || ix.others.since.IsZero() {
		return false
	}
	if cursor.Indexed.Hash != ix.others.at {
		if ix.adopt(ctx, cursor) != nil {
			return false
		}
		ix.others = othersProgress{cursor.Indexed.Hash, ix.cfg.Now()}
		ix.updateStatus(func(s *Status) {
			s.at(ix.tracker)
			s.Head = max(s.Head, cursor.Indexed.Number)
		})
	}
	ix.updateStatus(func(s *Status) { s.Succeeded = ix.cfg.Now() })
	patience := standbyPatience
	if ix.isIdle(ctx) {
		patience += ix.cfg.IdleInterval
	}
	return waited < standbyPatience || ix.cfg.Now().Sub(ix.others.since) < patience
}

// hasMoreThanRange reports whether the chain, by its block time, has more new blocks than the node allows in a range.
// They are then read in several ranges, or one by one.
func (ix *Indexer) hasMoreThanRange(waited time.Duration) bool {
	limit := ix.lastNode.Limit(chain.KindRange).Size()
	return limit <= 1 || uint64(waited/ix.blockTimes.every) > limit
}

// hasNews reports whether blocks above the newest indexed one concern the ledger. It returns true after a failure, so
// that the next sync reports the failure.
func (ix *Indexer) hasNews(ctx context.Context) (found bool) {
	ix.step(ctx, loopNews, func(ctx context.Context) {
		logs, err := ix.lastNode.LogsFrom(ctx, ix.tracker.Tip().Number+1, ix.decoder.filter())
		if err != nil {
			found = true
			return
		}
		watched, err := ix.newAddressCache().watched(ctx, ix.decoder.accounts(logs))
		found = err != nil || len(ix.decoder.touching(logs, watched)) > 0 || len(ix.decoder.registryEvents(logs)) > 0
	})
	return found
}

// logsAndEndsCalls is how many calls Client.LogsAndEnds makes.
const logsAndEndsCalls = 3

// errNotTogether means that a node does not accept the calls of logsAndEnds in one request.
var errNotTogether = errors.New("the node does not take the logs of a range together with its headers")

// logsAndEnds returns the logs of a range with its first and last header, with one request. The error is errNotTogether
// if it takes several requests: another server of the node may answer the later ones, and the headers would not prove
// that the server with the logs has the blocks.
func (n node) logsAndEnds(ctx context.Context, first, last uint64, f chain.LogFilter) (logs []types.Log, ends [2]chain.Header, err error) {
	if !n.TakesBatch(chain.KindHeads, logsAndEndsCalls) {
		return nil, ends, n.wrap(errNotTogether)
	}
	if logs, ends, err = n.LogsAndEnds(ctx, first, last, f); err != nil {
		if !n.TakesBatch(chain.KindHeads, logsAndEndsCalls) { // the node has just shown it
			err = errNotTogether
		}
		return nil, ends, &nodeError{node: n.Node, err: err, byRange: true}
	}
	return logs, ends, nil
}

// readTogether reads the blocks above the newest indexed one, up to head, with one call for their logs, and records
// them. It checks the parent of the first block, that the server that answered has the last block, and that the blocks
// with logs of interest are canonical. done is false if the blocks must be read one by one instead. A node that
// failed lately is not believed about several blocks.
func (ix *Indexer) readTogether(ctx context.Context, n node, head chain.Header) (done bool, err error) {
	tip := ix.tracker.Tip()
	if !ix.together || head.Number < tip.Number+2 || head.Number > tip.Number+maxTogether {
		return false, nil
	}
	if !slices.Contains(ix.cfg.Pool.Having(head.Number), n.Node) {
		return false, nil // it may leave out logs, which shows only block by block
	}
	limit := n.Limit(chain.KindRange)
	size := limit.Next()
	if size <= 1 {
		limit.Answered(size) // a block was read by hash instead: two are tried again later
		return false, nil
	}
	first, last := tip.Number+1, min(head.Number, tip.Number+size)
	logs, ends, err := n.logsAndEnds(ctx, first, last, ix.decoder.filter())
	if err != nil {
		return false, ctx.Err() // the node may answer for each block
	}
	if ends[0].Parent != tip.Hash || ends[0].Time.Before(tip.Time) || last == head.Number && ends[1].Hash != head.Hash {
		return false, nil // a reorg, or a wrong time
	}
	r := blockRange{first: first, last: last}
	var more bool
	if r.compared, more = ix.compareRange(ctx, n, r, tip.Hash, ends[1].Hash, logs); more {
		return false, nil // reading block by block shows which node is right
	}
	blocks, err := ix.blocksInRange(ctx, n, logs, r, ends[:], ix.newAddressCache())
	if err != nil {
		return false, err
	}
	grow(limit, last-first+1, len(logs))
	return true, ix.observe(ctx, n, blocks)
}

// refreshOrCheck keeps the heads of all nodes known. On an idle chain, and on a replica that does not read the chain,
// it only checks nodes that were not checked yet.
func (ix *Indexer) refreshOrCheck(ctx context.Context) {
	if ix.reads() && !ix.isIdle(ctx) {
		ix.cfg.Pool.RefreshHeads(ctx)
		return
	}
	for _, p := range ix.cfg.Pool.Usable() {
		if err := p.Ready(ctx); err != nil {
			p.ReportFailure(err)
		}
	}
}

// Awaited is what the ledger awaits on a chain.
type Awaited = ledger.Awaited

const (
	// leastRecorded and mostRecorded bound the transfers and events of final blocks that are recorded in one step. A
	// block is not divided.
	leastRecorded, mostRecorded = 50, 6400
	// recordTurn is how long a step may take while creates wait for it, because on SQLite it occupies the only writer.
	// recordIdleTurn is the time while no create waits; a first create may have to wait that long.
	recordTurn, recordIdleTurn = 20 * time.Millisecond, 200 * time.Millisecond
	// worthDoubling is how much faster steps of twice the size must be for the size to count as too small.
	worthDoubling = 1.6
)

// recordPace is how many transfers and events of final blocks are recorded in one step, so that creates wait little for
// it. It begins with few and doubles them while that makes recording faster, because a transaction takes seconds if the
// database is far away.
type recordPace struct {
	size    int
	warm    bool    // the first step, which prepares statements, is over
	least   int     // lower bound of the size: doubling it was not faster
	learned bool    // least is known
	rate    float64 // items per second of the step before, until least is known
}

func newRecordPace() *recordPace { return &recordPace{size: leastRecorded, least: leastRecorded} }

// sizeOf returns how many transfers and events blocks have.
func sizeOf(blocks ...ledger.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Transfers) + len(b.Registry)
	}
	return n
}

// split returns the first of the blocks, at least one, which are recorded in one step, and the others. The first of the
// others is the child of the block before it, as the ledger requires of new blocks.
func (p *recordPace) split(blocks []ledger.Block) (next, rest []ledger.Block) {
	n := 0
	for i, b := range blocks {
		if n += sizeOf(b); n > p.size && i > 0 && b.Number == blocks[i-1].Number+1 {
			return blocks[:i:i], blocks[i:]
		}
	}
	return blocks, nil
}

// recorded adapts the pace to the number of items recorded, the time it took, and whether creates waited then.
func (p *recordPace) recorded(n int, took time.Duration, waited bool) {
	turn := recordIdleTurn
	if waited {
		turn = recordTurn
	}
	if n < p.size/2 && took <= turn {
		return // a few items do not predict many
	}
	rate := float64(n) / max(took, time.Microsecond).Seconds()
	if !p.warm {
		p.warm = true
		return
	}
	if !p.learned && n >= p.size/2 {
		if p.rate == 0 || rate >= worthDoubling*p.rate {
			p.least, p.rate = p.size, rate
			p.size = min(2*p.size, mostRecorded)
			p.learned = p.least == mostRecorded
			return
		}
		p.learned = true
	}
	p.size = min(max(int(min(rate*turn.Seconds(), mostRecorded)), p.least), 2*p.size, mostRecorded)
}
