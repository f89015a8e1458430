// Package dispatcher posts events to the endpoints of merchants.
//
// The schedule is in the database, so a worker has no permanent state: it leases due deliveries, commits, posts them,
// and records each outcome while it still holds the lease. Any number of workers share one database. The deliveries of
// a killed worker become due again when its leases end. An event without a recorded receipt by then is posted once
// more, with the same delivery id.
//
// An event that this process commits is passed directly to its worker: see handover.
//
// A worker's knowledge of the queues only saves queries: see queueCache.
package dispatcher

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/times"
	"github.com/quittance/quittance/internal/wait"
	"github.com/quittance/quittance/internal/watchdog"
)

// Store is the schedule of deliveries. *store.Store implements it.
type Store interface {
	LeaseDeliveries(ctx context.Context, r delivery.LeaseRequest) (delivery.Leased, error)
	FinishDeliveries(ctx context.Context, outcomes []delivery.Outcome) (lost []int, err error)
	ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64, now time.Time) (int64, error)
	FailOverdueDeliveries(ctx context.Context, r store.OverdueRequest) (expired map[string]int, more bool, err error)
	Queues(ctx context.Context, lane delivery.Lane) ([]delivery.Queue, error)
	RegisterWorker(ctx context.Context, d store.Worker, now, until time.Time) error
	DeregisterWorker(ctx context.Context, id string) error
	Breakers(ctx context.Context, merchantIDs []string) (map[string]delivery.Breaker, error)
	BreakerCounts(ctx context.Context) (map[delivery.BreakerState]int64, error)
}

// Config configures a Worker. Schedule, Configured, Wake, Metrics, Watchdog and Limits are optional.
type Config struct {
	Store Store
	// Endpoints returns the current endpoints of the merchants that have one. It is called for every attempt, for many
	// merchants at a time. The deliveries of the others wait and are not attempted.
	Endpoints func(ctx context.Context, merchantIDs []string) (map[string]poster.Endpoint, error)
	// Configured is a hash of the endpoints in this process's configuration, which other processes may not know. If all
	// workers have the same hash, an endpoint that one of them does not know does not exist.
	Configured string
	Client     *http.Client // made by poster.NewClient
	Now        func() time.Time
	// SignatureNow dates signatures; nil is Now.
	SignatureNow func() time.Time
	// Schedule is the clock of due times, deadlines, leases and breakers. All workers that share a database must use
	// the same clock. nil means Now.
	Schedule func() time.Time
	Rand     io.Reader // for jitter and lease ids; safe for concurrent use
	Logger   *slog.Logger
	Wake     <-chan struct{} // signals that deliveries are due which Committed does not pass; never closed
	// GiveWay waits until more urgent work that waits for the database is done, but not longer than most; nil means
	// that there is no such work.
	GiveWay  func(ctx context.Context, most time.Duration)
	Metrics  *Metrics           // made by NewMetrics; may be nil
	Watchdog *watchdog.Watchdog // reports a worker that makes no progress; may be nil
	Limits   Limits
}

// Worker posts due deliveries.
type Worker struct {
	conf     Config
	poster   *poster.Poster
	log      *logLimiter
	handover handover
}

// New returns a worker. It panics if a required field is missing.
func New(c Config) *Worker {
	if c.Store == nil || c.Endpoints == nil || c.Client == nil || c.Now == nil || c.Rand == nil || c.Logger == nil {
		panic("dispatcher: Config.Store, Endpoints, Client, Now, Rand and Logger are required")
	}
	c.Limits = c.Limits.orDefaults()
	if c.Metrics == nil {
		c.Metrics = NewMetrics(nil)
	}
	if c.GiveWay == nil {
		c.GiveWay = func(context.Context, time.Duration) {}
	}
	if c.Schedule == nil {
		c.Schedule = c.Now
	}
	if c.Watchdog == nil {
		c.Watchdog = watchdog.New(0)
	}
	return &Worker{
		conf:     c,
		poster:   poster.New(poster.Config{Client: c.Client, Now: c.Now, SignatureNow: c.SignatureNow, Timeout: c.Limits.Timeout}),
		log:      newLogLimiter(),
		handover: handover{wake: make(chan struct{}, 1), free: make(map[string]int)},
	}
}

// servedElsewhere is how long a queue is left to other workers that serve it.
const servedElsewhere = 50 * time.Millisecond

// observeEvery is how often the oldest due delivery is measured.
const observeEvery = time.Second

// run is the state of one call of Run. Only its goroutine uses it.
type run struct {
	*Worker
	ids             *invoice.IDs
	id              string    // of the registered worker
	registeredUntil time.Time // the worker may hold leases until then
	lanes           []*lane
	merchants       map[string]*merchant
	observed        time.Time // when the oldest due delivery was last measured
	resync          resyncer
	leasing         int                // number of running lease requests
	leases          chan *leaseRequest // finished requests; has room for one of each lane and kind
	work            context.Context    // ends a grace period after the caller's context
	recording       context.Context    // ends a while after work, because a message that a receiver accepted should not be sent again
	recorder        *recorder
	attempts        map[*attempt]struct{} // attempts that hold a slot
	reaped          time.Time             // when stalled attempts were last looked for
	finished        chan finished         // has room for every slot
	over            chan struct{}         // closed when finished is not read any more
	abandoned       map[string][]int64    // deliveries to release at the stop, by lease
	returned        map[string][]int64    // deliveries to release immediately, by lease
	limiter         limiter
	waiting         map[string]bool // merchants without an endpoint and with waiting deliveries
	full            map[string]bool // merchants with due deliveries that wait for the ones in flight
}

// Run works until the context ends. Then it stops leasing, gives the exchanges in flight Limits.Grace to finish,
// releases the other leases and returns nil. It returns an error if releasing failed: those deliveries wait for the end
// of their leases. It logs and retries database errors.
func (w *Worker) Run(ctx context.Context) error {
	limits := w.conf.Limits
	work, abandon := outlive(ctx, limits.Grace)
	defer abandon()
	recording, end := outlive(work, stopTimeout-time.Second) // a little shorter than the wait in stop
	defer end()
	ids := invoice.NewIDs(w.conf.Now, w.conf.Rand)
	r := &run{
		Worker: w,
		ids:    ids,
		id:     ids.New("wkr_"),
		lanes: []*lane{
			newLane(delivery.First, limits.First, limits.Suspect),
			newLane(delivery.Retry, limits.Retries, limits.Suspect),
		},
		merchants: make(map[string]*merchant),
		leases:    make(chan *leaseRequest, 4),
		resync:    resyncer{results: make(chan snapshot, 1), expiries: make(chan bool, 1)},
		work:      work,
		recording: recording,
		recorder:  newRecorder(recording, w),
		attempts:  make(map[*attempt]struct{}),
		finished:  make(chan finished, limits.slots()),
		over:      make(chan struct{}),
		abandoned: make(map[string][]int64),
		returned:  make(map[string][]int64),
		waiting:   make(map[string]bool),
		full:      make(map[string]bool),
	}
	defer close(r.over)
	woken := true
	for ctx.Err() == nil {
		woken = r.wait(ctx, r.fill(ctx, woken))
	}
	return r.stop()
}

// outlive returns a context that ends a while after ctx does.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		wait.Sleep(longer, by, nil)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// fill starts fresh events, and requests as many leases as the lanes have room for. It returns the time until it must
// be called again.
func (r *run) fill(ctx context.Context, woken bool) time.Duration {
	task := r.conf.Watchdog.Begin("deliveries: schedule")
	defer task.End()
	now := r.conf.Schedule()
	r.reapStalled()
	if err := r.takeFresh(now); err != nil {
		r.conf.Logger.ErrorContext(ctx, "look-up of webhook endpoints failed, will retry", "err", err)
	}
	r.releaseReturned(ctx)
	if err := r.refresh(now, woken); err != nil {
		r.conf.Logger.ErrorContext(ctx, "read of the delivery schedule failed, will retry", "err", err)
		return r.conf.Limits.Poll
	}
	r.observe(now)
	if r.limiter.paused(time.Now()) {
		return limiterPause
	}
	for _, l := range r.lanes {
		r.fillLane(ctx, l, now)
	}
	starved := r.starved(now)
	r.recorder.setHurry(starved || len(r.full) > 0)
	r.openHandover(now, starved)
	next := r.next()
	if next.IsZero() {
		return r.conf.Limits.Poll
	}
	return min(r.conf.Limits.Poll, next.Sub(now))
}

// starved reports whether due deliveries to healthy endpoints wait for a slot.
func (r *run) starved(now time.Time) bool {
	return slices.ContainsFunc(r.lanes, func(l *lane) bool {
		healthy, _ := l.room(now)
		return healthy <= 0 && len(l.cache.ready[true].order) > 0
	})
}

// next returns when the next queue must be asked; zero means never.
func (r *run) next() (next time.Time) {
	for _, l := range r.lanes {
		if at := l.cache.nextTimer(); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// observe measures the oldest due delivery from time to time.
func (r *run) observe(now time.Time) {
	if since := now.Sub(r.observed); since < observeEvery && since >= 0 {
		return
	}
	r.observed = now
	r.log.flush(false)
	var oldest time.Time
	for _, l := range r.lanes {
		for m, q := range l.cache.heads {
			if r.merchant(m).unreachable {
				continue
			}
			due := times.Later(q.Head, r.merchant(m).breaker.Until)
			if !due.After(now) && (oldest.IsZero() || due.Before(oldest)) {
				oldest = due
			}
		}
	}
	r.conf.Metrics.observeOldest(oldest, now)
}

// place schedules when a merchant's queues are asked.
func (r *run) place(merchantID string, now time.Time) {
	m := r.merchant(merchantID)
	full := len(m.inFlight) >= m.allowed(r.conf.Limits.PerMerchant)
	delete(r.full, merchantID)
	for _, l := range r.lanes {
		notBefore := m.breaker.Until
		if !m.backoffUntil.After(now.Add(putBackBackoff)) { // unless the clock was set back
			notBefore = times.Later(notBefore, m.backoffUntil)
		}
		if end := l.cache.heads[merchantID].End; !end.IsZero() && end.Add(-delivery.FinalWindow).Before(notBefore) {
			notBefore = end.Add(-delivery.FinalWindow) // waiting deliveries get their last attempt even behind an open breaker
		}
		if due := l.cache.place(merchantID, m.breaker.Healthy, full || m.leasing || m.unreachable, notBefore, now); due && full {
			r.full[merchantID] = true
		}
	}
	r.handover.setFree(merchantID, r.freeOf(merchantID, now))
}

// setBreaker records the state of a merchant's breaker.
func (r *run) setBreaker(merchantID string, b delivery.Breaker) {
	m := r.merchant(merchantID)
	m.breaker, m.resync = b, r.resync.count
}

func (r *run) merchant(merchantID string) *merchant {
	m := r.merchants[merchantID]
	if m == nil {
		m = &merchant{}
		r.merchants[merchantID] = m
	}
	return m
}

// wait returns when there may be deliveries to lease, or when the context ends. It reports whether Wake sent a signal.
func (r *run) wait(ctx context.Context, atMost time.Duration) (woken bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.conf.Wake:
		return true
	case <-r.handover.wake:
	case <-timer.C:
	case found := <-r.resync.results:
		r.applySnapshot(found, r.conf.Schedule())
	case more := <-r.resync.expiries:
		r.resync.expiring = false
		if more {
			r.resync.expired = time.Time{}
		}
	case q := <-r.leases:
		r.applyLeases(q)
	case f := <-r.finished:
		r.finish(f)
		// Exchanges end in groups, as their outcomes are committed in groups.
		for len(r.finished) > 0 {
			r.finish(<-r.finished)
		}
	}
	return false
}
