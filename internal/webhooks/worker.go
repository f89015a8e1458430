package webhooks

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// Store is the schedule of deliveries. Tables implement it.
type Store interface {
	LeaseDeliveries(ctx context.Context, r LeaseRequest) (Leased, error)
	FinishDeliveries(ctx context.Context, outcomes []Outcome) (lost []int, err error)
	ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64, now time.Time) (int64, error)
	FailOverdueDeliveries(ctx context.Context, r OverdueRequest) (expired map[string]int, more bool, err error)
	Queues(ctx context.Context) ([]Queue, error)
	RegisterWorker(ctx context.Context, id, endpoints string, now, until time.Time) error
	Breakers(ctx context.Context, merchantIDs []string) (map[string]Breaker, error)
	BreakerCounts(ctx context.Context) (map[BreakerState]int64, error)
}

// WorkerConfig configures a Worker. Schedule, Configured, Wake, Metrics, Watchdog and Limits are optional.
type WorkerConfig struct {
	Store Store
	// Endpoints returns the current endpoints of the merchants that have one. It is called for every attempt, for many
	// merchants at a time. The deliveries of the others wait and are not attempted.
	Endpoints func(ctx context.Context, merchantIDs []string) (map[string]Endpoint, error)
	// Configured is a hash of the endpoints in this process's configuration, which other processes may not know. If all
	// workers have the same hash, an endpoint that one of them does not know does not exist.
	Configured string
	Client     *http.Client // made by NewClient
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
	Metrics  *Metrics        // made by NewMetrics; may be nil
	Watchdog *clock.Watchdog // reports a worker that makes no progress; may be nil
	Limits   Limits
}

// Worker posts due deliveries.
type Worker struct {
	conf   WorkerConfig
	poster *Poster
	log    *logLimiter
	inbox  inbox
}

// NewWorker returns a worker. It panics if a required field is missing.
func NewWorker(c WorkerConfig) *Worker {
	if c.Store == nil || c.Endpoints == nil || c.Client == nil || c.Now == nil || c.Rand == nil || c.Logger == nil {
		panic("webhooks: Config.Store, Endpoints, Client, Now, Rand and Logger are required")
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
		c.Watchdog = clock.New(0)
	}
	return &Worker{
		conf:   c,
		poster: NewPoster(PosterConfig{Client: c.Client, Now: c.Now, SignatureNow: c.SignatureNow, Timeout: c.Limits.Timeout}),
		log:    newLogLimiter(),
		inbox:  inbox{arrived: make(chan struct{}, 1)},
	}
}

// Committed puts the deliveries of events in line, after the transaction that inserted them.
func (w *Worker) Committed(events []Event) {
	w.inbox.put(func(m *mail) {
		for _, e := range events {
			if e.Seq != 0 && e.DeliveryID != "" {
				m.fresh = append(m.fresh, Queue{MerchantID: e.MerchantID, Head: e.Due, HeadSeq: e.Seq})
			}
		}
	})
}

// servedElsewhere is how long a queue is left to other workers that serve it.
const servedElsewhere = 50 * time.Millisecond

// observeEvery is how often the oldest due delivery is measured.
const observeEvery = time.Second

// run is the state of one call of Run. Only its goroutine uses it.
type run struct {
	*Worker
	ids       *invoice.IDs
	id        string // of the registered worker
	slots     *slots
	schedule  schedule  // deliveries that wait; the others are in attempts and in the requests of slots
	observed  time.Time // when the oldest due delivery was last measured
	resync    resyncer
	work      context.Context // ends a grace period after the caller's context
	recording context.Context // ends a while after work, because a message that a receiver accepted should not be sent again
	recorder  *recorder
	attempts  map[*sending]struct{} // attempts that hold a slot
	reaped    time.Time             // when stalled attempts were last looked for
	returned  map[string][]int64    // deliveries to release, by lease
	limiter   limiter
	waiting   map[string]bool // merchants without an endpoint and with waiting deliveries
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
		Worker:    w,
		ids:       ids,
		id:        ids.New("wkr_"),
		slots:     newSlots(limits.Healthy, limits.Suspect),
		schedule:  newSchedule(limits.PerMerchant),
		work:      work,
		recording: recording,
		recorder:  newRecorder(recording, w),
		attempts:  make(map[*sending]struct{}),
		returned:  make(map[string][]int64),
		waiting:   make(map[string]bool),
	}
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
		clock.Sleep(longer, by, nil)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// fill reads the mail, and requests as many leases as there is room for. It returns the time until it must be
// called again.
func (r *run) fill(ctx context.Context, woken bool) time.Duration {
	task := r.conf.Watchdog.Begin("deliveries: schedule")
	defer task.End()
	r.read(r.inbox.take())
	r.reapStalled()
	now := r.conf.Schedule()
	if _, err := r.release(ctx); err != nil {
		r.conf.Logger.ErrorContext(ctx, "release of webhook deliveries failed, they fall due when their leases end", "err", err)
	}
	r.refresh(now, woken)
	r.observe(now)
	if r.limiter.paused(time.Now()) {
		return limiterPause
	}
	r.fillSlots(ctx, now)
	room, _ := r.slots.room(now)
	r.recorder.setHurry(room <= 0 && r.schedule.turns[healthy].due(now) || r.schedule.turns[full].due(now))
	wait := r.conf.Limits.Poll
	if r.resync.asked {
		wait = min(wait, resyncPause)
	}
	if next := r.schedule.next(now); !next.IsZero() {
		wait = min(wait, next.Sub(now))
	}
	return wait
}

// observe measures the oldest due delivery from time to time.
func (r *run) observe(now time.Time) {
	if since := now.Sub(r.observed); since < observeEvery && since >= 0 {
		return
	}
	r.observed = now
	r.log.flush(false)
	oldest := now
	look := func(q Queue) {
		oldest = clock.Earlier(oldest, clock.Later(q.Head, r.schedule.merchant(q.MerchantID).breaker.Until))
	}
	r.schedule.waiting(look)
	for _, request := range r.running() {
		for _, q := range request.Queues {
			look(q)
		}
	}
	r.conf.Metrics.oldest.Set(now.Sub(oldest).Seconds())
}

// place puts the queue of a merchant in line for its turn.
func (r *run) place(merchantID string, now time.Time) {
	r.schedule.place(r.schedule.merchant(merchantID), now)
}

// setBreaker records the state of a merchant's breaker.
func (r *run) setBreaker(merchantID string, b Breaker) {
	m := r.schedule.merchant(merchantID)
	m.breaker, m.resync = b, r.resync.count
}

// wait returns when there may be work, or when the context ends. It reports whether Wake sent a signal.
func (r *run) wait(ctx context.Context, atMost time.Duration) (woken bool) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-r.conf.Wake:
		return true
	case <-r.inbox.arrived:
	case <-timer.C:
	}
	return false
}

// read processes the mail.
func (r *run) read(m mail) {
	for _, f := range m.finished {
		r.finish(f)
	}
	for _, q := range m.leases {
		r.applyLeases(q)
	}
	for _, found := range m.resyncs {
		r.applySnapshot(found, r.conf.Schedule())
	}
	for _, more := range m.expiries {
		r.resync.expiring.end(more)
	}
	for _, q := range m.fresh {
		r.schedule.add(q)
		r.place(q.MerchantID, r.conf.Schedule())
	}
}

// mail is what happened outside the goroutine of a worker.
type mail struct {
	fresh    []Queue         // of deliveries that this process committed
	leases   []*leaseRequest // requests that ended
	finished []finished      // how attempts ended
	resyncs  []snapshot      // what a resync read; there is one at a time
	expiries []bool          // whether late deliveries are left; runs do not overlap
}

// inbox collects mail for a worker.
type inbox struct {
	arrived chan struct{} // signals that there is mail

	mu   sync.Mutex
	mail mail
}

// put adds to the mail.
func (b *inbox) put(add func(*mail)) {
	b.mu.Lock()
	add(&b.mail)
	b.mu.Unlock()
	clock.Wake(b.arrived)
}

// take removes the mail.
func (b *inbox) take() mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.mail
	b.mail = mail{}
	return taken
}

// Limits bound a worker. A field that is zero has its default.
type Limits struct {
	Healthy int // parallel attempts to healthy endpoints; default 384
	// Suspect is how many attempts in parallel may go to suspect endpoints. An endpoint is suspect if its last answer
	// was not a quick success, or it has not answered yet. Default 2048: if fewer endpoints than that hang at the same
	// time, no healthy endpoint waits for them.
	Suspect     int
	PerMerchant int // parallel exchanges with one merchant, over all workers; default 8
	// Timeout bounds a whole exchange: looking up the name, dialing, TLS, sending, and receiving the answer's header
	// and body. The default is DefaultTimeout.
	Timeout time.Duration
	// Lease is how long a delivery is reserved for a worker. It must leave time for leasing, the exchange and recording
	// its outcome; default 15 s.
	Lease time.Duration
	Grace time.Duration // time to finish exchanges after Run's context ends; default 10 s
	// Stall is how long a whole attempt may take, including recording, before its slot is freed. Default clock.Limit.
	Stall time.Duration
	// Poll is the longest time between two rounds of the worker. Default 1 s.
	Poll time.Duration
}

// LimitsFor returns the limits of a worker that may use this many connections: the defaults, or fewer slots of each
// kind.
func LimitsFor(connections int) Limits {
	l := Limits{}.orDefaults()
	if connections >= l.slots() {
		return l
	}
	l.Healthy = max(1, connections/4)
	l.Suspect = max(1, connections-l.Healthy)
	return l
}

// slots is the maximum number of parallel attempts.
func (l Limits) slots() int { return l.Healthy + l.Suspect }

func (l Limits) orDefaults() Limits {
	return Limits{
		Healthy:     cmp.Or(l.Healthy, 384),
		Suspect:     cmp.Or(l.Suspect, 2048),
		PerMerchant: cmp.Or(l.PerMerchant, 8),
		Timeout:     cmp.Or(l.Timeout, DefaultTimeout),
		Lease:       cmp.Or(l.Lease, 15*time.Second),
		Grace:       cmp.Or(l.Grace, 10*time.Second),
		Stall:       cmp.Or(l.Stall, clock.Limit),
		Poll:        cmp.Or(l.Poll, time.Second),
	}
}

const (
	// storeTimeout bounds one database call.
	storeTimeout = 10 * time.Second
	// stopTimeout bounds the waits of a stop after the grace is over.
	stopTimeout = 5 * time.Second
	// resyncTimeout bounds one resync.
	resyncTimeout = time.Minute
	// recordRetry is the pause before an outcome is recorded again after an error.
	recordRetry = 250 * time.Millisecond
)
