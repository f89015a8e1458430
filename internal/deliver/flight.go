package deliver

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

// flight is an attempt under way: an exchange, and the recording of its
// outcome.
type flight struct {
	job
	lane  *lane
	began time.Time // of the real clock, since no other says how long it takes
	task  *watchdog.Task
}

// finished tells that a flight is over.
type finished struct {
	flight  *flight
	outcome delivery.Outcome
	// recorded is set when the delivery is off the worker's hands: its outcome was
	// recorded, or someone else has leased it.
	recorded bool
	// fault is whose fault it is that there was no attempt to record.
	fault poster.Fault
	// abandoned is set when the delivery is still leased because the worker
	// stops, and is to be given back.
	abandoned bool
}

// begin starts an attempt.
func (r *run) begin(l *lane, j job, now time.Time) {
	f := &flight{job: j, lane: l, began: time.Now(), task: r.Watchdog.Begin("deliveries: attempt")}
	r.flights[f] = struct{}{}
	m := r.know(j.MerchantID)
	m.busy = append(m.busy, j.Seq)
	if j.Suspect {
		l.begun++
	} else {
		l.flights[f] = now
	}
	r.Metrics.inFlight.WithLabelValues(l.label).Inc()
	recorder := r.recorder
	go func() {
		over := r.deliver(r.work, j, recorder)
		over.flight, over.abandoned = f, !over.recorded && r.work.Err() != nil
		f.task.End()
		select {
		case r.finished <- over:
		case <-r.over:
		}
	}()
}

// free takes in what became of an exchange, and gives its slot to others. Of one
// that was given up before, others have taken care.
func (r *run) free(f finished) {
	if _, ok := r.flights[f.flight]; !ok {
		return
	}
	d := f.outcome.Delivery
	switch {
	case f.fault != poster.FaultTheirs:
		r.putBack(f)
	case f.abandoned:
		r.abandoned[f.outcome.LeaseID] = append(r.abandoned[f.outcome.LeaseID], d.Seq)
	}
	if f.outcome.NextDueMS != 0 {
		r.lanes[1].roster.add(delivery.Queue{MerchantID: d.MerchantID, HeadMS: f.outcome.NextDueMS, HeadSeq: d.Seq})
	}
	r.vacate(f.flight)
	if f.outcome.Change != nil {
		r.learned(d.MerchantID, f.outcome.Change(r.know(d.MerchantID).breaker))
	}
	r.place(d.MerchantID, r.Schedule().UnixMilli())
}

// vacate gives a flight's slot to others.
func (r *run) vacate(f *flight) {
	delete(r.flights, f)
	if f.Suspect {
		f.lane.begun--
	} else {
		delete(f.lane.flights, f)
	}
	r.Metrics.inFlight.WithLabelValues(f.lane.label).Dec()
	m := r.know(f.MerchantID)
	m.busy = slices.DeleteFunc(m.busy, func(seq int64) bool { return seq == f.Seq })
}

// reap takes the slots of flights that make no progress, whatever the cause. The
// leases on their deliveries have ended: whoever is free takes them up.
func (r *run) reap() {
	if time.Since(r.reaped) < min(observeEvery, r.Limits.Stall) {
		return
	}
	r.reaped = time.Now()
	held := len(r.flights)
	for f := range r.flights {
		if took := time.Since(f.began); took >= r.Limits.Stall {
			r.Logger.ErrorContext(r.work, "webhook delivery makes no progress; its slot goes to others",
				"delivery", f.ID, "merchant", f.MerchantID, "for", took.Round(time.Second))
			r.Metrics.stalled.Inc()
			f.task.Replace()
			r.vacate(f)
			f.lane.roster.add(delivery.Queue{MerchantID: f.MerchantID, HeadMS: f.DueMS, HeadSeq: f.Seq})
			r.place(f.MerchantID, r.Schedule().UnixMilli())
		}
	}
	if len(r.flights) < held { // it may be the recorder that they wait for
		r.recorder = &recorder{Worker: r.Worker}
	}
}

// stop waits for what is under way and gives back what was not finished. Once
// the grace is over it waits for nothing that does not end.
func (r *run) stop() error {
	task := r.Watchdog.Begin("deliveries: stop")
	defer task.End()
	patience, forget := context.WithCancel(context.Background())
	defer forget()
	defer context.AfterFunc(r.work, func() {
		timer := time.NewTimer(stopTimeout)
		defer timer.Stop()
		select {
		case <-timer.C:
			forget()
		case <-patience.Done():
		}
	})()
	for len(r.flights) > 0 && patience.Err() == nil {
		select {
		case f := <-r.finished:
			r.free(f)
		case <-patience.Done():
			r.Logger.ErrorContext(patience, "webhook deliveries did not end; they fall due when their leases end", "deliveries", len(r.flights))
		}
	}
	r.giveBack(r.work)
	r.lines.flush(true)
	stuck := len(r.flights) > 0
	if !stuck {
		stuck = !r.survey.wait(patience)
	}
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
	if len(errs) == 0 && !stuck && !r.enlisted.IsZero() {
		errs = append(errs, r.Store.DeregisterWorker(ctx, r.id))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the webhook worker: deliveries that were not given back fall due when their leases end: %w", err)
	}
	return nil
}
