package chain

import (
	"context"
	"sync"
	"time"
)

// Limits of a node's pace.
const (
	// firstPace is the lowest pace after a first refusal, in calls per second. At or below it, a failure is not
	// attributed to the pace. MinPace is the lowest pace after further refusals.
	firstPace = 4
	MinPace   = 1
	// paceParts is the least number of requests over which a second's calls are spread, so that no second has many
	// more, whenever the node's second begins.
	paceParts = 4
	// pauseAfterRefusal is how long a node is not called after it refused calls at their pace.
	pauseAfterRefusal = time.Second
	// paceHeldFor is how long after a refusal the pace is doubled, until it is above maxPace and no longer limited.
	paceHeldFor = time.Minute
	maxPace     = 64
)

// pace is the number of calls per second to a node. It is not limited until the node fails a request that cannot be
// divided, at more than firstPace calls per second. Then it becomes half of that rate, and each further failure at that
// pace halves it: nodes answer calls above their rate limit in many different ways. Waiting calls take turns by class.
// It is safe for concurrent use.
type pace struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	setting float64 // NodeSettings.CallsPerSecond, the upper bound of the pace; 0 without one

	mu      sync.Mutex
	rate    float64   // 0 while it is not limited
	next    time.Time // time of the last admitted call's turn, or later after a refusal
	queue   queue
	changed time.Time // time of the last change of rate
	second  time.Time // start of the second in which calls are counted
	counts  [2]int    // in that second, and in the one before
}

func newPace(callsPerSecond uint64, now func() time.Time, sleep func(context.Context, time.Duration) error) *pace {
	return &pace{now: now, sleep: sleep, setting: float64(callsPerSecond), rate: float64(callsPerSecond)}
}

// most returns how many calls may be made together.
func (p *pace) most() int {
	if p == nil {
		return MaxBatch
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate == 0 {
		return MaxBatch
	}
	return int(max(1, p.rate/paceParts))
}

// recover raises the pace again after each minute without a failure. The caller holds the lock.
func (p *pace) recover(now time.Time) {
	for p.rate != p.setting && now.Sub(p.changed) >= paceHeldFor {
		p.changed = p.changed.Add(paceHeldFor)
		if p.rate *= 2; p.rate > maxPace || p.setting > 0 && p.rate > p.setting {
			p.rate = p.setting
		}
	}
}

// cost returns the time that a number of calls takes at the pace. The caller holds the lock.
func (p *pace) cost(calls int) time.Duration {
	if p.rate == 0 {
		return 0
	}
	return time.Duration(float64(calls) / p.rate * float64(time.Second))
}

// count counts calls made at a time.
func (p *pace) count(at time.Time, calls int) {
	switch since := at.Sub(p.second); {
	case since >= 2*time.Second:
		p.second, p.counts = at, [2]int{}
	case since >= time.Second:
		p.second, p.counts = p.second.Add(time.Second), [2]int{0, p.counts[0]}
	}
	p.counts[0] += calls
}

// refused records that the node failed a request that cannot be divided.
func (p *pace) refused() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.count(now, 0)
	lately := float64(max(p.counts[0], p.counts[1]))
	next := max(MinPace, p.rate/2)
	switch {
	case now.Sub(p.changed) < pauseAfterRefusal:
		return // one of several concurrent requests
	case p.rate > 0 && lately > p.rate/2:
	case lately > firstPace: // may be less than the pace, if the caller gives up at each failure
		next = max(firstPace, lately/2)
	default:
		return // the failure has another reason
	}
	p.rate, p.changed = next, now
	p.counts = [2]int{}
	if until := now.Add(pauseAfterRefusal); until.After(p.next) {
		p.next = until
	}
	p.wake()
}

// limit returns the pace that resulted from refusals, in calls per second, or 0.
func (p *pace) limit() float64 {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rate == p.setting {
		return 0
	}
	return p.rate
}

// Limits of estimating the calls per day.
const (
	rateSamples = 61 // one hour of samples
	rateEvery   = time.Minute
	day         = 24 * time.Hour
)

// callRate estimates a node's calls per day from the calls of the last hour.
type callRate struct{ samples []callSample } // the oldest first

type callSample struct {
	at    time.Time
	calls uint64 // number of calls until then
}

// observe records how many calls were made until a time.
func (r *callRate) observe(at time.Time, calls uint64) {
	if n := len(r.samples); n > 0 && at.Sub(r.samples[n-1].at) < rateEvery {
		return
	}
	r.samples = append(r.samples, callSample{at, calls})
	r.samples = r.samples[max(0, len(r.samples)-rateSamples):]
}

// perDay returns the estimate, or 0 in the first minute.
func (r *callRate) perDay(now time.Time, calls uint64) uint64 {
	if len(r.samples) == 0 {
		return 0
	}
	oldest := r.samples[0]
	took := now.Sub(oldest.at)
	if took < rateEvery {
		return 0
	}
	return uint64(float64(calls-oldest.calls) / float64(took) * float64(day))
}
