package chain

import (
	"context"
	"fmt"
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
	// paceParts is how many requests a second's calls are spread over at least, so
	// that no second has many more, however a node counts them.
	paceParts = 4
	// requestsWait is the longest queue, in time, that a call for a request joins.
	requestsWait = 250 * time.Millisecond
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
// Then it is half of that, and each further failure at that pace halves it: nodes answer calls beyond their rate in all kinds of
// ways. It is safe for concurrent use.
type pace struct {
	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	setting float64 // NodeSettings.CallsPerSecond, which the pace does not exceed; 0 for none

	mu      sync.Mutex
	rate    float64   // 0 while it is not limited
	next    time.Time // when the last admitted call has its turn
	changed time.Time // when the rate was
	second  time.Time // begin of the second in which calls are counted
	counts  [2]int    // of calls in it, and in the one before
}

func newPace(callsPerSecond uint64, now func() time.Time, sleep func(context.Context, time.Duration) error) *pace {
	return &pace{now: now, sleep: sleep, setting: float64(callsPerSecond), rate: float64(callsPerSecond)}
}

// most returns how many calls may be made at once.
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

// errPaced is the error of a call for a request to a node whose pace is used up.
var errPaced = fmt.Errorf("%w: the node is called as often as it takes", ErrTimeout)

// admit waits until so many calls may be made. It fails when ctx ends first. A call for a
// request waits behind few others, so that these do not wait behind many of them.
func (p *pace) admit(ctx context.Context, calls int) error {
	if p == nil {
		return nil
	}
	if classOf(ctx) == ClassRequest && p.delay() > requestsWait {
		return errPaced
	}
	if delay := p.take(calls); delay > 0 {
		return p.sleep(ctx, delay)
	}
	return nil
}

// take counts calls, and returns after which time they may be made.
func (p *pace) take(calls int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for p.rate != p.setting && now.Sub(p.changed) >= paceHeldFor {
		p.changed = p.changed.Add(paceHeldFor)
		if p.rate *= 2; p.rate > maxPace || p.setting > 0 && p.rate > p.setting {
			p.rate = p.setting
		}
	}
	if p.rate > 0 {
		p.next = p.next.Add(time.Duration(float64(calls) / p.rate * float64(time.Second)))
	}
	at := now
	if p.next.After(now) {
		at = p.next
	} else if p.rate > 0 {
		p.next = now
	}
	p.count(at, calls)
	return at.Sub(now)
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

// delay returns how long a call would wait now.
func (p *pace) delay() time.Duration {
	if p == nil {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.next.Sub(p.now()))
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
	usual, next := float64(firstPace), max(firstPace, lately/2)
	if p.rate > 0 {
		usual, next = p.rate/2, max(MinPace, p.rate/2)
	}
	if lately <= usual || now.Sub(p.changed) < pauseAfterRefusal {
		return // another reason, or one of several concurrent requests
	}
	p.rate, p.changed = next, now
	p.counts = [2]int{}
	if until := now.Add(pauseAfterRefusal); until.After(p.next) {
		p.next = until
	}
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
