package deliver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/quittance/quittance/internal/store"
)

// errNoEndpoint is recorded for an attempt that had nowhere to go. It counts
// as one: the merchant has until the deadline to configure an endpoint.
var errNoEndpoint = errors.New("no webhook URL is configured")

// job is a delivery and the lease on it.
type job struct {
	store.Delivery
	leaseID string
	until   time.Time // when the lease ends
}

// deliver makes one attempt and records its outcome. It reports whether the
// delivery is off its hands: recorded, or leased by someone else by now.
func (w *Worker) deliver(ctx context.Context, j job) bool {
	started := w.Now()
	deadline := time.UnixMilli(j.DeadlineMS)
	// After a long outage of this service one attempt is owed all the same.
	if started.After(deadline) && j.Attempts > 0 {
		w.Logger.ErrorContext(ctx, "webhook delivery failed: its deadline passed before it could be attempted again",
			"delivery", j.ID, "merchant", j.MerchantID, "attempts", j.Attempts)
		return w.record(ctx, j, store.Outcome{Status: store.DeliveryFailed, FinishedMS: started.UnixMilli()})
	}
	a := answer{err: errNoEndpoint}
	if endpoint, ok := w.Endpoints(j.MerchantID); ok {
		a = w.exchange(ctx, endpoint, j.Delivery, started)
	}
	if a.err != nil && ctx.Err() != nil {
		return false // cut off by this worker, which says nothing of the endpoint
	}
	ended := w.Now()
	if ended.Before(started) {
		ended = started // the clock was set back
	}
	attempt := &store.Attempt{
		Number: j.Attempts + 1, StartedMS: started.UnixMilli(), DurationMS: ended.Sub(started).Milliseconds(),
		StatusCode: a.code,
	}
	o := store.Outcome{Attempt: attempt, Status: store.DeliveryDelivered, FinishedMS: ended.UnixMilli()}
	if a.err != nil {
		attempt.Error = errorText(a.err)
		if next, more := retryAt(attempt.Number, ended, deadline, a.retryAfter, w.jitter()); more {
			o.Status, o.FinishedMS, o.NextDueMS = store.DeliveryPending, 0, next.UnixMilli()
		} else {
			o.Status = store.DeliveryFailed
		}
	}
	w.report(ctx, j, o, ended.Sub(started))
	return w.record(ctx, j, o)
}

// record writes the outcome, and tries again while the lease lasts.
func (w *Worker) record(ctx context.Context, j job, o store.Outcome) bool {
	o.DeliveryID, o.LeaseID = j.ID, j.leaseID
	for {
		err := w.finish(ctx, o)
		if err == nil {
			return true
		}
		if errors.Is(err, store.ErrConflict) {
			w.Logger.WarnContext(ctx, "outcome of a webhook delivery dropped: its lease ended and someone else has it", "delivery", j.ID)
			return true
		}
		w.Logger.ErrorContext(ctx, "outcome of a webhook delivery cannot be recorded; trying again while its lease lasts",
			"delivery", j.ID, "error", err)
		timer := time.NewTimer(recordPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		if !w.Now().Before(j.until) {
			return false
		}
	}
}

// finish writes an outcome even when the worker's time is over: what a
// receiver took should not be sent to it again.
func (w *Worker) finish(ctx context.Context, o store.Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return w.Store.FinishDelivery(ctx, o)
}

func (w *Worker) report(ctx context.Context, j job, o store.Outcome, took time.Duration) {
	w.Metrics.observeAttempt(o.Status, took)
	log := w.Logger.With("delivery", j.ID, "event", j.EventType, "merchant", j.MerchantID, "attempt", o.Attempt.Number, "took", took)
	switch o.Status {
	case store.DeliveryDelivered:
		log.DebugContext(ctx, "webhook delivered")
	case store.DeliveryPending:
		log.WarnContext(ctx, "webhook attempt failed", "error", o.Attempt.Error, "next", time.UnixMilli(o.NextDueMS).UTC())
	case store.DeliveryFailed:
		log.ErrorContext(ctx, "webhook delivery failed: no attempt is left", "error", o.Attempt.Error)
	}
}

// jitter returns a random number in [0, 1). It panics when the source of
// randomness fails, as crypto/rand never does.
func (w *Worker) jitter() float64 {
	var b [8]byte
	if _, err := io.ReadFull(w.Rand, b[:]); err != nil {
		panic(fmt.Sprintf("deliver: source of randomness failed: %v", err))
	}
	const bits = 53 // of a float64
	return float64(binary.BigEndian.Uint64(b[:])>>(64-bits)) / (1 << bits)
}
