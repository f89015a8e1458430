// Package deliver posts events to the endpoints of merchants.
//
// The schedule is in the database, so a worker owns nothing: it leases
// deliveries that are due, commits, posts them, and records each outcome while
// it still holds the lease. Any number of workers share one database. What a
// worker leaves behind when it is killed falls due again when its leases end;
// an event whose receipt was not recorded by then is posted once more, under
// the same delivery id.
//
// What a worker remembers of the queues only spares it to look: see roster.
package deliver

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/watchdog"
)

// Store is the schedule of deliveries, as *store.Store keeps it.
type Store interface {
	LeaseDeliveries(ctx context.Context, r delivery.LeaseRequest) (delivery.Leased, error)
	FinishDeliveries(ctx context.Context, outcomes []delivery.Outcome) (lost []int, err error)
	ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64) (int64, error)
	ExpireDeliveries(ctx context.Context, r store.ExpireRequest) (expired map[string]int, more bool, err error)
	Queues(ctx context.Context, lane delivery.Lane) ([]delivery.Queue, error)
	News(ctx context.Context, after int64) (queues []delivery.Queue, last int64, more bool, err error)
	LastSeq(ctx context.Context) (int64, error)
	RegisterWorker(ctx context.Context, d store.Worker, nowMS, untilMS int64) error
	DeregisterWorker(ctx context.Context, deliverer string) error
	Breakers(ctx context.Context, merchantIDs []string) (map[string]delivery.Breaker, error)
	BreakerCounts(ctx context.Context) (map[delivery.BreakerState]int64, error)
}

// Worker posts what is due. All fields but Schedule, Configured, Wake, Metrics,
// Watchdog and Limits are required.
type Worker struct {
	Store Store
	// Endpoints returns those of the merchants that have an endpoint, with it
	// as it is now. It is asked at every attempt, for many at once. The deliveries
	// of the others wait untried.
	Endpoints func(ctx context.Context, merchantIDs []string) (map[string]poster.Endpoint, error)
	// Configured is a hash of what of the endpoints this process alone may know,
	// from its configuration: where all workers have the same, what one of them
	// does not know nobody does.
	Configured string
	Client     *http.Client // made by poster.NewClient
	Now        func() time.Time
	// Schedule is the time of the schedule: of due times, deadlines, leases and
	// breakers. All workers that share a database must have the same. nil is Now.
	Schedule func() time.Time
	Rand     io.Reader // of jitter and lease ids; safe for concurrent use
	Logger   *slog.Logger
	Wake     <-chan struct{} // says that something new is due; never closed
	Metrics  *Metrics        // made by NewMetrics; nil for none
	// Watchdog is told what the worker does; nil for none.
	Watchdog *watchdog.Watchdog
	Limits   Limits

	poster *poster.Poster // made by Run
	lines  *lines         // made by Run
}

// elsewhere is how long a queue is left to the other workers that serve it.
const elsewhere = 50 * time.Millisecond

// observeEvery is how often the oldest delivery that is due is looked for.
const observeEvery = time.Second

// run is the state of one call of Run, used by its goroutine alone.
type run struct {
	*Worker
	ids       *invoice.IDs
	id        string    // as the others know it
	enlisted  time.Time // until when it may hold leases
	lanes     []*lane
	merchants map[string]*merchant
	seen      int64     // the newest event that the rosters know of
	looked    time.Time // when the log of events was read last
	observed  time.Time // when the oldest delivery was reported last
	survey    surveyor
	// work ends a grace after the caller's context.
	work      context.Context
	recorder  *recorder
	flights   map[*flight]struct{} // that hold a slot
	reaped    time.Time            // when those that make no progress were looked for last
	finished  chan finished        // holds one for every slot
	over      chan struct{}        // closed when nobody takes what is finished any more
	abandoned map[string][]int64   // to be given back at the stop, by lease
	returned  map[string][]int64   // to be given back at once, by lease
	brake     brake
	waiting   map[string]bool // merchants without an endpoint, whose deliveries wait
}

// Run works until the context ends. Then it leases nothing more, lets the
// exchanges under way finish within Limits.Grace, gives back the others and
// returns nil, or an error when giving back failed: those wait for the end of
// their leases. An error of the database is logged and tried again.
func (w *Worker) Run(ctx context.Context) error {
	configured := *w
	configured.Limits = w.Limits.orDefaults()
	if configured.Metrics == nil {
		configured.Metrics = NewMetrics(nil)
	}
	if configured.Schedule == nil {
		configured.Schedule = configured.Now
	}
	if configured.Watchdog == nil {
		configured.Watchdog = watchdog.New(0)
	}
	configured.lines = newLines()
	configured.poster = poster.New(poster.Config{Client: w.Client, Now: w.Now, Timeout: configured.Limits.Timeout})
	limits := configured.Limits
	work, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	defer context.AfterFunc(ctx, func() {
		timer := time.NewTimer(limits.Grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			abandon()
		case <-work.Done():
		}
	})()
	ids := invoice.NewIDs(w.Now, w.Rand)
	r := &run{
		Worker: &configured,
		ids:    ids,
		id:     ids.New("wkr_"),
		lanes: []*lane{
			newLane(delivery.First, "first", limits.First, limits.Suspect),
			newLane(delivery.Retry, "retry", limits.Retries, limits.Suspect),
		},
		merchants: make(map[string]*merchant),
		seen:      unknown,
		survey:    surveyor{results: make(chan survey, 1), expiries: make(chan bool, 1)},
		work:      work,
		recorder:  &recorder{Worker: &configured},
		flights:   make(map[*flight]struct{}),
		finished:  make(chan finished, limits.slots()),
		over:      make(chan struct{}),
		abandoned: make(map[string][]int64),
		returned:  make(map[string][]int64),
		waiting:   make(map[string]bool),
	}
	defer close(r.over)
	woken := true
	for ctx.Err() == nil {
		woken = r.wait(ctx, r.fill(ctx, woken))
	}
	return r.stop()
}

// fill learns what is new, leases as much as the lanes have room for and
// starts it. It returns when to do so again at the latest.
func (r *run) fill(ctx context.Context, woken bool) time.Duration {
	task := r.Watchdog.Begin("deliveries: lease")
	defer task.End()
	now := r.Schedule()
	r.reap()
	r.giveBack(ctx)
	if err := r.learn(now, woken); err != nil {
		r.Logger.ErrorContext(ctx, "the schedule of webhook deliveries cannot be read; trying again", "error", err)
		return r.Limits.Poll
	}
	r.observe(now)
	again := false
	if r.brake.holds(time.Now()) {
		return brakePause
	}
	for _, l := range r.lanes {
		more, err := r.fillLane(l, now)
		if err != nil {
			r.Logger.ErrorContext(ctx, "webhook deliveries cannot be leased; trying again", "error", err)
			return r.Limits.Poll
		}
		again = again || more
	}
	if again {
		return 0
	}
	next := r.next()
	if next == 0 {
		return r.Limits.Poll
	}
	return min(r.Limits.Poll, time.UnixMilli(next).Sub(now))
}

// next returns when a queue falls due, or may be tried again, in Unix
// milliseconds; 0 is never.
func (r *run) next() (next int64) {
	for _, l := range r.lanes {
		if wakes := l.roster.wakes(); wakes != 0 && (next == 0 || wakes < next) {
			next = wakes
		}
	}
	return next
}

// observe reports the oldest delivery that is due, once in a while.
func (r *run) observe(now time.Time) {
	if since := now.Sub(r.observed); since < observeEvery && since >= 0 {
		return
	}
	r.observed = now
	r.lines.flush(false)
	nowMS, oldest := now.UnixMilli(), int64(0)
	for _, l := range r.lanes {
		for m, q := range l.roster.heads {
			if r.know(m).unreachable {
				continue
			}
			dueMS := max(q.HeadMS, r.know(m).breaker.UntilMS)
			if dueMS <= nowMS && (oldest == 0 || dueMS < oldest) {
				oldest = dueMS
			}
		}
	}
	r.Metrics.observeOldest(oldest, nowMS)
}

// place brings the turns of a merchant's queues up to date.
func (r *run) place(merchantID string, nowMS int64) {
	m := r.know(merchantID)
	for _, l := range r.lanes {
		heldUntilMS := m.breaker.UntilMS
		if m.restedMS <= nowMS+putBackRest.Milliseconds() { // unless the clock was set back
			heldUntilMS = max(heldUntilMS, m.restedMS)
		}
		if l.ending[merchantID] {
			heldUntilMS = 0
		}
		l.roster.place(merchantID, m.breaker.Healthy, m.unreachable || len(m.busy) >= m.allowed(r.Limits.PerMerchant), heldUntilMS, nowMS)
	}
}

// learned notes how a merchant's breaker is now.
func (r *run) learned(merchantID string, b delivery.Breaker) {
	m := r.know(merchantID)
	m.breaker, m.looked = b, r.survey.count
}

func (r *run) know(merchantID string) *merchant {
	m := r.merchants[merchantID]
	if m == nil {
		m = &merchant{}
		r.merchants[merchantID] = m
	}
	return m
}

// wait returns when there may be something to lease, or the context ends. It
// reports whether somebody said that there is something new.
func (r *run) wait(ctx context.Context, atMost time.Duration) (woken bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.Wake:
		return true
	case <-timer.C:
	case found := <-r.survey.results:
		r.surveyed(found, r.Schedule())
	case more := <-r.survey.expiries:
		r.survey.expiring = false
		if more {
			r.survey.expired = time.Time{}
		}
	case f := <-r.finished:
		r.free(f)
		// Exchanges end in groups, as their outcomes are committed in groups.
		for len(r.finished) > 0 {
			r.free(<-r.finished)
		}
	}
	return false
}
