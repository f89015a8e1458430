package webhooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// sending is an attempt in flight: an exchange, and the recording of its outcome.
type sending struct {
	job
	began time.Time // by time.Now, not by the schedule's clock
	task  *clock.Task
}

// lane is the label of the metrics.
func (j job) lane() string {
	if j.Attempts > 0 {
		return "retry"
	}
	return "first"
}

// finished is the end of an attempt.
type finished struct {
	attempt *sending
	outcome Outcome
	// recorded is set when the worker is done with the delivery: its outcome was recorded, or another worker has leased
	// it.
	recorded bool
	// fault is the reason why there is no outcome to record, unless the endpoint is at fault.
	fault Fault
	// abandoned is set if the worker stopped the attempt: its lease must be released.
	abandoned bool
}

// start starts an attempt.
func (r *run) start(j job, now time.Time) {
	f := &sending{job: j, began: time.Now(), task: r.conf.Watchdog.Begin("deliveries: attempt")}
	r.attempts[f] = struct{}{}
	m := r.schedule.merchant(j.MerchantID)
	m.inFlight = append(m.inFlight, j.Seq)
	if j.Suspect {
		r.slots.suspectAttempts++
	} else {
		r.slots.attempts[f] = now
	}
	r.conf.Metrics.inFlight.WithLabelValues(j.lane()).Inc()
	recorder := r.recorder
	go func() {
		over := r.deliver(r.work, j, recorder)
		over.attempt, over.abandoned = f, !over.recorded && r.work.Err() != nil
		f.task.End()
		r.inbox.put(func(m *mail) { m.finished = append(m.finished, over) })
	}()
}

// finish processes the end of an attempt and frees its slot. A stalled attempt has lost its slot before.
func (r *run) finish(f finished) {
	if _, ok := r.attempts[f.attempt]; !ok {
		return
	}
	d := f.outcome.Delivery
	switch {
	case f.fault != FaultTheirs:
		r.putBack(f)
	case f.abandoned:
		r.giveBack(f.outcome.LeaseID, d.Seq)
	}
	if !f.outcome.NextDue.IsZero() {
		r.schedule.add(Queue{MerchantID: d.MerchantID, Head: f.outcome.NextDue, HeadSeq: d.Seq})
	}
	r.freeSlot(f.attempt)
	if f.outcome.Change != nil {
		r.setBreaker(d.MerchantID, f.outcome.Change(r.schedule.merchant(d.MerchantID).breaker))
	}
	r.place(d.MerchantID, r.conf.Schedule())
}

// freeSlot gives an attempt's slot to others.
func (r *run) freeSlot(f *sending) {
	delete(r.attempts, f)
	if f.Suspect {
		r.slots.suspectAttempts--
	} else {
		delete(r.slots.attempts, f)
	}
	r.conf.Metrics.inFlight.WithLabelValues(f.lane()).Dec()
	m := r.schedule.merchant(f.MerchantID)
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
			r.schedule.add(Queue{MerchantID: f.MerchantID, Head: f.Due, HeadSeq: f.Seq})
			r.place(f.MerchantID, r.conf.Schedule())
		}
	}
	if len(r.attempts) < held { // the rest may wait for the recorder
		r.recorder = newRecorder(r.recording, r.Worker)
	}
}

// drain waits until no delivery is in flight, or the context ends. It returns the leases that arrive.
func (r *run) drain(patience context.Context) {
	for {
		r.returnMail(r.inbox.take())
		if len(r.attempts)+len(r.running()) == 0 {
			return
		}
		select {
		case <-r.inbox.arrived:
		case <-patience.Done():
			r.conf.Logger.ErrorContext(patience, "webhook attempts did not end, their deliveries fall due when their leases end", "deliveries", len(r.attempts))
			return
		}
	}
}

// returnMail records attempts that ended, and gives back new leases without starting attempts.
func (r *run) returnMail(m mail) {
	for _, f := range m.finished {
		r.finish(f)
	}
	for _, q := range m.leases {
		r.endRequest(q)
		for _, d := range q.leased.Deliveries {
			r.giveBack(q.LeaseID, d.Seq)
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
	r.drain(patience)
	released, err := r.release(r.work)
	if released > 0 {
		r.conf.Logger.InfoContext(r.work, "webhook deliveries released unfinished", "deliveries", released)
	}
	r.log.flush(true)
	r.resync.wait(patience)
	if err != nil {
		return fmt.Errorf("stop the webhook worker: deliveries that were not released fall due when their leases end: %w", err)
	}
	return nil
}
