package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
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
	// listenPause is the wait before a broken subscription is made again.
	listenPause = 5 * time.Second
	// frozenAfter is how long a node may tell of the same head before another
	// one is asked.
	frozenAfter = 30 * time.Second
	// maxRaces is how many rounds in a row may be lost to another replica
	// before there is a wait as after a failure.
	maxRaces = 3
)

// Config is what a Watcher is made of. Chain, Sources, Ledger, Logger, Now and
// Jitter are required.
type Config struct {
	Chain chain.Chain
	// Sources are the chain's nodes, the preferred one first. A round of
	// reading asks one of them from start to end; after a failure the next one
	// is asked.
	Sources []Source
	Ledger  Ledger
	Logger  *slog.Logger
	Now     func() time.Time
	// Jitter returns a number in [0,1), to spread out retries.
	Jitter func() float64
	// PollInterval is the wait between two rounds when nothing wakes the
	// watcher; 0 is DefaultPollInterval.
	PollInterval time.Duration
	// OnRound, when set, is called after each round with what came of it.
	OnRound func(Status)
}

// Status is a snapshot of a Watcher's work.
type Status struct {
	ChainKey  string
	Source    string    // the node that was asked last
	Head      uint64    // of that node, as last seen
	Indexed   uint64    // newest block read
	Confirmed uint64    // newest final block
	Succeeded time.Time // end of the last round that went well; zero before it
	Error     string    // of the last round; empty when it went well
	Halted    string    // why reading stopped for good; empty while it runs
}

// HaltedError says that a chain is read no further, because going on could
// undo what was called final. Only a person can judge what is right then.
type HaltedError struct {
	ChainKey string
	Reason   string
}

// Error says which chain stopped, and why.
func (e *HaltedError) Error() string {
	return fmt.Sprintf("indexing of chain %s is halted: %s", e.ChainKey, e.Reason)
}

// Watcher reads one chain into the ledger.
type Watcher struct {
	Config
	decoder decoder
	wake    chan struct{}

	// What follows belongs to the goroutine of Run.
	tracker  *Tracker     // of the ledger's cursor; nil before the first round
	source   int          // index of the source to ask
	checked  []bool       // sources whose configuration was checked
	misfit   []bool       // sources that it was logged not to fit
	complete invoice.Hash // head up to which the last round did everything
	since    time.Time    // when complete became so, or a node was left because of it
	span     uint64       // blocks to ask logs for in one range
	count    uint64       // blocks to read one by one in a round
	races    int          // rounds lost to another replica, in a row

	mu     sync.Mutex
	status Status
}

// New returns a watcher that has not begun yet.
func New(c Config) *Watcher {
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	return &Watcher{
		Config:  c,
		decoder: decoder{c.Chain},
		wake:    make(chan struct{}, 1),
		checked: make([]bool, len(c.Sources)),
		misfit:  make([]bool, len(c.Sources)),
		span:    firstSpan,
		count:   maxBlocks,
		status:  Status{ChainKey: c.Chain.Key},
	}
}

// Poke makes the watcher look at the chain at once. Pokes that come while it
// looks make it look once more. It is safe for concurrent use.
func (w *Watcher) Poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Status returns what the watcher has come to. It is safe for concurrent use.
func (w *Watcher) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// Run reads the chain until ctx ends, and returns nil then. Errors of nodes
// and of the ledger are logged and retried. It returns a *HaltedError when the
// chain replaced a block that was final; that must not stop the other chains.
func (w *Watcher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var listeners sync.WaitGroup
	for _, src := range w.Sources {
		listeners.Go(func() { w.listen(ctx, src) })
	}
	defer listeners.Wait()
	defer cancel()

	for failures := 0; ; {
		more, err := w.round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		w.report(err)
		var halted *HaltedError
		if errors.As(err, &halted) {
			return halted
		}
		switch {
		case err != nil:
			failures++
			w.rotate()
			// While there is a node left to ask there is no reason to wait.
			if failures%len(w.Sources) == 0 {
				w.sleep(ctx, w.backoff(failures/len(w.Sources)), nil)
			}
		case more:
			failures = 0
		default:
			failures = 0
			w.sleep(ctx, w.PollInterval, w.wake)
		}
	}
}

// rotate makes the next round ask the next node.
func (w *Watcher) rotate() { w.source = (w.source + 1) % len(w.Sources) }

// backoff returns the wait after the nth failure in a row, n from 1.
func (w *Watcher) backoff(n int) time.Duration {
	d := firstBackoff
	for ; n > 1 && d < maxBackoff; n-- {
		d *= 2
	}
	return w.jittered(min(d, maxBackoff))
}

// jittered returns d, give or take a fifth.
func (w *Watcher) jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*w.Jitter()))
}

// sleep waits for d, the end of ctx or a wake-up, whichever comes first.
func (w *Watcher) sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}

// listen keeps a subscription to the node's heads, which wakes the watcher.
// That it cannot is no failure: polling finds everything too.
func (w *Watcher) listen(ctx context.Context, src Source) {
	for {
		err := src.Listen(ctx, w.Poke)
		if ctx.Err() != nil || errors.Is(err, chain.ErrNoSubscription) {
			return
		}
		w.Logger.Debug("subscription to new heads ended", "chain", w.Chain.Key, "node", src.String(), "err", err)
		w.sleep(ctx, w.jittered(listenPause), nil)
		if ctx.Err() != nil {
			return
		}
	}
}

// report records what came of a round, and logs what changed.
func (w *Watcher) report(err error) {
	w.mu.Lock()
	before := w.status
	w.status.Error = ""
	if w.tracker != nil {
		w.status.Indexed, w.status.Confirmed = w.tracker.Tip().Number, w.tracker.Final().Number
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

	log := w.Logger.With("chain", w.Chain.Key, "node", after.Source)
	switch {
	case after.Halted != "":
		log.Error("indexing of this chain is halted; compare its blocks with another node before starting it again", "reason", after.Halted)
	case errors.Is(err, chain.ErrMismatch): // check has logged it
	case err != nil && after.Error != before.Error:
		log.Warn("reading the chain failed; trying again", "err", err)
	case err == nil && before.Error != "":
		log.Info("reading the chain works again", "indexed", after.Indexed)
	}
	if w.OnRound != nil {
		w.OnRound(after)
	}
}

// note changes the status under its lock.
func (w *Watcher) note(change func(*Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}
