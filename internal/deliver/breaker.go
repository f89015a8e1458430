package deliver

import (
	"net/http"
	"time"

	"github.com/quittance/quittance/internal/store"
)

const (
	// openAfter and openAfterTimeouts are how many failures in a row, and how
	// many timeouts, have an endpoint left alone.
	openAfter, openAfterTimeouts = 5, 3
	// firstPause is for how long, the first time; each pause that follows in a
	// row is twice as long, up to longestPause.
	firstPause, longestPause = 30 * time.Second, 15 * time.Minute
	// gonePause is for how long after an answer that nothing is wanted any more
	// (410, RFC 9110 section 15.5.11).
	gonePause = time.Hour
	// longestRest bounds for how long an endpoint is left alone after a timeout
	// that does not yet open its breaker: a random time, so that endpoints that
	// hung together do not go on, and hang again, together.
	longestRest = 4 * time.Second
	// quickly is how fast a success is that shows an endpoint to be steady.
	quickly = time.Second
)

// verdict is what one attempt says about an endpoint.
type verdict struct {
	started, ended time.Time
	ok             bool
	timedOut       bool
	gone           bool
	switched       bool    // it answered 101, which no fault of a moment does
	jitter         float64 // random, in [0, 1)
}

func (w *Worker) verdict(a answer, started, ended time.Time) verdict {
	return verdict{
		started: started, ended: ended, ok: a.err == nil, gone: a.code == http.StatusGone, switched: a.code == http.StatusSwitchingProtocols,
		timedOut: a.err != nil && ended.Sub(started) >= w.Limits.Timeout, jitter: w.jitter(),
	}
}

// after returns the breaker as an attempt leaves it. A success doubles what is
// allowed in flight, up to perMerchant; a failure halves it. After failures in
// a row the endpoint is left alone for a while, then one attempt probes it: a
// success lets one more go, then two, and so on; a failure is followed by a
// longer pause. What was under way when the pause began does not prolong it.
func after(b store.Breaker, v verdict, perMerchant int) store.Breaker {
	closed := b.State == store.BreakerClosed
	if v.ok {
		allowed := 1
		if closed {
			allowed = min(2*b.Allowed, perMerchant)
		}
		return store.Breaker{State: store.BreakerClosed, Steady: v.ended.Sub(v.started) < quickly, Allowed: allowed}
	}
	if !closed && v.started.UnixMilli() < b.UntilMS {
		return b
	}
	b.Steady, b.Allowed = false, max(1, b.Allowed/2)
	b.Failures++
	b.Timeouts++
	if !v.timedOut {
		b.Timeouts = 0
	}
	pause := min(firstPause<<min(b.Pauses, 10), longestPause)
	switch {
	case v.gone:
		b.State, pause = store.BreakerGone, gonePause
	case !closed || v.switched || b.Failures >= openAfter || b.Timeouts >= openAfterTimeouts:
		b.State = store.BreakerOpen
	default:
		if v.timedOut {
			b.UntilMS = v.ended.Add(scale(longestRest, v.jitter)).UnixMilli()
		}
		return b
	}
	b.Allowed = 1
	b.Pauses++
	if closed {
		b.SinceMS = v.ended.UnixMilli()
	}
	b.UntilMS = v.ended.Add(scale(pause, 1-spread+2*spread*v.jitter)).UnixMilli()
	return b
}
