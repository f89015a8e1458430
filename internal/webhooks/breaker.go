package webhooks

import "time"

const (
	// openAfter is how many consecutive failures open a breaker, and openAfterTimeouts how many consecutive timeouts.
	openAfter, openAfterTimeouts = 5, 3
	// firstPause is how long a breaker stays open the first time. Each consecutive pause is twice as long as the one
	// before, up to longestPause.
	firstPause, longestPause = 30 * time.Second, 15 * time.Minute
	// gonePause is how long it stays open after 410 Gone (RFC 9110, section 15.5.11).
	gonePause = time.Hour
	// longestBackoff bounds the random pause of an endpoint after a timeout that does not open its breaker, so that
	// endpoints that hung together are not retried together.
	longestBackoff = 4 * time.Second
	// healthyWithin is the longest time of a success that shows a healthy endpoint.
	healthyWithin = time.Second
	// probeLate is how late a probe may be before it looks as if no process probes: this service may have been down.
	probeLate = 5 * time.Minute
)

// BreakerState is whether attempts at a merchant's endpoint are paused.
type BreakerState string

// A breaker is closed while attempts are made when they are due, open after failures, and gone after the endpoint
// answered 410. A delivery that waits behind an open breaker keeps its deadline.
const (
	BreakerClosed BreakerState = "closed"
	BreakerOpen   BreakerState = "open"
	BreakerGone   BreakerState = "gone"
)

// Breaker is the circuit breaker of a merchant's endpoint. All replicas share it.
type Breaker struct {
	State    BreakerState
	Used     bool      // an attempt was made
	Healthy  bool      // the last answer was a quick success; otherwise the endpoint is suspect
	Allowed  int       // how many attempts may be in flight
	Failures int       // consecutive
	Timeouts int       // consecutive, among the failures
	Pauses   int       // consecutive: how often the breaker opened
	Since    time.Time // when the first of these pauses began; zero while closed
	Until    time.Time // when the pause ends; then, unless closed, one attempt probes the endpoint
	Failing  time.Time // when the first of the consecutive failures was; zero without one
	Failed   time.Time // when the last failure was; zero without one
	Error    string    // of the last failure
}

// NewBreaker is the breaker of an endpoint before its first attempt.
var NewBreaker = Breaker{State: BreakerClosed, Allowed: 1}

// Result is the result of one attempt at an endpoint.
type Result struct {
	Started, Ended time.Time
	OK             bool
	TimedOut       bool
	Gone           bool    // the endpoint answered 410
	Switched       bool    // the endpoint answered 101, which is never a temporary fault
	Error          string  // empty if OK
	Jitter         float64 // random, in [0, 1)
}

// After returns the breaker after an attempt. A success doubles the number of attempts allowed in flight, up to
// perMerchant; a failure halves it. After several consecutive failures the breaker opens for a pause. Then one attempt
// probes the endpoint: a success allows one more attempt, then two, and so on; a failure begins a longer pause. An
// attempt that was in flight when the pause began does not prolong it.
func (b Breaker) After(r Result, perMerchant int) Breaker {
	closed := b.State == BreakerClosed
	b.Used = true
	if r.OK {
		allowed := 1
		if closed {
			allowed = min(2*b.Allowed, perMerchant)
		}
		return Breaker{State: BreakerClosed, Used: true, Healthy: r.Ended.Sub(r.Started) < healthyWithin, Allowed: allowed, Failed: b.Failed, Error: b.Error}
	}
	if !closed && r.Started.Before(b.Until) {
		return b
	}
	b.Healthy, b.Allowed = false, max(1, b.Allowed/2)
	if b.Failed, b.Error = r.Ended, r.Error; b.Failures == 0 {
		b.Failing = r.Ended
	}
	b.Failures++
	b.Timeouts++
	if !r.TimedOut {
		b.Timeouts = 0
	}
	pause := min(firstPause<<min(b.Pauses, 10), longestPause)
	switch {
	case r.Gone:
		b.State, pause = BreakerGone, gonePause
	case !closed || r.Switched || b.Failures >= openAfter || b.Timeouts >= openAfterTimeouts:
		b.State = BreakerOpen
	default:
		if r.TimedOut {
			b.Until = r.Ended.Add(scale(longestBackoff, r.Jitter))
		}
		return b
	}
	b.Allowed = 1
	b.Pauses++
	if closed {
		b.Since = r.Ended
	}
	b.Until = r.Ended.Add(scale(pause, 1-spread+2*spread*r.Jitter))
	return b
}

// Health summarizes the deliveries to an endpoint.
type Health string

// The states of an endpoint.
const (
	HealthUnused  Health = "unused"  // no attempt was made yet
	HealthOK      Health = "ok"      // it accepted the last message
	HealthFailing Health = "failing" // it did not
	HealthPaused  Health = "paused"  // it failed repeatedly, and is probed from time to time
	HealthGone    Health = "gone"    // it answered 410
)

// IsPaused reports whether the endpoint is left alone until a probe. A probe that is long overdue shows that no event
// waits for it.
func (b Breaker) IsPaused(now time.Time) bool {
	return b.State == BreakerGone || b.State == BreakerOpen && !now.After(b.Until.Add(probeLate))
}

// Health returns the health of the endpoint.
func (b Breaker) Health(now time.Time) Health {
	switch {
	case b.State == BreakerGone:
		return HealthGone
	case b.IsPaused(now):
		return HealthPaused
	case !b.Used:
		return HealthUnused
	case b.Failures > 0:
		return HealthFailing
	}
	return HealthOK
}

// GivenUp reports whether the breaker has been open for as long as a schedule lasts while the endpoint was probed: the
// endpoint had enough time to accept its deliveries.
func (b Breaker) GivenUp(now time.Time) bool {
	return b.State != BreakerClosed && !now.Before(b.Since.Add(RetryWindow)) && !now.After(b.Until.Add(probeLate))
}
