package dispatcher

import (
	"container/heap"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/delivery"
	"github.com/quittance/quittance/internal/times"
)

// maxTurns is the maximum number of queues in a lease request.
const maxTurns = 256

// queueCache is a worker's knowledge of the queues of one lane: where each begins, and when to ask it. It is updated by
// the events that this process commits, by the outcomes of the worker's attempts, by the answers to lease requests and,
// for the rest, by resyncs. It may contain a queue that another process has emptied since. A queue that is cached with
// a later due time than the real one waits until the next resync.
//
// The cost of finding the next queue does not depend on the number of queues.
type queueCache struct {
	heads  map[string]delivery.Queue // queues that are not empty, by merchant
	ready  map[bool]*roundRobin      // queues to ask now: of healthy endpoints (key true), of suspect ones (key false)
	timers timerHeap
	// asked holds additions to queues while a lease request from them is running, because its answer may be older.
	asked  map[string]delivery.Queue
	fireAt map[string]time.Time // when a merchant's timer fires; other entries of timers are outdated
}

func newQueueCache() queueCache {
	return queueCache{
		heads: make(map[string]delivery.Queue), ready: map[bool]*roundRobin{true: {}, false: {}}, fireAt: make(map[string]time.Time),
		asked: make(map[string]delivery.Queue),
	}
}

// add records that the queue has a delivery at its head.
func (c *queueCache) add(q delivery.Queue) {
	if added, ok := c.asked[q.MerchantID]; ok && (added.Head.IsZero() || q.Before(added)) {
		c.asked[q.MerchantID] = q
	}
	head, ok := c.heads[q.MerchantID]
	switch {
	case !ok || q.Before(head):
		c.set(q)
	case !q.End.IsZero():
		head.End = q.End
		c.set(head)
	}
}

// set records where the queue begins; it is empty if its head is zero.
func (c *queueCache) set(q delivery.Queue) {
	if q.Head.IsZero() {
		delete(c.heads, q.MerchantID)
		return
	}
	c.heads[q.MerchantID] = q
}

// answered records where a queue begins according to the answer to a request.
func (c *queueCache) answered(q delivery.Queue) {
	added := c.asked[q.MerchantID]
	delete(c.asked, q.MerchantID)
	c.set(q)
	if !added.Head.IsZero() {
		c.add(added)
	}
}

// place schedules when the merchant's queue is asked: in its turn from now on, or at a later time. If the queue is
// empty or blocked, it is not asked before it is placed again. place reports whether the queue is due.
func (c *queueCache) place(merchantID string, healthy, blocked bool, notBefore, now time.Time) (due bool) {
	q, ok := c.heads[merchantID]
	at := times.Later(q.Head, notBefore)
	due = ok && !at.After(now)
	for kind, ready := range c.ready {
		if due && !blocked && kind == healthy {
			ready.add(merchantID)
		} else {
			ready.remove(merchantID)
		}
	}
	switch {
	case !ok || due:
		delete(c.fireAt, merchantID)
	case !c.fireAt[merchantID].Equal(at):
		c.fireAt[merchantID] = at
		heap.Push(&c.timers, queueTimer{at, merchantID})
		c.compact()
	}
	return due
}

// compact removes outdated timers if they are the majority of the heap.
func (c *queueCache) compact() {
	if len(c.timers) < 2*len(c.fireAt)+maxTurns {
		return
	}
	c.timers = c.timers[:0]
	for merchantID, at := range c.fireAt {
		c.timers = append(c.timers, queueTimer{at, merchantID})
	}
	heap.Init(&c.timers)
}

// fired removes a timer that has fired by a time and returns its merchant.
func (c *queueCache) fired(now time.Time) (merchantID string, ok bool) {
	if next := c.nextTimer(); next.IsZero() || next.After(now) {
		return "", false
	}
	t := heap.Pop(&c.timers).(queueTimer) //nolint:forcetypeassert // it holds only this type
	delete(c.fireAt, t.merchantID)
	return t.merchantID, true
}

// nextTimer returns when the next timer fires; zero means never.
func (c *queueCache) nextTimer() time.Time {
	for len(c.timers) > 0 {
		if t := c.timers[0]; c.fireAt[t.merchantID].Equal(t.at) {
			return t.at
		}
		heap.Pop(&c.timers)
	}
	return time.Time{}
}

// turns returns up to limit queues of healthy or of suspect endpoints to ask, starting after the last turn.
func (c *queueCache) turns(healthy bool, limit int) (queues []delivery.Queue) {
	for _, m := range c.ready[healthy].next(min(limit, maxTurns)) {
		c.asked[m] = delivery.Queue{}
		queues = append(queues, c.heads[m])
	}
	return queues
}

// roundRobin is a set of merchants that take turns.
type roundRobin struct {
	order []string // sorted
	last  string   // merchant with the last turn
}

func (r *roundRobin) add(merchantID string) {
	if i, found := slices.BinarySearch(r.order, merchantID); !found {
		r.order = slices.Insert(r.order, i, merchantID)
	}
}

func (r *roundRobin) remove(merchantID string) {
	if i, found := slices.BinarySearch(r.order, merchantID); found {
		r.order = slices.Delete(r.order, i, i+1)
	}
}

// next returns the merchants with the next turns, up to limit.
func (r *roundRobin) next(limit int) (chosen []string) {
	start, found := slices.BinarySearch(r.order, r.last)
	if found {
		start++
	}
	for i := range r.order {
		if len(chosen) >= limit {
			break
		}
		chosen = append(chosen, r.order[(start+i)%len(r.order)])
	}
	if len(chosen) > 0 {
		r.last = chosen[len(chosen)-1]
	}
	return chosen
}

// queueTimer is the time when a queue must be asked.
type queueTimer struct {
	at         time.Time
	merchantID string
}

// timerHeap is a heap of timers with the next to fire on top.
type timerHeap []queueTimer

// Len implements heap.Interface.
func (h *timerHeap) Len() int { return len(*h) }

// Less implements heap.Interface.
func (h *timerHeap) Less(i, j int) bool { return (*h)[i].at.Before((*h)[j].at) }

// Swap implements heap.Interface.
func (h *timerHeap) Swap(i, j int) { (*h)[i], (*h)[j] = (*h)[j], (*h)[i] }

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) { *h = append(*h, x.(queueTimer)) } //nolint:forcetypeassert // it holds only this type

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// merchant is a worker's knowledge of a merchant's endpoint.
type merchant struct {
	breaker  delivery.Breaker
	resync   int     // number of resyncs begun when breaker was read
	inFlight []int64 // the events that this worker is attempting
	leasing  bool    // a lease request from one of its queues is running
	// unreachable is set while the merchant has no known endpoint.
	unreachable bool
	// backoffUntil is the time until which other workers serve the queues.
	backoffUntil time.Time
}

// allowed returns how many attempts may be in flight.
func (m *merchant) allowed(perMerchant int) int {
	return min(perMerchant, max(1, m.breaker.Allowed))
}
