package deliver

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/store"
)

// job is a delivery, the lease on it, and where it goes.
type job struct {
	store.Delivery
	leaseID  string
	until    time.Time // when the lease ends
	endpoint Endpoint
}

// deliver makes one attempt and has its outcome recorded.
func (w *Worker) deliver(ctx context.Context, j job, r *recorder) finished {
	o := store.Outcome{Delivery: j.Delivery, LeaseID: j.leaseID}
	o.Delivery.Body = nil // it is of no more use
	started, due := w.Now(), w.Schedule()
	deadline := time.UnixMilli(j.DeadlineMS)
	// After a long outage of this service one attempt is owed all the same.
	if due.After(deadline) && j.Attempts > j.Since {
		w.Metrics.failed.Inc()
		w.lines.add("late:"+j.MerchantID, func(count int) {
			w.Logger.ErrorContext(ctx, "webhook deliveries failed: their deadlines passed before they could be attempted again",
				"merchant", j.MerchantID, "delivery", j.ID, "deliveries", count)
		})
		o.Status, o.FinishedMS = store.DeliveryFailed, started.UnixMilli()
		return finished{outcome: o, recorded: r.record(ctx, j, o)}
	}
	a := w.exchange(ctx, j.endpoint, message{id: j.ID, event: j.EventType, body: j.Body}, started)
	if a.severed {
		w.lines.add("severed:"+j.MerchantID, func(count int) {
			w.Logger.ErrorContext(ctx, "webhook exchanges did not end within their time limit; their connections were closed",
				"merchant", j.MerchantID, "delivery", j.ID, "exchanges", count)
		})
	}
	if a.err != nil && ctx.Err() != nil {
		return finished{outcome: o} // cut off by this worker, which says nothing of the endpoint
	}
	if a.fault != faultTheirs {
		w.lines.add("fault", func(count int) {
			w.Logger.ErrorContext(ctx, "webhook deliveries put back: this process ran out of a resource", "deliveries", count, "error", a.err)
		})
		return finished{outcome: o, fault: a.fault}
	}
	over := w.Schedule()
	took := max(0, over.Sub(due)) // by the schedule's clock, which is never set
	v := w.verdict(a, due, due.Add(took))
	o.Change = func(b store.Breaker) store.Breaker { return after(b, v, w.Limits.PerMerchant) }
	made := a.attempt(j.Attempts+1, started, took)
	o.Attempt = &made
	o.Status, o.FinishedMS = store.DeliveryDelivered, w.Now().UnixMilli()
	if a.err != nil {
		if next, more := retryAt(o.Attempt.Number-j.Since, over, deadline, a.retryAfter, w.jitter()); more {
			o.Status, o.FinishedMS, o.NextDueMS = store.DeliveryPending, 0, next.UnixMilli()
		} else {
			o.Status = store.DeliveryFailed
		}
	}
	w.report(ctx, j, o, took)
	return finished{outcome: o, recorded: r.record(ctx, j, o)}
}

// report logs and measures an attempt. Of what repeats at one endpoint, one line
// a minute is logged, with the number of those that it stands for.
func (w *Worker) report(ctx context.Context, j job, o store.Outcome, took time.Duration) {
	w.Metrics.observeAttempt(o.Status, took)
	a := *o.Attempt
	if a.StatusCode == http.StatusGone {
		w.lines.add("gone:"+j.MerchantID, func(count int) {
			w.Logger.ErrorContext(ctx, "webhook endpoint is gone: it answered 410; its events wait until their deadlines, and it is tried once an hour",
				"merchant", j.MerchantID, "answers", count)
		})
	}
	about := func(more ...any) []any {
		return append([]any{"merchant", j.MerchantID, "delivery", j.ID, "event", j.EventType, "attempt", a.Number, "took", took}, more...)
	}
	switch o.Status {
	case store.DeliveryDelivered:
		if w.Logger.Enabled(ctx, slog.LevelDebug) {
			w.Logger.DebugContext(ctx, "webhook delivered", about()...)
		}
	case store.DeliveryPending:
		w.lines.add("attempt:"+j.MerchantID, func(count int) {
			w.Logger.WarnContext(ctx, "webhook attempts failed", about("attempts", count, "error", a.Error, "next", time.UnixMilli(o.NextDueMS).UTC())...)
		})
	case store.DeliveryNone: // of an event that is not delivered
	case store.DeliveryFailed:
		w.Metrics.failed.Inc()
		w.lines.add("failed:"+j.MerchantID, func(count int) {
			w.Logger.ErrorContext(ctx, "webhook deliveries failed: no attempt is left", about("deliveries", count, "error", a.Error)...)
		})
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
