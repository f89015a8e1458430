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
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// Store is the schedule of deliveries, as *store.Store keeps it.
type Store interface {
	LeaseDeliveries(ctx context.Context, r store.LeaseRequest) (store.Leased, error)
	FinishDeliveries(ctx context.Context, outcomes []store.Outcome) (lost []int, err error)
	ReleaseDeliveries(ctx context.Context, leaseID string, seqs []int64) (int64, error)
	ExpireDeliveries(ctx context.Context, merchantIDs []string, nowMS int64, limit int) (expired map[string]int, more bool, err error)
	Queues(ctx context.Context, lane store.Lane) ([]store.Queue, error)
	News(ctx context.Context, after int64) (queues []store.Queue, last int64, more bool, err error)
	LastSeq(ctx context.Context) (int64, error)
	Enlist(ctx context.Context, deliverer string, nowMS, untilMS int64) error
	Discharge(ctx context.Context, deliverer string) error
	Breakers(ctx context.Context, merchantIDs []string) (map[string]store.Breaker, error)
	BreakerCounts(ctx context.Context) (map[store.BreakerState]int64, error)
}

// Worker posts what is due. All fields but Wake, Metrics and Limits are
// required.
type Worker struct {
	Store Store
	// Endpoints returns those of the merchants that have an endpoint, with it
	// as it is now. It is asked at every attempt, for many at once.
	Endpoints func(ctx context.Context, merchantIDs []string) (map[string]Endpoint, error)
	Client    *http.Client // made by NewClient
	Now       func() time.Time
	Rand      io.Reader // of jitter and lease ids; safe for concurrent use
	Logger    *slog.Logger
	Wake      <-chan struct{} // says that something new is due; never closed
	Metrics   *Metrics        // made by NewMetrics; nil for none
	Limits    Limits
}

// elsewhere is how long a queue is left to the other workers that serve it.
const elsewhere = 50 * time.Millisecond

// observeEvery is how often the oldest delivery that is due is looked for.
const observeEvery = time.Second

// finished tells that an exchange is over.
type finished struct {
	lane    *lane
	outcome store.Outcome
	// abandoned is set when the delivery is still leased because the worker
	// stops, and is to be given back.
	abandoned bool
}

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
	finished  chan finished // holds one for every slot: sending never blocks
	abandoned map[string][]int64
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
			newLane(store.FirstLane, "first", limits.First, limits.Doubtful),
			newLane(store.RetryLane, "retry", limits.Retries, limits.Doubtful),
		},
		merchants: make(map[string]*merchant),
		seen:      unknown,
		survey:    surveyor{results: make(chan survey, 1), expiries: make(chan bool, 1)},
		work:      work,
		recorder:  &recorder{Worker: &configured},
		finished:  make(chan finished, limits.First+limits.Retries+2*limits.Doubtful),
		abandoned: make(map[string][]int64),
	}
	woken := true
	for ctx.Err() == nil {
		woken = r.wait(ctx, r.fill(ctx, woken))
	}
	return r.stop()
}

// fill learns what is new, leases as much as the lanes have room for and
// starts it. It returns when to do so again at the latest.
func (r *run) fill(ctx context.Context, woken bool) time.Duration {
	now := r.Now()
	if err := r.learn(now, woken); err != nil {
		r.Logger.ErrorContext(ctx, "the schedule of webhook deliveries cannot be read; trying again", "error", err)
		return r.Limits.Poll
	}
	r.observe(now)
	again := false
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
	nowMS, oldest := now.UnixMilli(), int64(0)
	for _, l := range r.lanes {
		for m, q := range l.roster.heads {
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
		if m.restedMS <= nowMS+elsewhere.Milliseconds() { // unless the clock was set back
			heldUntilMS = max(heldUntilMS, m.restedMS)
		}
		if l.ending[merchantID] {
			heldUntilMS = 0
		}
		l.roster.place(merchantID, m.breaker.Steady, len(m.busy) >= m.allowed(r.Limits.PerMerchant), heldUntilMS, nowMS)
	}
}

// fillLane asks for each queue of the lane that is due once, as far as there
// is room. It reports whether to go on at once, after a look at what is new:
// with doubtful endpoints beyond the first few.
func (r *run) fillLane(l *lane, now time.Time) (more bool, err error) {
	for m, ok := l.roster.woken(now.UnixMilli()); ok; m, ok = l.roster.woken(now.UnixMilli()) {
		r.place(m, now.UnixMilli())
	}
	asked := make(map[string]bool)
	gently := atOnce
	for {
		steady, doubtful := l.room(now)
		steady, doubtful = max(0, steady), max(0, doubtful)
		turns, more := l.roster.turns(steady, min(doubtful, gently), asked)
		if len(turns) == 0 {
			return more && gently == 0 && doubtful > 0, nil
		}
		started, err := r.lease(l, turns, steady, min(doubtful, gently), now)
		if err != nil {
			return false, err
		}
		gently -= started
	}
}

// lease leases from queues and starts what it got. It returns how many of the
// exchanges are with doubtful endpoints.
func (r *run) lease(l *lane, turns []store.Queue, steady, doubtful int, now time.Time) (started int, err error) {
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	until := now.Add(r.Limits.Lease)
	leaseID := r.ids.New("lse_")
	leased, err := r.Store.LeaseDeliveries(ctx, store.LeaseRequest{
		LeaseID: leaseID, NowMS: now.UnixMilli(), UntilMS: until.UnixMilli(), Lane: l.name, Queues: turns,
		Deliverer: r.id, Busy: r.busy(turns), Steady: steady, Doubtful: doubtful, PerMerchant: r.Limits.PerMerchant, LastMS: lastFrom.Milliseconds(),
	})
	if err != nil {
		return 0, err
	}
	for _, q := range leased.Queues {
		delete(l.ending, q.MerchantID)
		l.roster.set(q.Queue)
		r.learned(q.MerchantID, q.Breaker)
	}
	endpoints, err := r.endpoints(ctx, leased.Deliveries)
	if err != nil {
		seqs := make([]int64, len(leased.Deliveries))
		for i, d := range leased.Deliveries {
			seqs[i] = d.Seq
			l.roster.add(store.Queue{MerchantID: d.MerchantID, HeadMS: d.DueMS, HeadSeq: d.Seq})
		}
		_, giveBack := r.Store.ReleaseDeliveries(ctx, leaseID, seqs)
		err = errors.Join(err, giveBack)
		leased.Deliveries = nil
	}
	for _, d := range leased.Deliveries {
		m := r.know(d.MerchantID)
		m.busy = append(m.busy, d.Seq)
		if d.Doubtful {
			l.begun++
			started++
		} else {
			l.flights[d.Seq] = now
		}
		r.Metrics.inFlight.WithLabelValues(l.label).Inc()
		endpoint, configured := endpoints[d.MerchantID]
		go func() {
			o, recorded := r.deliver(r.work, job{d, leaseID, until, endpoint, configured}, r.recorder)
			r.finished <- finished{lane: l, outcome: o, abandoned: !recorded && r.work.Err() != nil}
		}()
	}
	for _, q := range turns {
		m := r.know(q.MerchantID)
		if head, ok := l.roster.heads[q.MerchantID]; ok && head.HeadMS <= now.UnixMilli() && len(m.busy) == 0 {
			m.restedMS = now.Add(elsewhere).UnixMilli() // others serve it, or have it full
		}
		r.place(q.MerchantID, now.UnixMilli())
	}
	return started, err
}

// busy returns what is under way of the merchants.
func (r *run) busy(turns []store.Queue) map[string][]int64 {
	busy := make(map[string][]int64)
	for _, t := range turns {
		if seqs := r.know(t.MerchantID).busy; len(seqs) > 0 {
			busy[t.MerchantID] = seqs
		}
	}
	return busy
}

func (r *run) endpoints(ctx context.Context, deliveries []store.Delivery) (map[string]Endpoint, error) {
	seen := make(map[string]bool)
	var ids []string
	for _, d := range deliveries {
		if !seen[d.MerchantID] {
			seen[d.MerchantID] = true
			ids = append(ids, d.MerchantID)
		}
	}
	if ids == nil {
		return nil, nil
	}
	found, err := r.Endpoints(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("look up webhook endpoints: %w", err)
	}
	return found, nil
}

// learned notes how a merchant's breaker is now.
func (r *run) learned(merchantID string, b store.Breaker) {
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
		r.surveyed(found, r.Now())
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

func (r *run) free(f finished) {
	d := f.outcome.Delivery
	if f.abandoned {
		r.abandoned[f.outcome.LeaseID] = append(r.abandoned[f.outcome.LeaseID], d.Seq)
	}
	if f.outcome.NextDueMS != 0 {
		r.lanes[1].roster.add(store.Queue{MerchantID: d.MerchantID, HeadMS: f.outcome.NextDueMS, HeadSeq: d.Seq})
	}
	if d.Doubtful {
		f.lane.begun--
	} else {
		delete(f.lane.flights, d.Seq)
	}
	r.Metrics.inFlight.WithLabelValues(f.lane.label).Dec()
	m := r.know(d.MerchantID)
	m.busy = slices.DeleteFunc(m.busy, func(seq int64) bool { return seq == d.Seq })
	if f.outcome.Change != nil {
		r.learned(d.MerchantID, f.outcome.Change(m.breaker))
	}
	r.place(d.MerchantID, r.Now().UnixMilli())
}

// stop waits for what is under way and gives back what was not finished.
func (r *run) stop() error {
	for _, l := range r.lanes {
		for l.underWay() > 0 {
			r.free(<-r.finished)
		}
	}
	r.survey.wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), storeTimeout)
	defer cancel()
	var errs []error
	for leaseID, seqs := range r.abandoned {
		n, err := r.Store.ReleaseDeliveries(ctx, leaseID, seqs)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.Logger.InfoContext(ctx, "webhook deliveries given back unfinished", "deliveries", n)
	}
	// Who holds leases yet stays enlisted until they end.
	if len(errs) == 0 && !r.enlisted.IsZero() {
		errs = append(errs, r.Store.Discharge(ctx, r.id))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the webhook worker: deliveries that were not given back fall due when their leases end: %w", err)
	}
	return nil
}
