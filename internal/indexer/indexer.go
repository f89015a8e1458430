package indexer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/settle"
	"github.com/quittance/quittance/internal/watchdog"
)

// Limits of a Watcher.
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
	// refreshHeadsEvery is how often those providers are asked for their head that
	// are not asked for anything else.
	refreshHeadsEvery = 15 * time.Second
	// haltedPollInterval is how often it is looked whether a halted chain may go on.
	haltedPollInterval = 5 * time.Second
	// maxBehind is how long the heads of all providers may be behind the
	// newest block that was read before nothing is said to go well: the backends
	// of one differ for a while.
	maxBehind = 30 * time.Second
	// maxLostRaces is how many rounds in a row may be lost to another replica
	// before there is a wait as after a failure.
	maxLostRaces = 3
)

// Config is what a Watcher is made of. Chain, Pool, Ledger, Logger, Now and
// Jitter are required.
type Config struct {
	Chain chain.Chain
	// Pool holds the chain's providers. A round of reading asks one of them
	// from start to end; after a failure the next one is asked.
	Pool   *chain.Pool
	Ledger Ledger
	Logger *slog.Logger
	Now    func() time.Time
	// Jitter returns a number in [0,1), to spread out retries.
	Jitter func() float64
	// PollInterval is the wait between two rounds when nothing wakes the
	// watcher; 0 is DefaultPollInterval.
	PollInterval time.Duration
	// Others are the keys of the other chains of the service, and Senior those
	// of them that go before this one where both turn out to be one chain.
	Others, Senior []string
	// OnSync, when set, is called after each round with what came of it.
	OnSync func(Status)
	// Watchdog watches the work under way; nil is one of the watcher's own.
	Watchdog *watchdog.Watchdog
}

// Status is a snapshot of a Watcher's work.
type Status struct {
	ChainKey    string
	Source      string    // the provider that was asked last
	Head        uint64    // of that provider, as last seen
	Indexed     uint64    // newest block read
	IndexedTime int64     // of that block, Unix seconds
	Confirmed   uint64    // newest final block
	Succeeded   time.Time // end of the last round that went well; zero before it
	Error       string    // of the last round; empty when it went well
	Halted      string    // why reading stopped until somebody resumes it; empty while it runs
	CatchUp     *Progress // of reading up to the finality line; nil when it is near
	Backfill    *Progress // of filling the gap of older blocks; nil without one
	Blooms      Blooms    // of that provider's headers
	// Skew is how far this machine's clock is ahead of the time of the chain's
	// new blocks, nil while it is unknown; Skewed says that it is too far.
	Skew     *time.Duration
	Skewed   bool
	Restarts uint64 // how often the reading was begun anew, since it made no progress
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

// Indexer reads one chain into the ledger.
type Indexer struct {
	Config
	decoder decoder
	wakeups chan struct{}

	gapSeen     chan struct{} // wakes the filling of the gap
	catchup     *meter
	backfill    *meter
	maxInFlight int // parts of a span at once

	// What follows belongs to the goroutine of Run.
	tracker        *Tracker // of the ledger's cursor; nil before the first round
	skew           skew
	lastSynced     heads                   // of the last round that did everything
	lostRaces      int                     // rounds lost to another replica, in a row
	lastNotBehind  time.Time               // when last not all providers were behind what was read
	noQuorum       bool                    // the last round could not tell which of the providers is right
	distinctChecks map[chainPair]time.Time // when a provider was held against another chain; zero when that is decided

	// filled belongs to the goroutine that fills the gap: the newest block that
	// it recorded.
	filled settle.Header

	mu       sync.Mutex
	status   Status
	ranges   map[*chain.Node]adaptiveRanges
	loops    map[string]*loop // under way, by name
	lastNode *chain.Node      // by the last round
	probes   map[*chain.Node]probe
}

// New returns a watcher that has not begun yet.
func New(c Config) *Indexer {
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Watchdog == nil {
		c.Watchdog = watchdog.New(0)
	}
	log := c.Logger.With("chain", c.Chain.Key)
	return &Indexer{
		Config:         c,
		decoder:        newDecoder(c.Chain),
		wakeups:        make(chan struct{}, 1),
		gapSeen:        make(chan struct{}, 1),
		catchup:        &meter{now: c.Now, logger: log.With("reading", "catch-up")},
		backfill:       &meter{now: c.Now, logger: log.With("reading", "back-fill")},
		maxInFlight:    maxInFlight,
		lastNotBehind:  c.Now(),
		status:         Status{ChainKey: c.Chain.Key},
		ranges:         map[*chain.Node]adaptiveRanges{},
		loops:          map[string]*loop{},
		distinctChecks: map[chainPair]time.Time{},
		probes:         map[*chain.Node]probe{},
	}
}

// Wake makes the watcher look at the chain at once. Pokes that come while it
// looks make it look once more. It is safe for concurrent use.
func (w *Indexer) Wake() {
	select {
	case w.wakeups <- struct{}{}:
	default:
	}
}

// Status returns what the watcher has come to. It is safe for concurrent use.
func (w *Indexer) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.status
	s.Blooms = BloomsUnknown
	if p, ok := w.probes[w.lastNode]; ok {
		s.Blooms = p.blooms
	}
	s.CatchUp, s.Backfill = w.catchup.snapshot(), w.backfill.snapshot()
	return s
}

// Run reads the chain until ctx ends, and returns nil then. Errors of providers
// and of the ledger are logged and retried. When the chain replaced a block
// that was final, it is halted: Run says so in its status, and goes on when
// somebody has resumed it.
func (w *Indexer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer cancel()
	for _, p := range w.Pool.Nodes() {
		beside.Go(func() { w.subscribe(ctx, p) })
	}
	beside.Go(func() { w.fillGaps(ctx) })
	if len(w.Pool.Nodes()) > 1 {
		beside.Go(func() { w.refreshHeads(ctx) })
	}

	for failures := 0; ; {
		var more bool
		var err error
		w.step(ctx, loopHead, func(ctx context.Context) { more, err = w.sync(ctx) })
		if ctx.Err() != nil {
			return nil
		}
		w.report(err)
		var halted *HaltedError
		var unsure *NoQuorumError
		switch {
		case errors.As(err, &halted):
			w.sleep(ctx, haltedPollInterval, w.wakeups)
		case errors.As(err, &unsure):
			// Reading goes on as ever; only confirming does not.
			w.sleep(ctx, w.PollInterval, w.wakeups)
		case err != nil:
			failures++
			w.sleep(ctx, w.backoff(failures), nil)
		case more:
			failures = 0
		default:
			failures = 0
			w.sleep(ctx, w.PollInterval, w.wakeups)
		}
	}
}

// refreshHeads keeps the heads of all providers known, so that one that lags is not
// asked first.
func (w *Indexer) refreshHeads(ctx context.Context) {
	for ctx.Err() == nil {
		w.step(ctx, loopRefreshHeads, w.Pool.RefreshHeads)
		w.sleep(ctx, refreshHeadsEvery, nil)
	}
}

// backoff returns the wait after the nth failure in a row, n from 1.
func (w *Indexer) backoff(n int) time.Duration {
	d := firstBackoff
	for ; n > 1 && d < maxBackoff; n-- {
		d *= 2
	}
	return w.jitter(min(d, maxBackoff))
}

// jitter returns d, give or take a fifth.
func (w *Indexer) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*w.Jitter()))
}

// sleep waits for d, the end of ctx or a wake-up, whichever comes first.
func (w *Indexer) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// subscribe keeps a subscription to the provider's heads, which wakes the watcher.
// That it cannot is no failure: polling finds everything too.
func (w *Indexer) subscribe(ctx context.Context, p *chain.Node) {
	for {
		err := p.SubscribeHeads(ctx, w.Wake)
		if ctx.Err() != nil || errors.Is(err, chain.ErrNoSubscription) {
			return
		}
		w.Logger.Debug("subscription to new heads ended", "chain", w.Chain.Key, "provider", p.String(), "err", err)
		w.sleep(ctx, w.jitter(resubscribeAfter), nil)
		if ctx.Err() != nil {
			return
		}
	}
}

// report records what came of a round, and logs what changed.
func (w *Indexer) report(err error) {
	w.mu.Lock()
	before := w.status
	w.status.Error, w.status.Halted = "", ""
	if w.tracker != nil {
		w.status.at(w.tracker)
	}
	var halted *HaltedError
	switch {
	case err == nil:
		w.status.Succeeded = w.Now()
	case errors.As(err, &halted):
		w.status.Halted = halted.Reason
		w.status.Error = err.Error()
	default:
		w.status.Error = err.Error()
	}
	after := w.status
	w.mu.Unlock()

	log := w.Logger.With("chain", w.Chain.Key, "provider", after.Source)
	var unsure *NoQuorumError
	wasUnsure := w.noQuorum
	w.noQuorum = errors.As(err, &unsure)
	switch {
	case w.noQuorum && wasUnsure: // of another block each time, for one reason
	case after.Error == before.Error, errors.Is(err, chain.ErrMismatch): // the pool has logged it
	case after.Halted != "":
		log.Error("indexing of this chain is halted; compare its blocks with another node before resuming it", "reason", after.Halted)
	case w.noQuorum:
		log.Error("nothing more of this chain is called final for now", "reason", unsure.Reason)
	case err != nil:
		log.Warn("reading the chain failed; trying again", "err", err)
	case before.Halted != "":
		log.Info("indexing of this chain was resumed", "indexed", after.Indexed)
	default:
		log.Info("reading the chain works again", "indexed", after.Indexed)
	}
	if w.OnSync != nil {
		w.OnSync(w.Status())
	}
}

// updateStatus changes the status under its lock.
func (w *Indexer) updateStatus(change func(*Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}
