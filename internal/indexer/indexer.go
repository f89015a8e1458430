package indexer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/wait"
	"github.com/quittance/quittance/internal/watchdog"
)

// Limits of an Indexer.
const (
	// DefaultPollInterval is how often the head is asked for when nothing is
	// said about it.
	DefaultPollInterval = time.Second
	// firstBackoff and maxBackoff are the first and the longest wait after a
	// round that failed; it doubles in between, give or take a fifth.
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 10 * time.Second
	// resubscribeAfter is the wait before a broken subscription is made again.
	resubscribeAfter = 5 * time.Second
	// refreshHeadsEvery is how often those nodes are asked for their head that
	// are not asked for anything else.
	refreshHeadsEvery = 15 * time.Second
	// haltedPollInterval is how often a halted chain is checked for being resumed.
	haltedPollInterval = 5 * time.Second
	// maxBehind is how long the heads of all nodes may be behind the
	// newest block that was read before nothing is said to go well: the backends
	// of one differ for a while.
	maxBehind = 30 * time.Second
	// maxLostRaces is how many syncs in a row may be lost to another replica
	// before there is a wait as after a failure.
	maxLostRaces = 3
)

// Config is what an Indexer is made of. Chain, Pool, Ledger, Logger, Now and
// Jitter are required.
type Config struct {
	Chain chain.Chain
	// Pool holds the chain's nodes. A sync of reading asks one of them
	// from start to end; after a failure the next one is asked.
	Pool   *chain.Pool
	Ledger Ledger
	Logger *slog.Logger
	Now    func() time.Time
	// Jitter returns a number in [0,1), to spread out retries.
	Jitter func() float64
	// PollInterval is the wait between two syncs when nothing wakes the
	// indexer; 0 is DefaultPollInterval.
	PollInterval time.Duration
	// Awaited returns what is awaited on the chain; nil is that something always is. While nothing
	// is awaited, the chain is read every IdleInterval; with 0 it is never read less often.
	Awaited      func(ctx context.Context) (Awaited, error)
	IdleInterval time.Duration
	// Others are the keys of the other chains of the service, and Senior those
	// of them that go before this one where both turn out to be one chain.
	Others, Senior []string
	// Reads reports whether this replica is to read the chain; nil is always. Others follow how far the one that
	// does has come. The ledger's cursor keeps two that both read from recording one block.
	Reads func() bool
	// OnSync, when set, is called after each sync with the status.
	OnSync func(Status)
	// Watchdog watches the work under way; nil is one of the indexer's own.
	Watchdog *watchdog.Watchdog
}

// Status is a snapshot of an Indexer's work.
type Status struct {
	ChainKey    string
	Reading     bool      // by this replica
	Source      string    // the node that was asked last
	Head        uint64    // of that node, as last seen
	Indexed     uint64    // newest block read
	IndexedTime time.Time // of that block
	Confirmed   uint64    // newest final block
	Succeeded   time.Time // end of the last sync that went well; zero before it
	Error       string    // of the last sync; empty when it went well
	Halted      string    // why the chain is halted; empty unless it is
	CatchUp     *Progress // of reading up to the finalized height; nil when it is near
	Backfill    *Progress // of filling the gap of older blocks; nil without one
	Blooms      Blooms    // of that node's headers
	// Skew is how far this machine's clock is ahead of the time of the chain's
	// new blocks, nil while it is unknown; Skewed says that it is too far.
	Skew   *time.Duration
	Skewed bool
	// Comparison is how the logs of new blocks can be compared, and Compared is how many blocks were
	// compared in each way.
	Comparison Comparison
	Compared   map[Comparison]uint64
	Audit      *Audit // of final blocks; nil before it begins
	// Unread is how many transactions of the chain are not recorded and wait to be read again.
	Unread   map[store.UnreadReason]int
	Restarts uint64 // how often the indexer was replaced because it made no progress
}

// at notes how far the chain is read.
func (s *Status) at(t *Tracker) {
	tip := t.Tip()
	s.Indexed, s.IndexedTime, s.Confirmed = tip.Number, tip.Time, t.Final().Number
}

// HaltedError says that a chain is read no further, because going on could
// undo what was called final. Only a person can judge what is right then, and
// have it resumed.
type HaltedError struct {
	ChainKey string
	Reason   string
}

// Error says which chain stopped, and why.
func (e *HaltedError) Error() string {
	return fmt.Sprintf("indexing of chain %s is halted: %s", e.ChainKey, e.Reason)
}

// othersProgress is the newest block that another replica has read, and since when.
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
	maxInFlight int // parts of a span at once

	// What follows belongs to the goroutine of Run.
	tracker        *Tracker // of the ledger's cursor; nil before the first sync
	revision       int64    // of that cursor: a block may have been added below its newest one
	skew           skew
	blockTimes     blockTimes
	together       bool                    // several blocks are read by one call
	lastSynced     heads                   // of the last sync that did everything
	lostRaces      int                     // syncs lost to another replica, in a row
	lastNotBehind  time.Time               // when last not all nodes were behind what was read
	noQuorum       bool                    // the last sync found no quorum
	expiring       bool                    // there may be invoices whose time to expire has come
	others         othersProgress          // while another replica reads the chain
	distinctChecks map[chainPair]time.Time // when a node was checked against another chain; zero when that is decided

	// filled belongs to the goroutine that fills the gap: the newest block that
	// it recorded.
	filled invoice.Header

	// noticesSeen belongs to the goroutine that reads unread transactions: notices that were
	// received before were followed.
	noticesSeen time.Time

	// auditFailures belongs to the goroutine that audits: failures in a row.
	auditFailures int

	ignoreHeads atomic.Bool // announcements of heads do not wake the indexer
	sleep       func(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool)

	mu           sync.Mutex
	status       Status
	loops        map[string]*loop     // under way, by name
	failingSince map[string]time.Time // by loop, while it fails
	lastNode     *chain.Node          // by the last sync
	probes       map[*chain.Node]probe
	unreadable   map[common.Hash]*unreadable // by transaction
	offers       map[*chain.Node]receiptsOffer
	compared     map[invoice.Hash]Comparison                 // blocks that were compared when they were read
	unproven     map[invoice.Hash][]settle.UnreadTransaction // by their block
	comparisons  map[Comparison]uint64                       // how many blocks were, in each way
}

// New returns an indexer that has not begun yet. It panics without a required field.
func New(c Config) *Indexer {
	if c.Chain.Key == "" || c.Pool == nil || c.Ledger == nil || c.Logger == nil || c.Now == nil || c.Jitter == nil {
		panic("indexer: Config.Chain, Pool, Ledger, Logger, Now and Jitter are required")
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Watchdog == nil {
		c.Watchdog = watchdog.New(0)
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
		unproven:       map[invoice.Hash][]settle.UnreadTransaction{},
		comparisons:    map[Comparison]uint64{},
		catchup:        &meter{now: c.Now, logger: log.With("reading", "catch-up")},
		backfill:       &meter{now: c.Now, logger: log.With("reading", "back-fill")},
		maxInFlight:    maxInFlight,
		sleep:          sleepOrWake,
		lastNotBehind:  c.Now(),
		expiring:       true, // the process before may have left some
		status:         Status{ChainKey: c.Chain.Key},
		loops:          map[string]*loop{},
		failingSince:   map[string]time.Time{},
		distinctChecks: map[chainPair]time.Time{},
		probes:         map[*chain.Node]probe{},
	}
}

// Wake makes the indexer look at the chain at once. Pokes that come while it
// looks make it look once more. It is safe for concurrent use.
func (ix *Indexer) Wake() {
	wait.Wake(ix.wakeups)
	wait.Wake(ix.unreadSeen)
}

// Status returns what the indexer has come to. It is safe for concurrent use.
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

// Run reads the chain until ctx ends, and returns nil then. Errors of nodes
// and of the ledger are logged and retried. When the chain replaced a block
// that was final, it is halted: Run sets Status.Halted, and continues when the chain
// is resumed.
func (ix *Indexer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var loops sync.WaitGroup
	defer loops.Wait()
	defer cancel()
	for _, p := range ix.cfg.Pool.Nodes() {
		loops.Go(func() { ix.subscribe(ctx, p) })
	}
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
			wait.Sleep(ctx, haltedPollInterval, ix.wakeups)
		case errors.As(err, &noQuorum), errors.Is(err, errUnread):
			// Indexing continues, or another replica begins; only confirming waits.
			wait.Sleep(ctx, ix.cfg.PollInterval, ix.wakeups)
		case err != nil:
			failures++
			wait.Sleep(ctx, ix.backoff(failures), nil)
		case more:
			failures = 0
		default:
			failures = 0
			ix.rest(ctx)
		}
	}
}

// refreshHeads keeps the heads of all nodes known, so that one that lags is not
// asked first.
func (ix *Indexer) refreshHeads(ctx context.Context) {
	for ctx.Err() == nil {
		ix.step(ctx, loopRefreshHeads, ix.refreshOrCheck)
		wait.Sleep(ctx, refreshHeadsEvery, nil)
	}
}

// backoff returns the wait after the nth failure in a row, n from 1.
func (ix *Indexer) backoff(n int) time.Duration {
	d := firstBackoff
	for ; n > 1 && d < maxBackoff; n-- {
		d *= 2
	}
	return wait.Jitter(min(d, maxBackoff), ix.cfg.Jitter())
}

// subscribe keeps a subscription to the node's heads, which wakes the indexer.
// That it cannot is no failure: polling finds everything too.
func (ix *Indexer) subscribe(ctx context.Context, p *chain.Node) {
	for {
		err := p.SubscribeHeads(ctx, ix.onHead)
		if ctx.Err() != nil || errors.Is(err, chain.ErrNoSubscription) {
			return
		}
		ix.cfg.Logger.Debug("subscription to new heads ended", "chain", ix.cfg.Chain.Key, "node", p.String(), "err", err)
		if !wait.Sleep(ctx, wait.Jitter(resubscribeAfter, ix.cfg.Jitter()), nil) {
			return
		}
	}
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
	case ix.noQuorum && hadNoQuorum: // of another block each time, for one reason
	case after.Error == before.Error, errors.Is(err, chain.ErrMismatch): // the pool has logged it
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
