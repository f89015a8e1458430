package indexer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// Limits of an Indexer.
const (
	// DefaultPollInterval is how often the head is requested if no interval is configured.
	DefaultPollInterval = time.Second
	// firstBackoff and maxBackoff are the first and the longest wait after a failed round. The wait doubles in between,
	// plus or minus a fifth.
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// refreshHeadsEvery is how often a node that gets no other requests is asked for its head.
	refreshHeadsEvery = 15 * time.Second
	// haltedPollInterval is how often the indexer checks whether a halted chain was resumed.
	haltedPollInterval = 5 * time.Second
	// maxBehind is how long the heads of all nodes may be below the newest indexed block before a sync fails. The
	// backends of one node differ for a while.
	maxBehind = 30 * time.Second
	// maxLostRaces is how many syncs in a row may lose to another replica before the indexer waits as after a failure.
	maxLostRaces = 3
)

// Config configures an Indexer. Chain, Pool, Ledger, Logger, Now and Jitter are required.
type Config struct {
	Chain chain.Chain
	// Pool holds the chain's nodes. A sync uses one node from start to end; after a failure the next node is used.
	Pool   *chain.Pool
	Ledger Ledger
	Logger *slog.Logger
	Now    func() time.Time
	// Jitter returns a number in [0,1), to spread out retries.
	Jitter func() float64
	// PollInterval is the wait between two syncs if no event wakes the indexer; 0 means DefaultPollInterval.
	PollInterval time.Duration
	// Awaited returns the events that the ledger awaits on the chain. Without the function the chain is always read at
	// full pace. While no event is awaited, the chain is read every IdleInterval; 0 means that it is never read less
	// often.
	Awaited      func(ctx context.Context) (Awaited, error)
	IdleInterval time.Duration
	// Others are the keys of the service's other chains. Senior are the chains that keep running if two configured
	// chains are the same chain.
	Others, Senior []string
	// Reads reports whether this replica should read the chain; nil means always. A replica that does not read follows
	// the progress of the one that does. If two replicas read, the ledger's cursor prevents both from recording one
	// block.
	Reads func() bool
	// OnSync, if set, is called with the status after each sync.
	OnSync func(Status)
	// Watchdog watches the tasks in progress; if it is nil, the indexer makes one.
	Watchdog *clock.Watchdog
}

// Status is a snapshot of an Indexer's work.
type Status struct {
	ChainKey    string
	Reading     bool      // by this replica
	Source      string    // the node that was asked last
	Head        uint64    // of Source, as last seen
	Indexed     uint64    // newest block read
	IndexedTime time.Time // time of that block
	Confirmed   uint64    // newest final block
	Succeeded   time.Time // end of the last successful sync; zero before it
	Error       string    // of the last sync; empty if it succeeded
	Halted      string    // why the chain is halted; empty unless it is
	CatchUp     *Progress // of reading up to the finalized height; nil when it is near
	Backfill    *Progress // of filling the gap of older blocks; nil without one
	Blooms      Blooms    // state of the bloom filters in Source's headers
	// Skew is how far this machine's clock is ahead of the time of the chain's new blocks; nil while it is unknown.
	// Skewed reports whether that is too far.
	Skew   *time.Duration
	Skewed bool
	// Comparison is how the logs of new blocks can be compared now. Compared counts blocks by the way in which they
	// were compared.
	Comparison Comparison
	Compared   map[Comparison]uint64
	Audit      *Audit // of final blocks; nil before the first audit
	// Unread counts the chain's transactions that are not recorded and wait to be read again.
	Unread   map[ledger.UnreadReason]int
	Restarts uint64 // how often the indexer was replaced because it made no progress
}

// at sets how far the chain is read.
func (s *Status) at(t *Tracker) {
	tip := t.Tip()
	s.Indexed, s.IndexedTime, s.Confirmed = tip.Number, tip.Time, t.Final().Number
}

// HaltedError means that the chain is not read any further, because continuing could undo final payments. A person must
// judge the case and resume the chain.
type HaltedError struct {
	ChainKey string
	Reason   string
}

// Error names the chain and the reason.
func (e *HaltedError) Error() string {
	return fmt.Sprintf("indexing of chain %s is halted: %s", e.ChainKey, e.Reason)
}

// othersProgress is the newest block that another replica has read, and when it was first seen.
type othersProgress struct {
	at    invoice.Hash
	since time.Time
}

// Indexer reads one chain into the ledger.
type Indexer struct {
	cfg     Config
	decoder decoder
	wakeups chan struct{}

	gapSeen     chan struct{} // wakes the filling of the gap
	unreadSeen  chan struct{} // wakes the reading of unread transactions
	catchup     *meter
	backfill    *meter
	maxInFlight int // parts of a span that are requested in parallel

	// The fields below belong to the goroutine of Run.
	tracker        *Tracker // mirrors the ledger's cursor; nil before the first sync
	revision       int64    // revision of that cursor: a block may have been added below its newest one
	skew           skew
	blockTimes     blockTimes
	together       bool                    // one call reads several blocks
	lastSynced     heads                   // at the last sync that did all its work
	lostRaces      int                     // number of consecutive syncs lost to another replica
	lastNotBehind  time.Time               // when some node was last not behind the indexed blocks
	noQuorum       bool                    // the last sync found no quorum
	expiring       bool                    // some invoices may have reached their expiry time
	others         othersProgress          // progress of another replica that reads the chain
	readFrom       map[blockID]node        // which node returned a block that was read; zero for final blocks
	observed       map[blockID]uint64      // hashes of the transfers with which blocks were recorded last
	distinctChecks map[chainPair]time.Time // when a node was last checked against another chain; zero once that is decided

	// filled is the newest block that the gap filler recorded. It belongs to that goroutine.
	filled invoice.Header

	// noticesSeen belongs to the goroutine that reads unread transactions. Notices received before it were followed.
	noticesSeen time.Time

	// oversizedFrom belongs to the same goroutine. Until then it reads no oversized transactions.
	oversizedFrom time.Time

	// auditFailures counts consecutive failures of the audit. It belongs to that goroutine.
	auditFailures int

	sleep func(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool)

	mu           sync.Mutex
	status       Status
	loops        map[string]*loop     // in progress, by name
	failingSince map[string]time.Time // by loop, while the loop fails
	lastNode     *chain.Node          // used by the last sync
	probes       map[*chain.Node]probe
	unreadable   map[common.Hash]*unreadable // by transaction
	offers       map[*chain.Node]receiptsOffer
	compared     map[invoice.Hash]Comparison                 // blocks that were compared when they were read
	unproven     map[invoice.Hash][]ledger.UnreadTransaction // by block
	comparisons  map[Comparison]uint64                       // number of blocks compared in each way
}

// New returns an indexer that does not run yet. It panics if a required field is missing.
func New(c Config) *Indexer {
	if c.Chain.Key == "" || c.Pool == nil || c.Ledger == nil || c.Logger == nil || c.Now == nil || c.Jitter == nil {
		panic("indexer: Config.Chain, Pool, Ledger, Logger, Now and Jitter are required")
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Watchdog == nil {
		c.Watchdog = clock.New(0)
	}
	log := c.Logger.With("chain", c.Chain.Key)
	return &Indexer{
		cfg:            c,
		decoder:        newDecoder(c.Chain),
		wakeups:        make(chan struct{}, 1),
		gapSeen:        make(chan struct{}, 1),
		unreadSeen:     make(chan struct{}, 1),
		unreadable:     map[common.Hash]*unreadable{},
		offers:         map[*chain.Node]receiptsOffer{},
		compared:       map[invoice.Hash]Comparison{},
		unproven:       map[invoice.Hash][]ledger.UnreadTransaction{},
		comparisons:    map[Comparison]uint64{},
		catchup:        &meter{now: c.Now, logger: log.With("reading", "catch-up")},
		backfill:       &meter{now: c.Now, logger: log.With("reading", "back-fill")},
		maxInFlight:    maxInFlight,
		sleep:          sleepOrWake,
		lastNotBehind:  c.Now(),
		expiring:       true, // an earlier process may have left expired invoices
		status:         Status{ChainKey: c.Chain.Key},
		loops:          map[string]*loop{},
		failingSince:   map[string]time.Time{},
		readFrom:       map[blockID]node{},
		observed:       map[blockID]uint64{},
		distinctChecks: map[chainPair]time.Time{},
		probes:         map[*chain.Node]probe{},
	}
}

// Wake makes the indexer look at the chain now. A call during a sync causes one more sync. It is safe for concurrent
// use.
func (ix *Indexer) Wake() {
	clock.Wake(ix.wakeups)
	clock.Wake(ix.unreadSeen)
}

// Status returns a snapshot of the indexer's work. It is safe for concurrent use.
func (ix *Indexer) Status() Status {
	by := ix.comparesBy()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	s := ix.status
	s.Reading = ix.reads()
	s.Comparison, s.Compared = by, maps.Clone(ix.comparisons)
	s.Blooms = BloomsUnknown
	if p, ok := ix.probes[ix.lastNode]; ok {
		s.Blooms = p.blooms
	}
	s.CatchUp, s.Backfill = ix.catchup.snapshot(), ix.backfill.snapshot()
	return s
}

// Run reads the chain until ctx ends, and then returns nil. It logs and retries errors of nodes and of the ledger. When
// the chain replaces a final block, Run sets Status.Halted and waits until the chain is resumed.
func (ix *Indexer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	loops.Go(func() { ix.fillGaps(ctx) })
	loops.Go(func() { ix.readUnreadTransactions(ctx) })
	loops.Go(func() { ix.auditBlocks(ctx) })
	if len(ix.cfg.Pool.Nodes()) > 1 {
		loops.Go(func() { ix.refreshHeads(ctx) })
	}

	for failures := 0; ; {
		var more bool
		var err error
		ix.step(ctx, loopHead, func(ctx context.Context) { more, err = ix.sync(ctx) })
		if ctx.Err() != nil {
			return nil
		}
		ix.report(err)
		var halted *HaltedError
		var noQuorum *NoQuorumError
		switch {
		case errors.As(err, &halted):
			clock.Sleep(ctx, haltedPollInterval, ix.wakeups)
		case errors.As(err, &noQuorum), errors.Is(err, errUnread):
			// Indexing continues, or another replica starts to read; only confirming waits.
			clock.Sleep(ctx, ix.cfg.PollInterval, ix.wakeups)
		case err != nil:
			failures++
			clock.Sleep(ctx, ix.backoff(failures), nil)
		case more:
			failures = 0
		default:
			failures = 0
			ix.rest(ctx)
		}
	}
}

// refreshHeads keeps the heads of all nodes known, so that a node that lags is not used first.
func (ix *Indexer) refreshHeads(ctx context.Context) {
	for ctx.Err() == nil {
		ix.step(ctx, loopRefreshHeads, ix.refreshOrCheck)
		clock.Sleep(ctx, refreshHeadsEvery, nil)
	}
}

// backoff returns the wait after the nth failure in a row, n from 1.
func (ix *Indexer) backoff(n int) time.Duration {
	d := firstBackoff
	for ; n > 1 && d < maxBackoff; n-- {
		d *= 2
	}
	return clock.Jitter(min(d, maxBackoff), ix.cfg.Jitter())
}

// report records the outcome of a sync, and logs changes.
func (ix *Indexer) report(err error) {
	ix.mu.Lock()
	before := ix.status
	ix.noteFailure(loopHead, err)
	ix.status.Error, ix.status.Halted = "", ""
	if ix.tracker != nil {
		ix.status.at(ix.tracker)
	}
	var halted *HaltedError
	switch {
	case err == nil:
		ix.status.Succeeded = ix.cfg.Now()
	case errors.As(err, &halted):
		ix.status.Halted = halted.Reason
		ix.status.Error = err.Error()
	default:
		ix.status.Error = err.Error()
	}
	after := ix.status
	ix.mu.Unlock()

	log := ix.cfg.Logger.With("chain", ix.cfg.Chain.Key, "node", after.Source)
	var noQuorum *NoQuorumError
	hadNoQuorum := ix.noQuorum
	ix.noQuorum = errors.As(err, &noQuorum)
	switch {
	case ix.noQuorum && hadNoQuorum: // about a different block each time, for the same reason
	case after.Error == before.Error, errors.Is(err, chain.ErrMismatch): // the pool has already logged it
	case after.Halted != "":
		log.Error("chain halted; compare its blocks with another node before resuming it", "reason", after.Halted)
	case ix.noQuorum:
		log.Error("no quorum, nothing is confirmed", "reason", noQuorum.Reason)
	case err != nil:
		log.Warn("sync failed, will retry", "err", err)
	case before.Halted != "":
		log.Info("chain resumed", "indexed", after.Indexed)
	default:
		log.Info("sync succeeded again", "indexed", after.Indexed)
	}
	if ix.cfg.OnSync != nil {
		ix.cfg.OnSync(ix.Status())
	}
}

// updateStatus changes the status under its lock.
func (ix *Indexer) updateStatus(change func(*Status)) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	change(&ix.status)
}
