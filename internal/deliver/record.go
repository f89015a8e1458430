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
	// recordFailures is how many failures are among them: these, or of very many
	// that wait the eighth part. They cost more, and when endpoints hang together
	// they come at once: successes go before them, and what others have to write
	// comes in between.
	recordFailures, recordShare = 8, 8
)

// recorder gathers outcomes that come at the same time, so that they share
// statements and a commit. None waits for a batch to fill.
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

// record writes the outcome, and tries again while the lease lasts. It reports
// whether the delivery is off the worker's hands: recorded, or leased by
// someone else by now.
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

// take removes what is to be recorded next. Outcomes of one merchant stay in
// their order.
func (r *recorder) take() (batch []*unrecorded) {
	isFailure := func(u *unrecorded) bool { return u.outcome.Status != delivery.Delivered }
	failures := 0
	for _, u := range r.waiting {
		if isFailure(u) {
			failures++
		}
	}
	failures = max(recordFailures, failures/recordShare)
	behind := make(map[string]bool) // merchants with an outcome that waits on
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
					r.Logger.WarnContext(ctx, "outcome of a webhook delivery dropped: its lease ended and someone else has it",
						"delivery", u.outcome.Delivery.ID)
				}
				u.done <- true
			}
			return
		}
		r.Logger.ErrorContext(ctx, "outcomes of webhook deliveries cannot be recorded; trying again while their leases last",
			"deliveries", len(batch), "error", err)
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

// finish writes outcomes even when the worker's time is over: what a receiver
// took should not be sent to it again.
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

// finishing returns a context for recording: it goes on for a while when the
// worker's time is over, for all that is still to be recorded together.
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

// lastCall returns until when outcomes are recorded, once the worker's time is
// over: a little less than its stop waits for them.
func (r *recorder) lastCall() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last.IsZero() {
		r.last = time.Now().Add(stopTimeout - time.Second)
	}
	return r.last
}
