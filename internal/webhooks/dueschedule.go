package webhooks

import (
	"cmp"
	"container/heap"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// maxTurns is the maximum number of queues in a lease request.
const maxTurns = 256

// The numbers of the lanes.
const (
	first = iota
	retry
	laneCount
)

// kind separates the queues of a lane by the reason why they wait.
type kind int

// A queue of a healthy or of a suspect endpoint waits for a slot of its lane. A queue of a full merchant waits until an
// attempt with the merchant ends.
const (
	healthy kind = iota
	suspect
	full
	kindCount
)

// schedule is a worker's knowledge of the deliveries that wait: where the queues of each merchant begin, and when their
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
	turns       [laneCount * kindCount]turns // see of
	taken       int                          // how many turns there were
}

// merchant is a worker's knowledge of a merchant.
type merchant struct {
	queues   [laneCount]queue
	breaker  Breaker // of the endpoint
	resync   int     // number of resyncs begun when breaker was read
	inFlight []int64 // the events that this worker is attempting
	leasing  bool    // a lease request from one of its queues is running
	// unreachable is set while the merchant has no known endpoint.
	unreachable bool
	// backoffUntil is the time until which other workers serve the queues.
	backoffUntil time.Time
}

// queue is a merchant's queue in a lane. It is in one heap while it waits for its turn.
type queue struct {
	Queue           // Head is zero while it holds no delivery
	at    time.Time // when it is due, or since when it waits for its turn
	asked time.Time // when it had its last turn
	turn  int       // the number of that turn
	in    *turns    // nil while it does not wait for a turn
	index int       // in that heap
}

func newSchedule(perMerchant int) schedule {
	return schedule{perMerchant: perMerchant, merchants: make(map[string]*merchant)}
}

func (s *schedule) merchant(id string) *merchant {
	m := s.merchants[id]
	if m == nil {
		m = &merchant{}
		for lane := range m.queues {
			m.queues[lane].MerchantID = id
		}
		s.merchants[id] = m
	}
	return m
}

// add records that the queue of a lane has a delivery at its head.
func (s *schedule) add(lane int, q Queue) { s.merchant(q.MerchantID).queues[lane].add(q) }

func (q *queue) add(more Queue) {
	switch {
	case q.Head.IsZero() || more.Before(q.Queue):
		q.Queue = more
	case !more.End.IsZero():
		q.End = more.End
	}
}

// holdsDue reports whether the queue has a delivery that is due, even if its turn has not come.
func (q *queue) holdsDue(now time.Time) bool { return !q.Head.IsZero() && !q.Head.After(now) }

// place puts the queues of a merchant in line for their turns. Empty or blocked queues are not asked before they are
// placed again.
func (s *schedule) place(m *merchant, now time.Time) {
	for lane := range m.queues {
		q := &m.queues[lane]
		if q.Head.IsZero() || m.leasing || m.unreachable {
			q.waitIn(nil, time.Time{})
		} else {
			q.waitIn(s.of(lane, m.kind(s.perMerchant)), m.turnOf(q, now))
		}
	}
}

// kind returns the reason why the merchant's queues wait.
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
func (m *merchant) allowed(perMerchant int) int {
	return min(perMerchant, max(1, m.breaker.Allowed))
}

// turnOf returns the time from which a queue that is not empty waits for its turn. Due queues have their turns in the
// order of these times, so that after its turn a queue goes behind all others that were due.
func (m *merchant) turnOf(q *queue, now time.Time) time.Time {
	notBefore := m.breaker.Until
	if !m.backoffUntil.After(now.Add(putBackBackoff)) { // unless the clock was set back
		notBefore = clock.Later(notBefore, m.backoffUntil)
	}
	if !q.End.IsZero() { // waiting deliveries get their last attempt even behind an open breaker
		notBefore = clock.Earlier(notBefore, q.End.Add(-FinalWindow))
	}
	at := clock.Later(q.Head, notBefore)
	if !q.asked.After(now) {
		at = clock.Later(at, q.asked)
	}
	return at
}

// take gives turns to due queues of one lane and kind, up to a limit. They are empty until they are put back, and the
// other queues of their merchants have no turns.
func (s *schedule) take(lane int, k kind, limit int, now time.Time) (taken []Queue) {
	waiting := s.of(lane, k)
	for len(taken) < min(limit, maxTurns) && waiting.due(now) {
		q := (*waiting)[0]
		taken = append(taken, q.Queue)
		s.taken++
		q.Queue, q.asked, q.turn = Queue{MerchantID: q.MerchantID}, now, s.taken
		m := s.merchant(q.MerchantID)
		m.leasing = true
		s.place(m, now)
	}
	return taken
}

// putBack returns a queue that had a turn, as the turn left it. Its head is zero if it is empty. Additions since the
// turn are kept.
func (s *schedule) putBack(lane int, q Queue) {
	m := s.merchant(q.MerchantID)
	added := m.queues[lane].Queue
	m.leasing, m.queues[lane].Queue = false, q
	if !added.Head.IsZero() {
		m.queues[lane].add(added)
	}
}

// of returns the queues of one lane and kind.
func (s *schedule) of(lane int, k kind) *turns { return &s.turns[lane*int(kindCount)+int(k)] }

// next returns when the next queue becomes due that does not wait behind another of its lane and kind; zero means
// never.
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
		for _, q := range t {
			f(q.Queue)
		}
	}
}

// forget removes the merchants without knowledge except their breaker, and calls f with each.
func (s *schedule) forget(f func(merchantID string)) {
	for id, m := range s.merchants {
		empty := m.queues[first].Head.IsZero() && m.queues[retry].Head.IsZero()
		if empty && len(m.inFlight) == 0 && !m.leasing && !m.unreachable {
			delete(s.merchants, id)
			f(id)
		}
	}
}

// waitIn moves the queue to a heap, or out of all.
func (q *queue) waitIn(t *turns, at time.Time) {
	if q.in == t && q.at.Equal(at) {
		return
	}
	if q.in != nil {
		heap.Remove(q.in, q.index)
	}
	if q.in, q.at = t, at; t != nil {
		heap.Push(t, q)
	}
}

// turns is a heap of queues with the next to have its turn on top.
type turns []*queue

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
	q := x.(*queue) //nolint:forcetypeassert // it holds only this type
	q.index = len(*t)
	*t = append(*t, q)
}

// Pop implements heap.Interface.
func (t *turns) Pop() any {
	last := len(*t) - 1
	q := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return q
}
