package delivery

import "time"

const (
	// openAfter is how many failures in a row open a breaker, and
	// openAfterTimeouts how many timeouts.
	openAfter, openAfterTimeouts = 5, 3
	// firstPause is how long a breaker stays open the first time. Each pause in
	// a row is twice as long as the one before, up to longestPause.
	firstPause, longestPause = 30 * time.Second, 15 * time.Minute
	// gonePause is how long it stays open after 410 Gone (RFC 9110, section
	// 15.5.11).
	gonePause = time.Hour
	// longestBackoff bounds the random time for which an endpoint is left alone
	// after a timeout that does not open its breaker, so that endpoints that
	// hung together are not retried together.
	longestBackoff = 4 * time.Second
	// healthyWithin is how fast a success must be to show a healthy endpoint.
	healthyWithin = time.Second
	// probeLate is by how much a probe may be late before nobody seems to probe:
	// this service may have been down.
	probeLate = 5 * time.Minute
)

// BreakerState says whether a merchant's endpoint is left alone.
type BreakerState string

// A breaker is closed while attempts are made as they are due, open after
// failures, and gone after the endpoint answered 410. A delivery that waits
// behind an open breaker keeps its deadline.
const (
	BreakerClosed BreakerState = "closed"
	BreakerOpen   BreakerState = "open"
	BreakerGone   BreakerState = "gone"
)

// Breaker is the circuit breaker of a merchant's endpoint. All replicas share
// it.
type Breaker struct {
	State    BreakerState
	Used     bool      // an attempt was made
	Healthy  bool      // the last answer was a quick success; otherwise the endpoint is suspect
	Allowed  int       // how many attempts may be in flight
	Failures int       // in a row
	Timeouts int       // in a row, of the failures
	Pauses   int       // in a row, how often the breaker opened
	Since    time.Time // when the first of these pauses began; zero while closed
	Until    time.Time // when the pause ends; then, unless closed, one attempt probes the endpoint
}

// NewBreaker is the breaker of an endpoint that nothing was sent to yet.
var NewBreaker = Breaker{State: BreakerClosed, Allowed: 1}

// Result is what one attempt says about an endpoint.
type Result struct {
	Started, Ended time.Time
	OK             bool
	TimedOut       bool
	Gone           bool    // the endpoint answered 410
	Switched       bool    // the endpoint answered 101, which is never a passing fault
	Jitter         float64 // random, in [0, 1)
}

// After returns the breaker as an attempt leaves it. A success doubles what is
// allowed in flight, up to perMerchant; a failure halves it. After failures in
// a row the breaker opens for a pause. Then one attempt probes the endpoint: a
// success allows one more attempt, then two, and so on; a failure begins a
// longer pause. An attempt that was in flight when the pause began does not
// prolong it.
func (b Breaker) After(r Result, perMerchant int) Breaker {
	closed := b.State == BreakerClosed
	b.Used = true
	if r.OK {
		allowed := 1
		if closed {
			allowed = min(2*b.Allowed, perMerchant)
		}
		return Breaker{State: BreakerClosed, Used: true, Healthy: r.Ended.Sub(r.Started) < healthyWithin, Allowed: allowed}
	}
	if !closed && r.Started.Before(b.Until) {
		return b
	}
	b.Healthy, b.Allowed = false, max(1, b.Allowed/2)
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

// Health says how an endpoint's deliveries fare.
type Health string

// The states of an endpoint.
const (
	HealthUnused  Health = "unused"  // nothing was sent to it yet
	HealthOK      Health = "ok"      // it took what was last sent
	HealthFailing Health = "failing" // it did not
	HealthPaused  Health = "paused"  // it failed repeatedly, and is probed from time to time
	HealthGone    Health = "gone"    // it answered 410
)

// Health returns how the endpoint's deliveries fare.
func (b Breaker) Health() Health {
	switch {
	case b.State == BreakerGone:
		return HealthGone
	case b.State == BreakerOpen:
		return HealthPaused
	case !b.Used:
		return HealthUnused
	case b.Failures > 0:
		return HealthFailing
	}
	return HealthOK
}

// GivenUp reports whether the breaker has been open for as long as a schedule
// lasts while the endpoint was probed: the endpoint had the time to take what
// it was owed.
func (b Breaker) GivenUp(now time.Time) bool {
	return b.State != BreakerClosed && !now.Before(b.Since.Add(RetryWindow)) && !now.After(b.Until.Add(probeLate))
}
