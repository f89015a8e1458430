package deliver

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/store"
)

const (
	// surveyEvery is the longest time between two surveys.
	surveyEvery = 5 * time.Second
	// expireEvery is the shortest time between two looks for what ran out of
	// time, unless the first left something over.
	expireEvery = time.Minute
	// maxKnown is of how many merchants at most a worker remembers, beyond those
	// that have something waiting, how their endpoints do.
	maxKnown = 65_536
)

const (
	// expireMerchants is how many merchants' queues one transaction looks
	// through for what ran out of time, and expireBatch how many deliveries it
	// fails at most: others wait for it. After so many transactions the rest is
	// left to the next survey.
	expireMerchants = 64
	expireBatch     = 256
	expireBatches   = 64
)

// unknown is the number of the newest event that the rosters know of, before
// the first survey.
const unknown = -1

// survey is what the schedule holds, whoever put it there.
type survey struct {
	number   int // of the survey
	queues   map[delivery.Lane][]delivery.Queue
	breakers map[string]delivery.Breaker // of their merchants
	counts   map[delivery.BreakerState]int64
	reached  map[string]poster.Endpoint // of merchants that had none
	err      error
}

// surveyor makes surveys beside the work, one at a time: while a long snapshot
// is open on PostgreSQL they take long.
type surveyor struct {
	begun   time.Time
	count   int  // of those begun
	under   bool // way
	wanted  bool // another, at once
	results chan survey
	// What ran out of time is failed beside the work, too, and apart from
	// surveys: they must come whatever becomes of it.
	expired  time.Time // when that began last, and left nothing over
	expiring bool
	expiries chan bool // whether it left something over
	group    sync.WaitGroup
}

// wait waits for what is under way until the context ends, and reports whether
// all of it is over.
func (s *surveyor) wait(ctx context.Context) bool {
	over := make(chan struct{})
	go func() {
		s.group.Wait()
		close(over)
	}()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// learn brings the rosters up to date. What this process and others committed
// since the last look stands in the log of events. If somebody says that there
// is something new and it does not stand there, it is a delivery to be made
// again, and a survey finds it.
func (r *run) learn(now time.Time, woken bool) error {
	ctx, cancel := context.WithTimeout(r.work, storeTimeout)
	defer cancel()
	if err := r.enlist(ctx, now); err != nil {
		return err
	}
	if r.seen == unknown {
		seen, err := r.Store.LastSeq(ctx)
		if err != nil {
			return err
		}
		// It may take long, as every survey, and without it nothing is known.
		ctx, cancel := context.WithTimeout(r.work, surveyTimeout)
		defer cancel()
		r.survey.begun = now
		r.survey.count++
		found := r.look(ctx, r.survey.count, nil)
		if found.err != nil {
			return found.err
		}
		r.seen, r.looked = seen, now
		r.surveyed(found, now)
		return nil
	}
	quiet := false
	if since := now.Sub(r.looked); woken || since >= r.Limits.Poll || since < 0 {
		before := r.seen
		for more := true; more; {
			var queues []delivery.Queue
			var err error
			if queues, r.seen, more, err = r.Store.News(ctx, r.seen); err != nil {
				return err
			}
			for _, q := range queues {
				r.lanes[0].roster.add(q)
				r.place(q.MerchantID, now.UnixMilli())
			}
		}
		r.looked = now
		quiet = woken && r.seen == before
	}
	// One that is under way may have passed by what there is new.
	r.survey.wanted = r.survey.wanted || quiet
	if !r.survey.under && (r.survey.wanted || now.Sub(r.survey.begun) >= surveyEvery) {
		r.survey.begun, r.survey.under, r.survey.wanted = now, true, false
		r.survey.count++
		number, waiting := r.survey.count, r.waitingNow()
		r.survey.group.Go(func() {
			task := r.Watchdog.Begin("deliveries: survey")
			defer task.End()
			ctx, cancel := context.WithTimeout(r.work, surveyTimeout)
			defer cancel()
			r.survey.results <- r.look(ctx, number, waiting)
		})
	}
	return nil
}

// enlist lets the others know in time that this one may hold leases.
func (r *run) enlist(ctx context.Context, now time.Time) error {
	if now.Add(2 * r.Limits.Lease).Before(r.enlisted) {
		return nil
	}
	until := now.Add(4 * r.Limits.Lease)
	if err := r.Store.RegisterWorker(ctx, r.registration(), now.UnixMilli(), until.UnixMilli()); err != nil {
		return err
	}
	r.enlisted = until
	return nil
}

func (r *run) registration() store.Worker {
	return store.Worker{ID: r.id, Endpoints: r.Configured}
}

// look makes a survey, and asks for the endpoints of merchants that had none.
func (r *run) look(ctx context.Context, number int, waiting []string) (found survey) {
	found.number = number
	found.queues = make(map[delivery.Lane][]delivery.Queue)
	var merchants []string
	for _, l := range r.lanes {
		if found.queues[l.name], found.err = r.Store.Queues(ctx, l.name); found.err != nil {
			return found
		}
		for _, q := range found.queues[l.name] {
			merchants = append(merchants, q.MerchantID)
		}
	}
	slices.Sort(merchants)
	if found.breakers, found.err = r.Store.Breakers(ctx, slices.Compact(merchants)); found.err != nil {
		return found
	}
	if found.counts, found.err = r.Store.BreakerCounts(ctx); found.err != nil || len(waiting) == 0 {
		return found
	}
	found.reached, found.err = r.Endpoints(ctx, waiting)
	return found
}

// expireAll begins to fail what a survey found to have run out of time: behind
// an open breaker nothing would take it up.
func (r *run) expireAll(queues map[delivery.Lane][]delivery.Queue, now time.Time) {
	if r.survey.expiring || now.Sub(r.survey.expired) < expireEvery {
		return
	}
	var late []string
	for _, l := range r.lanes {
		for _, q := range queues[l.name] {
			if q.EndMS < now.UnixMilli() {
				late = append(late, q.MerchantID)
			}
		}
	}
	if late == nil {
		return
	}
	slices.Sort(late)
	late = slices.Compact(late)
	unreachable := maps.Clone(r.waiting)
	r.survey.expired, r.survey.expiring = now, true
	r.survey.group.Go(func() {
		task := r.Watchdog.Begin("deliveries: fail what ran out of time")
		defer task.End()
		ctx, cancel := context.WithTimeout(r.work, surveyTimeout)
		defer cancel()
		more, err := r.expire(ctx, late, unreachable, now.UnixMilli())
		if err != nil && r.work.Err() == nil {
			r.Logger.ErrorContext(ctx, "webhook deliveries whose deadlines passed cannot be failed; trying again", "error", err)
		}
		r.survey.expiries <- more
	})
}

// expire fails what ran out of time, and reports whether there is more than it
// does at once.
func (r *run) expire(ctx context.Context, merchantIDs []string, unreachable map[string]bool, nowMS int64) (more bool, err error) {
	batches := expireBatches
	for part := range slices.Chunk(merchantIDs, expireMerchants) {
		request := store.ExpireRequest{Worker: r.registration(), MerchantIDs: part, Unreachable: make(map[string]bool), NowMS: nowMS, Limit: expireBatch}
		for _, id := range part {
			if unreachable[id] {
				request.Unreachable[id] = true
			}
		}
		for again := true; again; batches-- {
			if batches == 0 {
				return true, nil
			}
			var expired map[string]int
			if expired, again, err = r.Store.ExpireDeliveries(ctx, request); err != nil {
				return false, err
			}
			for merchantID, n := range expired {
				r.Metrics.failed.Add(float64(n))
				why := "their deadlines passed while the endpoint was left alone"
				if unreachable[merchantID] {
					why = "the merchant has had no endpoint for 24 hours"
				}
				r.lines.addMany("expired:"+merchantID, n, func(count int) {
					r.Logger.ErrorContext(r.work, "webhook deliveries failed", "reason", why, "merchant", merchantID, "deliveries", count)
				})
			}
			again = again && len(expired) > 0 // what is under way is none of ours
		}
	}
	return false, nil
}

// surveyed takes in a survey. What this worker learned of a breaker since the
// survey began is newer.
func (r *run) surveyed(found survey, now time.Time) {
	r.survey.under = false
	if found.err != nil {
		if r.work.Err() == nil {
			r.Logger.ErrorContext(r.work, "the queues of webhook deliveries cannot be surveyed; trying again", "error", found.err)
		}
		return
	}
	for id, b := range found.breakers {
		if m := r.know(id); m.looked < found.number {
			m.breaker = b
		}
	}
	for _, l := range r.lanes {
		clear(l.ending)
		for _, q := range found.queues[l.name] {
			l.roster.add(q)
			if q.EndMS-delivery.FinalWindow.Milliseconds() <= now.UnixMilli() {
				l.ending[q.MerchantID] = true
			}
		}
	}
	for id := range found.breakers {
		r.place(id, now.UnixMilli())
	}
	if len(r.merchants) > maxKnown {
		maps.DeleteFunc(r.merchants, func(id string, m *merchant) bool { return len(m.busy) == 0 && !m.unreachable && !r.queued(id) })
	}
	r.reached(found.reached, now.UnixMilli())
	r.Metrics.observeBreakers(found.counts)
	r.expireAll(found.queues, now)
}

func (r *run) queued(merchantID string) bool {
	for _, l := range r.lanes {
		if _, ok := l.roster.heads[merchantID]; ok {
			return true
		}
	}
	return false
}
