package webhooks

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// RetryWindow is how long after an event its delivery may be attempted.
const RetryWindow = 24 * time.Hour

// Status is the state of a delivery.
type Status string

// A delivery is pending until an attempt succeeds or no attempt is left. None is the status of an event without a
// delivery, because its merchant wanted no events.
const (
	Pending   Status = "pending"
	Delivered Status = "delivered"
	Failed    Status = "failed"
	None      Status = "none"
)

// Delivery is an event on its way to a merchant's endpoint.
type Delivery struct {
	ID         string
	Seq        int64 // of the event
	EventID    string
	MerchantID string
	EventType  string
	Body       []byte // the envelope, as sent
	Attempts   int    // finished attempts
	// PriorAttempts are the attempts that were finished when the present schedule began: a delivery that is sent again
	// gets a new schedule.
	PriorAttempts int
	Due           time.Time // when this attempt was due
	Deadline      time.Time // only the first attempt of the schedule may start after it
	Suspect       bool      // it was leased as a delivery to a suspect endpoint
}

// TooLate reports whether the deadline has passed. A delivery without an attempt in its present schedule is never too
// late: it gets one attempt even after a long outage of this service.
func (d Delivery) TooLate(now time.Time) bool {
	return now.After(d.Deadline) && d.Attempts > d.PriorAttempts
}

// Attempt is one exchange with a merchant's endpoint.
type Attempt struct {
	Number     int // from 1
	Started    time.Time
	Duration   time.Duration
	StatusCode int    // 100 to 999; 0 when there was no answer
	Error      string // why it failed; empty when it succeeded
	Excerpt    string // beginning of the answer's body, without secrets
	// How much of Duration each phase took, if it happened: looking up the name, connecting, the TLS handshake, and
	// waiting for the answer's first byte.
	Lookup, Connect, Handshake, Answer time.Duration
}

// Outcome is the outcome of a leased delivery.
type Outcome struct {
	Delivery Delivery // as it was leased
	LeaseID  string
	Attempt  *Attempt // nil when the delivery was too late for another attempt
	Status   Status
	// NextDue is when the next attempt of a pending delivery is due. Finished is
	// when the delivery became delivered or failed.
	NextDue, Finished time.Time
	// URL is the URL that it was posted to. It is empty if the configuration sets the merchant's URL.
	URL string
	// Change returns the merchant's breaker after the attempt; nil leaves the breaker unchanged. It may be called more
	// than once.
	Change func(Breaker) Breaker
}

// Attempts returns the delivery's number of attempts, including this one.
func (o Outcome) Attempts() int {
	if o.Attempt == nil {
		return o.Delivery.Attempts
	}
	return o.Attempt.Number
}

// job is a leased delivery and its endpoint.
type job struct {
	Delivery
	leaseID  string
	until    time.Time // when the lease ends
	endpoint Endpoint
}

// reasons are the reasons why deliveries are put back, by fault.
var reasons = map[Fault]string{
	FaultStopped:  "this process did not run for a while, its clock was set, or no local port is left for the endpoint's address",
	FaultShortage: "this process ran out of a resource, or cannot use its proxy",
}

// deliver makes one attempt and records its outcome.
func (w *Worker) deliver(ctx context.Context, j job, r *recorder) finished {
	o := Outcome{Delivery: j.Delivery, LeaseID: j.leaseID}
	o.Delivery.Body = nil // not needed any more
	started, due := w.conf.Now(), w.conf.Schedule()
	if j.TooLate(due) {
		w.conf.Metrics.failed.Inc()
		w.log.add("late:"+j.MerchantID, func(count int) {
			w.conf.Logger.ErrorContext(ctx, "webhook deliveries failed: their deadlines passed before they could be attempted again",
				"merchant", j.MerchantID, "delivery", j.ID, "deliveries", count)
		})
		o.Status, o.Finished = Failed, started
		return finished{outcome: o, recorded: r.record(ctx, j, o)}
	}
	a := w.poster.Post(ctx, j.endpoint, Message{ID: j.ID, Event: j.EventType, Body: j.Body})
	if a.Err != nil && ctx.Err() != nil {
		return finished{outcome: o} // this worker stopped it, which is not the endpoint's fault
	}
	if a.Fault != FaultTheirs {
		w.log.add(fmt.Sprint("fault:", a.Fault), func(count int) {
			w.conf.Logger.ErrorContext(ctx, "webhook deliveries put back", "reason", reasons[a.Fault], "deliveries", count, "err", cmp.Or(a.Detail, a.Err.Error()))
		})
		return finished{outcome: o, fault: a.Fault}
	}
	over := w.conf.Schedule()
	took := max(0, over.Sub(due)) // by the schedule's clock, which is never set back
	made := a.Attempt(j.Attempts+1, started, took)
	result := w.result(a, due, due.Add(took))
	result.Error = made.Error
	o.Change = func(b Breaker) Breaker { return b.After(result, w.conf.Limits.PerMerchant) }
	o.Attempt = &made
	if !j.endpoint.Configured {
		o.URL = j.endpoint.URL
	}
	o.Status, o.Finished = Delivered, w.conf.Now()
	if a.Err != nil {
		if next, more := RetryAt(made.Number-j.PriorAttempts, over, j.Deadline, a.RetryAfter, w.jitter()); more {
			o.Status, o.Finished, o.NextDue = Pending, time.Time{}, next
		} else {
			o.Status = Failed
		}
	}
	w.report(ctx, j, o, took)
	return finished{outcome: o, recorded: r.record(ctx, j, o)}
}

// result returns the result of an answer for the endpoint's breaker.
func (w *Worker) result(a Answer, started, ended time.Time) Result {
	return Result{
		Started: started, Ended: ended, OK: a.Err == nil, Gone: a.Code == http.StatusGone, Switched: a.Code == http.StatusSwitchingProtocols,
		TimedOut: a.Err != nil && ended.Sub(started) >= w.conf.Limits.Timeout, Jitter: w.jitter(),
	}
}

// report logs and measures an attempt.
func (w *Worker) report(ctx context.Context, j job, o Outcome, took time.Duration) {
	w.conf.Metrics.observeAttempt(o.Status, took)
	a := *o.Attempt
	if a.StatusCode == http.StatusGone {
		w.log.add("gone:"+j.MerchantID, func(count int) {
			w.conf.Logger.ErrorContext(ctx, "webhook endpoint is gone: it answered 410; its events wait until their deadlines, and it is tried once an hour",
				"merchant", j.MerchantID, "answers", count)
		})
	}
	about := func(more ...any) []any {
		return append([]any{"merchant", j.MerchantID, "delivery", j.ID, "event", j.EventType, "attempt", a.Number, "took", took}, more...)
	}
	switch o.Status {
	case Delivered:
		if w.conf.Logger.Enabled(ctx, slog.LevelDebug) {
			w.conf.Logger.DebugContext(ctx, "webhook delivered", about()...)
		}
	case Pending:
		w.log.add("attempt:"+j.MerchantID, func(count int) {
			w.conf.Logger.WarnContext(ctx, "webhook attempts failed", about("attempts", count, "err", a.Error, "next", o.NextDue.UTC())...)
		})
	case None: // not the status of an outcome
	case Failed:
		w.conf.Metrics.failed.Inc()
		w.log.add("failed:"+j.MerchantID, func(count int) {
			w.conf.Logger.ErrorContext(ctx, "webhook deliveries failed: no attempt is left", about("deliveries", count, "err", a.Error)...)
		})
	}
}

// jitter returns a random number in [0, 1). It panics when the source of randomness fails, as crypto/rand never does.
func (w *Worker) jitter() float64 {
	var b [8]byte
	if _, err := io.ReadFull(w.conf.Rand, b[:]); err != nil {
		panic(fmt.Sprintf("webhooks: source of randomness failed: %v", err))
	}
	const bits = 53 // of a float64
	return float64(binary.BigEndian.Uint64(b[:])>>(64-bits)) / (1 << bits)
}

// delays are the pauses after the first failed attempt, the second and so on.
// After them comes one more attempt, shortly before the deadline.
var delays = [...]time.Duration{
	5 * time.Second, 30 * time.Second,
	2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour,
}

const (
	// maxAttempts is how many attempts a delivery gets: the first, one after each delay, and the last.
	maxAttempts = len(delays) + 2
	// spread is the share of a delay by which jitter shortens or prolongs it.
	spread = 0.2
	// FinalWindow is how long before its deadline a delivery gets its last attempt, even behind an open breaker. An
	// attempt that fails within the window is the last.
	FinalWindow = 10 * time.Minute
	// finalMargin is how long before the deadline the last attempt is due.
	finalMargin = time.Minute
)

// RetryAt returns when to try again after attempt number (counted from 1) failed, or false if no attempt is left. A
// retry is never due after the deadline. retryAfter is the pause that the receiver asked for: it prolongs a delay and
// never shortens one. jitter is a random number in [0, 1).
func RetryAt(number int, failed, deadline time.Time, retryAfter time.Duration, jitter float64) (time.Time, bool) {
	window := deadline.Add(-FinalWindow)
	if number >= maxAttempts || !failed.Before(window) {
		return time.Time{}, false
	}
	last := window.Add(scale(FinalWindow-finalMargin, jitter))
	if number > len(delays) {
		return last, true
	}
	delay := scale(delays[number-1], 1-spread+2*spread*jitter)
	due := failed.Add(max(delay, retryAfter))
	if due.After(last) {
		return last, true
	}
	return due, true
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
