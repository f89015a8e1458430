package chain

import (
	"context"
	"sync"
	"time"
)

// Limits of the pace of calls of a node.
const (
	// firstPace is the slowest pace that a first refusal leads to, in calls a second.
	// At no more calls a second a failure is not taken for one of the pace. MinPace is
	// the slowest that further ones lead to.
	firstPace = 4
	MinPace   = 1
	// paceParts is the least number of requests that a second's calls are spread over, so that no
	// second has many more, however a node counts them.
	paceParts = 4
	// pauseAfterRefusal is how long a node is not called after it refused calls at
	// their pace.
	pauseAfterRefusal = time.Second
	// paceHeldFor is how long after a refusal the pace is doubled, until it is above
	// maxPace and no longer limited.
	paceHeldFor = time.Minute
	maxPace     = 64
)

// pace is how many calls a second are made of a node. It is not limited until the
// node fails a request that cannot be divided, at more than firstPace calls a second.
// Then it is half of that, and each further failure at that pace halves it: nodes answer calls
// beyond their rate in all kinds of ways. Calls that wait have their turns by class. It is safe
// for concurrent use.
type pace struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	setting float64 // NodeSettings.CallsPerSecond, which the pace does not exceed; 0 for none

	mu      sync.Mutex
	rate    float64   // 0 while it is not limited
	next    time.Time // when the last admitted call had its turn, or later after a refusal
	queue   queue
	changed time.Time // when the rate was
	second  time.Time // begin of the second in which calls are counted
	counts  [2]int    // of calls in it, and in the one before
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

// count counts calls that are made at a time.
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
	case lately > firstPace: // which may be less than the pace, if the caller gives up at each failure
		next = max(firstPace, lately/2)
	default:
		return // another reason
	}
	p.rate, p.changed = next, now
	p.counts = [2]int{}
	if until := now.Add(pauseAfterRefusal); until.After(p.next) {
		p.next = until
	}
	p.wake()
}

// limit returns the pace that refusals have led to, in calls a second, or 0.
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
