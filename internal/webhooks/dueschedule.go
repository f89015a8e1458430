package webhooks

import (
	"cmp"
	"container/heap"
	"maps"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// maxTurns is the maximum number of queues in a lease request.
const maxTurns = 256

// kind separates the queues by the reason why they wait.
type kind int

// A queue of a healthy or of a suspect endpoint waits for a slot. A queue of a full merchant waits until an
// attempt with the merchant ends.
const (
	healthy kind = iota
	suspect
	full
	kindCount
)

// schedule is a worker's knowledge of the deliveries that wait: where the queue of each merchant begins, and when their
// turns come. It is updated by the events that this process commits, by the outcomes of the worker's attempts, by the
// answers to lease requests and, for the rest, by resyncs. It may contain a queue that another process has emptied
// since. A queue that is known with a later due time than the real one waits until the next resync.
//
// While a queue is part of a lease request, the request contains it, and the schedule contains only the additions to
// it, because the answer may be older.
//
// The cost of finding the next turn grows with the logarithm of the number of queues.
type schedule struct {
	perMerchant int // how many attempts with one merchant may be in flight
	merchants   map[string]*merchant
	turns       [kindCount]turns // the queues that wait for their turns
	taken       int              // how many turns there were
}

// merchant is a worker's knowledge of a merchant. It is in one heap while its queue waits for its turn.
type merchant struct {
	Queue              // Head is zero while it holds no delivery
	at       time.Time // when the queue is due, or since when it waits for its turn
	asked    time.Time // when it had its last turn
	turn     int       // the number of that turn
	in       *turns    // nil while it does not wait for a turn
	index    int       // in that heap
	breaker  Breaker   // of the endpoint
	resync   int       // number of resyncs begun when breaker was read
	inFlight []int64   // the events that this worker is attempting
	leasing  bool      // a lease request for its queue is running
	// unreachable is set while the merchant has no known endpoint.
	unreachable bool
	// backoffUntil is the time until which other workers serve the queue.
	backoffUntil time.Time
}

func newSchedule(perMerchant int) schedule {
	return schedule{perMerchant: perMerchant, merchants: make(map[string]*merchant)}
}

func (s *schedule) merchant(id string) *merchant {
	m := s.merchants[id]
	if m == nil {
		m = &merchant{Queue: Queue{MerchantID: id}}
		s.merchants[id] = m
	}
	return m
}

// add records that a queue has a delivery at its head.
func (s *schedule) add(q Queue) { s.merchant(q.MerchantID).add(q) }

func (m *merchant) add(more Queue) {
	switch {
	case m.Head.IsZero() || more.Before(m.Queue):
		m.Queue = more
	case !more.End.IsZero():
		m.End = more.End
	}
}

// holdsDue reports whether the queue has a delivery that is due, even if its turn has not come.
func (m *merchant) holdsDue(now time.Time) bool { return !m.Head.IsZero() && !m.Head.After(now) }

// place puts the queue of a merchant in line for its turn. An empty or blocked queue is not asked before it is placed
// again.
func (s *schedule) place(m *merchant, now time.Time) {
	if m.Head.IsZero() || m.leasing || m.unreachable {
		m.waitIn(nil, time.Time{})
	} else {
		m.waitIn(&s.turns[m.kind(s.perMerchant)], m.turnOf(now))
	}
}

// kind returns the reason why the merchant's queue waits.
func (m *merchant) kind(perMerchant int) kind {
	switch {
	case len(m.inFlight) >= m.allowed(perMerchant):
		return full
	case m.breaker.Healthy:
		return healthy
	}
	return suspect
}

// allowed returns how many attempts may be in flight.
func (m *merchant) allowed(perMerchant int) int { return min(perMerchant, max(1, m.breaker.Allowed)) }

// turnOf returns the time from which a queue that is not empty waits for its turn. Due queues have their turns in the
// order of these times, so that after its turn a queue goes behind all others that were due.
func (m *merchant) turnOf(now time.Time) time.Time {
	notBefore := m.breaker.Until
	if !m.backoffUntil.After(now.Add(putBackBackoff)) { // unless the clock was set back
		notBefore = clock.Later(notBefore, m.backoffUntil)
	}
	if !m.End.IsZero() { // waiting deliveries get their last attempt even behind an open breaker
		notBefore = clock.Earlier(notBefore, m.End.Add(-FinalWindow))
	}
	at := clock.Later(m.Head, notBefore)
	if !m.asked.After(now) {
		at = clock.Later(at, m.asked)
	}
	return at
}

// take gives turns to due queues of one kind, up to a limit. They are empty until they are put back.
func (s *schedule) take(k kind, limit int, now time.Time) (taken []Queue) {
	waiting := &s.turns[k]
	for len(taken) < min(limit, maxTurns) && waiting.due(now) {
		m := (*waiting)[0]
		taken = append(taken, m.Queue)
		s.taken++
		m.Queue, m.asked, m.turn, m.leasing = Queue{MerchantID: m.MerchantID}, now, s.taken, true
		s.place(m, now)
	}
	return taken
}

// putBack returns a queue that had a turn, as the turn left it. Its head is zero if it is empty. Additions since the
// turn are kept.
func (s *schedule) putBack(q Queue) {
	m := s.merchant(q.MerchantID)
	added := m.Queue
	m.leasing, m.Queue = false, q
	if !added.Head.IsZero() {
		m.add(added)
	}
}

// next returns when the next queue becomes due that does not wait behind another of its kind; zero means never.
func (s *schedule) next(now time.Time) (next time.Time) {
	for _, t := range s.turns {
		if len(t) > 0 && !t.due(now) && (next.IsZero() || t[0].at.Before(next)) {
			next = t[0].at
		}
	}
	return next
}

// waiting calls f with each queue that waits for its turn.
func (s *schedule) waiting(f func(Queue)) {
	for _, t := range s.turns {
		for _, m := range t {
			f(m.Queue)
		}
	}
}

// forget removes the merchants without knowledge except their breaker.
func (s *schedule) forget() {
	maps.DeleteFunc(s.merchants, func(_ string, m *merchant) bool {
		return m.Head.IsZero() && len(m.inFlight) == 0 && !m.leasing && !m.unreachable
	})
}

// waitIn moves the queue to a heap, or out of all.
func (m *merchant) waitIn(t *turns, at time.Time) {
	if m.in == t && m.at.Equal(at) {
		return
	}
	if m.in != nil {
		heap.Remove(m.in, m.index)
	}
	if m.in, m.at = t, at; t != nil {
		heap.Push(t, m)
	}
}

// turns is a heap of queues with the next to have its turn on top.
type turns []*merchant

// due reports whether the turn of the first queue has come.
func (t *turns) due(now time.Time) bool { return len(*t) > 0 && !(*t)[0].at.After(now) }

// Len implements heap.Interface.
func (t *turns) Len() int { return len(*t) }

// Less implements heap.Interface.
func (t *turns) Less(i, j int) bool {
	a, b := (*t)[i], (*t)[j]
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.turn, b.turn), cmp.Compare(a.MerchantID, b.MerchantID)) < 0
}

// Swap implements heap.Interface.
func (t *turns) Swap(i, j int) {
	(*t)[i], (*t)[j] = (*t)[j], (*t)[i]
	(*t)[i].index, (*t)[j].index = i, j
}

// Push implements heap.Interface.
func (t *turns) Push(x any) {
	m := x.(*merchant) //nolint:forcetypeassert // it holds only this type
	m.index = len(*t)
	*t = append(*t, m)
}

// Pop implements heap.Interface.
func (t *turns) Pop() any {
	last := len(*t) - 1
	m := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return m
}
