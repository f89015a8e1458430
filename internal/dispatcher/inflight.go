package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/watchdog"
)

// attempt is an attempt in flight: an exchange, and the recording of its
// outcome.
type attempt struct {
	job
	lane  *lane
	began time.Time // by the real clock
	task  *watchdog.Task
}

// finished is the end of an attempt.
type finished struct {
	attempt *attempt
	outcome delivery.Outcome
	// recorded is set when the worker is done with the delivery: its outcome was recorded, or another worker has leased
	// it.
	recorded bool
	// fault is the reason why there is no outcome to record, unless the endpoint is at fault.
	fault poster.Fault
	// abandoned is set if the worker stopped the attempt: its lease must be released.
	abandoned bool
}

// start starts an attempt.
func (r *run) start(l *lane, j job, now time.Time) {
	f := &attempt{job: j, lane: l, began: time.Now(), task: r.conf.Watchdog.Begin("deliveries: attempt")}
	r.attempts[f] = struct{}{}
	m := r.merchant(j.MerchantID)
	m.inFlight = append(m.inFlight, j.Seq)
	if j.Suspect {
		l.suspectAttempts++
	} else {
		l.attempts[f] = now
	}
	r.conf.Metrics.inFlight.WithLabelValues(string(l.name)).Inc()
	recorder := r.recorder
	go func() {
		over := r.deliver(r.work, j, recorder)
		over.attempt, over.abandoned = f, !over.recorded && r.work.Err() != nil
		f.task.End()
		select {
		case r.finished <- over:
		case <-r.over:
		}
	}()
}

// finish processes the end of an attempt and frees its slot. A stalled attempt has lost its slot before.
func (r *run) finish(f finished) {
	if _, ok := r.attempts[f.attempt]; !ok {
		return
	}
	d := f.outcome.Delivery
	switch {
	case f.fault != poster.FaultTheirs:
		r.putBack(f)
	case f.abandoned:
		r.abandoned[f.outcome.LeaseID] = append(r.abandoned[f.outcome.LeaseID], d.Seq)
	}
	if !f.outcome.NextDue.IsZero() {
		r.lanes[1].cache.add(delivery.Queue{MerchantID: d.MerchantID, Head: f.outcome.NextDue, HeadSeq: d.Seq})
	}
	r.freeSlot(f.attempt)
	if f.outcome.Change != nil {
		r.setBreaker(d.MerchantID, f.outcome.Change(r.merchant(d.MerchantID).breaker))
	}
	r.place(d.MerchantID, r.conf.Schedule())
}

// freeSlot gives an attempt's slot to others.
func (r *run) freeSlot(f *attempt) {
	delete(r.attempts, f)
	if f.Suspect {
		f.lane.suspectAttempts--
	} else {
		delete(f.lane.attempts, f)
	}
	r.conf.Metrics.inFlight.WithLabelValues(string(f.lane.name)).Dec()
	m := r.merchant(f.MerchantID)
	m.inFlight = slices.DeleteFunc(m.inFlight, func(seq int64) bool { return seq == f.Seq })
}

// reapStalled frees the slots of attempts that make no progress, for any reason. The leases on their deliveries have
// ended: any worker may lease them.
func (r *run) reapStalled() {
	if time.Since(r.reaped) < min(observeEvery, r.conf.Limits.Stall) {
		return
	}
	r.reaped = time.Now()
	held := len(r.attempts)
	for f := range r.attempts {
		if took := time.Since(f.began); took >= r.conf.Limits.Stall {
			r.conf.Logger.ErrorContext(r.work, "webhook delivery makes no progress, its slot is freed",
				"delivery", f.ID, "merchant", f.MerchantID, "for", took.Round(time.Second))
			r.conf.Metrics.stalled.Inc()
			f.task.Replace()
			r.freeSlot(f)
			f.lane.cache.add(delivery.Queue{MerchantID: f.MerchantID, Head: f.Due, HeadSeq: f.Seq})
			r.place(f.MerchantID, r.conf.Schedule())
		}
	}
	if len(r.attempts) < held { // the rest may wait for the recorder
		r.recorder = newRecorder(r.recording, r.Worker)
	}
}

// drain waits until no attempt is in flight, or the context ends.
func (r *run) drain(patience context.Context) {
	for len(r.attempts)+r.leasing > 0 && patience.Err() == nil {
		select {
		case q := <-r.leases:
			r.endRequest(q)
			for _, d := range q.leased.Deliveries {
				r.returned[q.LeaseID] = append(r.returned[q.LeaseID], d.Seq)
			}
		case f := <-r.finished:
			r.finish(f)
		case <-patience.Done():
			r.conf.Logger.ErrorContext(patience, "webhook attempts did not end, their deliveries fall due when their leases end", "deliveries", len(r.attempts))
		}
	}
}

// stop waits for the attempts in flight and releases the leases of those that did not finish. Once the grace is over it
// waits no longer than stopTimeout.
func (r *run) stop() error {
	task := r.conf.Watchdog.Begin("deliveries: stop")
	defer task.End()
	patience, forget := outlive(r.work, stopTimeout)
	defer forget()
	r.closeHandover()
	r.drain(patience)
	r.releaseReturned(r.work)
	r.log.flush(true)
	stuck := len(r.attempts)+r.leasing > 0
	if !stuck {
		stuck = !r.resync.wait(patience)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), storeTimeout)
	defer cancel()
	var errs []error
	for leaseID, seqs := range r.abandoned {
		n, err := r.conf.Store.ReleaseDeliveries(ctx, leaseID, seqs, r.conf.Schedule())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		r.conf.Logger.InfoContext(ctx, "webhook deliveries released unfinished", "deliveries", n)
	}
	// A worker that still holds leases stays registered until they end.
	if len(errs) == 0 && !stuck && !r.registeredUntil.IsZero() {
		errs = append(errs, r.conf.Store.DeregisterWorker(ctx, r.id))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the webhook worker: deliveries that were not released fall due when their leases end: %w", err)
	}
	return nil
}
