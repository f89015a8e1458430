package deliver

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

const (
	// recordBatch is how many outcomes one transaction records at most.
	recordBatch = 256
	// recordFailures caps failures per batch; a larger backlog raises the cap to
	// its recordShare-th part. Failures cost more to record, and come all at once
	// when endpoints hang together: successes go before them, and other writers
	// get the database in between.
	recordFailures, recordShare = 8, 8
)

// recorder batches outcomes that arrive together, so that they share statements
// and a commit. None waits for a batch to fill.
type recorder struct {
	*Worker
	mu      sync.Mutex
	waiting []*unrecorded
	running bool
	last    time.Time // see lastCall
}

// unrecorded is an outcome whose goroutine waits for it to be recorded.
type unrecorded struct {
	outcome delivery.Outcome
	until   time.Time // when the lease ends
	done    chan bool
}

// record writes the outcome, and retries while the lease lasts. It reports
// whether the worker is done with the delivery: its outcome was recorded, or
// somebody else has leased it.
func (r *recorder) record(ctx context.Context, j job, o delivery.Outcome) bool {
	u := &unrecorded{o, j.until, make(chan bool, 1)}
	r.mu.Lock()
	r.waiting = append(r.waiting, u)
	if !r.running {
		r.running = true
		go r.run(ctx)
	}
	r.mu.Unlock()
	return <-u.done
}

// run records batch after batch until nothing waits.
func (r *recorder) run(ctx context.Context) {
	for {
		r.mu.Lock()
		batch := r.take()
		r.running = len(batch) > 0
		r.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		r.recordAll(ctx, batch)
	}
}

// take removes the next batch. Outcomes of one merchant keep their order.
func (r *recorder) take() (batch []*unrecorded) {
	isFailure := func(u *unrecorded) bool { return u.outcome.Status != delivery.Delivered }
	failures := 0
	for _, u := range r.waiting {
		if isFailure(u) {
			failures++
		}
	}
	failures = max(recordFailures, failures/recordShare)
	behind := make(map[string]bool) // merchants with an outcome that is left
	var left []*unrecorded
	for _, u := range r.waiting {
		id := u.outcome.Delivery.MerchantID
		if behind[id] || len(batch) == recordBatch || isFailure(u) && failures == 0 {
			behind[id] = true
			left = append(left, u)
			continue
		}
		if isFailure(u) {
			failures--
		}
		batch = append(batch, u)
	}
	r.waiting = left
	return batch
}

func (r *recorder) recordAll(ctx context.Context, batch []*unrecorded) {
	for len(batch) > 0 {
		lost, err := r.finish(ctx, batch)
		if err == nil {
			for i, u := range batch {
				if slices.Contains(lost, i) {
					r.Logger.WarnContext(ctx, "outcome of a webhook delivery dropped: another worker has leased it",
						"delivery", u.outcome.Delivery.ID)
				}
				u.done <- true
			}
			return
		}
		r.Logger.ErrorContext(ctx, "record of webhook outcomes failed, will retry while their leases last",
			"deliveries", len(batch), "err", err)
		timer := time.NewTimer(recordPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		batch = slices.DeleteFunc(batch, func(u *unrecorded) bool {
			over := ctx.Err() != nil || !r.Schedule().Before(u.until)
			if over {
				u.done <- false
			}
			return over
		})
	}
}

// finish writes outcomes even when the worker stops: what a receiver accepted
// should not be sent again.
func (r *recorder) finish(ctx context.Context, batch []*unrecorded) ([]int, error) {
	task := r.Watchdog.Begin("deliveries: record")
	defer task.End()
	ctx, cancel := r.finishing(ctx)
	defer cancel()
	outcomes := make([]delivery.Outcome, len(batch))
	for i, u := range batch {
		outcomes[i] = u.outcome
	}
	return r.Store.FinishDeliveries(ctx, outcomes)
}

// finishing returns a context for recording, which outlives the worker's by a
// while, until lastCall.
func (r *recorder) finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(time.Until(r.lastCall()))
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-recording.Done():
		}
	})
	return recording, func() { stop(); cancel() }
}

// lastCall returns until when outcomes are recorded once the worker stops: a
// little shorter than stop waits for them.
func (r *recorder) lastCall() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.IsZero() {
		r.last = time.Now().Add(stopTimeout - time.Second)
	}
	return r.last
}
