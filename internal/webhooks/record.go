package webhooks

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
)

const (
	// recordBatch is the maximum number of outcomes in one transaction.
	recordBatch = 256
	// recordFailures caps failures per batch; a larger backlog raises the cap to its recordShare-th part. Failures cost
	// more to record, and come together when endpoints hang together. So successes are recorded first, and other
	// writers get the database in between.
	recordFailures, recordShare = 8, 8
	// recordPause is the time between two batches while no delivery waits for a slot, so that outcomes that do not
	// arrive together share a batch, too.
	recordPause = 50 * time.Millisecond
)

// recorder writes outcomes that arrive together in one transaction.
type recorder struct {
	*Worker
	batches *db.Batcher[unrecorded, bool]
	// hurry is set while deliveries wait for the slots of unrecorded outcomes, and hurried signals that it was set.
	hurry   atomic.Bool
	hurried chan struct{}
	// recording ends when outcomes are no longer recorded.
	recording context.Context
}

// unrecorded is an outcome with a goroutine that waits for it to be recorded.
type unrecorded struct {
	outcome Outcome
	until   time.Time // when the lease ends
}

// recordCall is one call of record.
type recordCall = db.Call[unrecorded, bool]

func newRecorder(recording context.Context, w *Worker) *recorder {
	r := &recorder{Worker: w, hurried: make(chan struct{}, 1), recording: recording}
	r.batches = db.NewBatcher(db.BatchConfig[unrecorded, bool]{Lanes: 1, Take: takeOutcomes, Flush: r.flush})
	return r
}

// record writes the outcome, and retries until the lease ends. It reports whether the worker is done with the delivery:
// its outcome was recorded, or another worker has leased it.
func (r *recorder) record(ctx context.Context, j job, o Outcome) bool {
	return <-r.batches.Submit(ctx, unrecorded{o, j.until})
}

// setHurry sets whether deliveries wait for slots.
func (r *recorder) setHurry(hurry bool) {
	if !r.hurry.Swap(hurry) && hurry {
		clock.Wake(r.hurried)
	}
}

// takeOutcomes returns the next batch. Outcomes of one merchant keep their order.
func takeOutcomes(waiting []*recordCall) (next, rest []*recordCall) {
	isFailure := func(c *recordCall) bool { return c.Value.outcome.Status != Delivered }
	failures := 0
	for _, c := range waiting {
		if isFailure(c) {
			failures++
		}
	}
	failures = max(recordFailures, failures/recordShare)
	behind := make(map[string]bool) // merchants with an outcome in rest
	for _, c := range waiting {
		id := c.Value.outcome.Delivery.MerchantID
		if behind[id] || len(next) == recordBatch || isFailure(c) && failures == 0 {
			behind[id] = true
			rest = append(rest, c)
			continue
		}
		if isFailure(c) {
			failures--
		}
		next = append(next, c)
	}
	return next, rest
}

// flush records a batch and pauses, so that the next one gathers outcomes.
func (r *recorder) flush(ctx context.Context, calls []*recordCall) {
	r.recordAll(ctx, calls)
	if !r.hurry.Load() {
		clock.Sleep(ctx, recordPause, r.hurried)
	}
}

// recordAll records outcomes. If the database refuses a batch for another reason than its own condition, the batch is
// divided, so that an outcome that cannot be recorded delays no others.
func (r *recorder) recordAll(ctx context.Context, calls []*recordCall) {
	for len(calls) > 0 {
		lost, err := r.finish(calls)
		if err == nil {
			for i, c := range calls {
				if slices.Contains(lost, i) {
					r.conf.Logger.WarnContext(ctx, "outcome of a webhook delivery dropped: another worker has leased it",
						"delivery", c.Value.outcome.Delivery.ID)
				}
				c.Finish(true)
			}
			return
		}
		if refused := r.recording.Err() == nil && !errors.Is(err, context.DeadlineExceeded) && !db.Unavailable(err); refused {
			r.divide(ctx, calls, err)
			return
		}
		r.conf.Logger.ErrorContext(ctx, "record of webhook outcomes failed, will retry while their leases last",
			"deliveries", len(calls), "err", err)
		timer := time.NewTimer(recordRetry)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		calls = slices.DeleteFunc(calls, func(c *recordCall) bool {
			over := ctx.Err() != nil || !r.conf.Schedule().Before(c.Value.until)
			if over {
				c.Finish(false)
			}
			return over
		})
	}
}

// divide records the halves of a batch that the database refused. It drops a single outcome: its delivery falls due when
// its lease ends.
func (r *recorder) divide(ctx context.Context, calls []*recordCall, err error) {
	if half := len(calls) / 2; half > 0 {
		r.recordAll(ctx, calls[:half])
		r.recordAll(ctx, calls[half:])
		return
	}
	d := calls[0].Value.outcome.Delivery
	r.conf.Logger.ErrorContext(ctx, "outcome of a webhook delivery dropped: it cannot be recorded", "merchant", d.MerchantID, "delivery", d.ID, "err", err)
	calls[0].Finish(false)
}

// finish writes outcomes even while the worker stops, because a message that a receiver accepted should not be sent
// again.
func (r *recorder) finish(calls []*recordCall) ([]int, error) {
	task := r.conf.Watchdog.Begin("deliveries: record")
	defer task.End()
	ctx, cancel := context.WithTimeout(r.recording, storeTimeout)
	defer cancel()
	outcomes := db.Each(calls, func(c *recordCall) Outcome { return c.Value.outcome })
	return r.conf.Store.FinishDeliveries(ctx, outcomes)
}
