package deliver

import (
	"container/heap"
	"slices"

	"github.com/quittance/quittance/internal/delivery"
)

// maxTurns is how many queues one request names at most.
const maxTurns = 256

// roster is what a worker knows of the queues of one lane: where each begins,
// and whether it is to be asked now or when. It is told by the log of events,
// by the outcomes of its own attempts, by what leasing leaves behind, and, for
// the rest, by surveys. It may know a queue that another process has emptied
// since; to know one as due later than it is would delay it until the next
// survey.
//
// What it costs to find whose turn it is does not depend on how many queues
// there are.
type roster struct {
	heads   map[string]delivery.Queue // those that hold something, by merchant
	ready   map[bool]*ring            // those to be asked, of steady endpoints and of others
	asleep  sleepers
	wakesMS map[string]int64 // Unix milliseconds, of those asleep; other entries in asleep are outdated
}

func newRoster() roster {
	return roster{
		heads: make(map[string]delivery.Queue), ready: map[bool]*ring{true: {}, false: {}}, wakesMS: make(map[string]int64),
	}
}

// add notes that the queue holds something from its head on.
func (r *roster) add(q delivery.Queue) {
	if head, ok := r.heads[q.MerchantID]; !ok || q.Before(head) {
		r.set(q)
	}
}

// set notes where the queue begins; a head at 0 is that it is empty.
func (r *roster) set(q delivery.Queue) {
	if q.HeadMS == 0 {
		delete(r.heads, q.MerchantID)
		return
	}
	r.heads[q.MerchantID] = q
}

// place has the merchant's queue asked in its turn, or from a time on, or not
// until it is placed again: when it is empty, or full is set.
func (r *roster) place(merchantID string, steady, full bool, heldUntilMS, nowMS int64) {
	q, ok := r.heads[merchantID]
	wakeMS := max(q.HeadMS, heldUntilMS)
	awake := ok && wakeMS <= nowMS
	for kind, ring := range r.ready {
		if awake && !full && kind == steady {
			ring.add(merchantID)
		} else {
			ring.remove(merchantID)
		}
	}
	switch {
	case !ok || awake:
		delete(r.wakesMS, merchantID)
	case r.wakesMS[merchantID] != wakeMS:
		r.wakesMS[merchantID] = wakeMS
		heap.Push(&r.asleep, sleeper{wakeMS, merchantID})
		r.tidy()
	}
}

// tidy removes what is outdated when it is most of what there is.
func (r *roster) tidy() {
	if len(r.asleep) < 2*len(r.wakesMS)+maxTurns {
		return
	}
	r.asleep = r.asleep[:0]
	for merchantID, wakeMS := range r.wakesMS {
		r.asleep = append(r.asleep, sleeper{wakeMS, merchantID})
	}
	heap.Init(&r.asleep)
}

// woken removes from those asleep one that wakes by a time, and returns it.
func (r *roster) woken(nowMS int64) (merchantID string, ok bool) {
	if next := r.wakes(); next == 0 || next > nowMS {
		return "", false
	}
	s := heap.Pop(&r.asleep).(sleeper) //nolint:forcetypeassert // it holds nothing else
	delete(r.wakesMS, s.merchantID)
	return s.merchantID, true
}

// wakes returns when the next queue wakes, in Unix milliseconds; 0 is never.
func (r *roster) wakes() int64 {
	for len(r.asleep) > 0 {
		if s := r.asleep[0]; r.wakesMS[s.merchantID] == s.wakeMS {
			return s.wakeMS
		}
		heap.Pop(&r.asleep)
	}
	return 0
}

// turns returns queues that are to be asked, no more than so many of each
// kind, from behind the last turn on, as far as they were not asked already.
// It reports whether there are more of doubtful endpoints.
func (r *roster) turns(steady, doubtful int, asked map[string]bool) (queues []delivery.Queue, more bool) {
	chosen, _ := r.ready[true].next(min(steady, maxTurns), asked)
	others, more := r.ready[false].next(min(doubtful, maxTurns-len(chosen)), asked)
	for _, m := range append(chosen, others...) {
		asked[m] = true
		queues = append(queues, r.heads[m])
	}
	return queues, more
}

// ring are merchants that take turns.
type ring struct {
	order []string // sorted
	after string   // who had the last turn
}

func (r *ring) add(merchantID string) {
	if i, found := slices.BinarySearch(r.order, merchantID); !found {
		r.order = slices.Insert(r.order, i, merchantID)
	}
}

func (r *ring) remove(merchantID string) {
	if i, found := slices.BinarySearch(r.order, merchantID); found {
		r.order = slices.Delete(r.order, i, i+1)
	}
}

// next returns whose turn it is, no more than limit and none who was asked,
// and whether there are others after these.
func (r *ring) next(limit int, asked map[string]bool) (chosen []string, more bool) {
	start, found := slices.BinarySearch(r.order, r.after)
	if found {
		start++
	}
	for i := range r.order {
		m := r.order[(start+i)%len(r.order)]
		if asked[m] {
			continue
		}
		if len(chosen) >= limit {
			more = true
			break
		}
		chosen = append(chosen, m)
	}
	if len(chosen) > 0 {
		r.after = chosen[len(chosen)-1]
	}
	return chosen, more
}

// sleeper is a queue that is not to be asked before a time.
type sleeper struct {
	wakeMS     int64
	merchantID string
}

// sleepers are a heap, the first to wake on top.
type sleepers []sleeper

// Len is heap.Interface's.
func (s *sleepers) Len() int { return len(*s) }

// Less is heap.Interface's.
func (s *sleepers) Less(i, j int) bool { return (*s)[i].wakeMS < (*s)[j].wakeMS }

// Swap is heap.Interface's.
func (s *sleepers) Swap(i, j int) { (*s)[i], (*s)[j] = (*s)[j], (*s)[i] }

// Push is heap.Interface's.
func (s *sleepers) Push(x any) { *s = append(*s, x.(sleeper)) } //nolint:forcetypeassert // it holds nothing else

// Pop is heap.Interface's.
func (s *sleepers) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// merchant is what a worker knows of a merchant's endpoint.
type merchant struct {
	breaker delivery.Breaker // as of the last look
	looked  int              // how many surveys had begun then
	busy    []int64          // the events whose attempts are under way, by this worker
	// unreachable is set while no endpoint of the merchant is known.
	unreachable bool
	// restedMS is until when the queues are left to other workers; in Unix
	// milliseconds.
	restedMS int64
}

// allowed returns how many attempts may be under way.
func (m *merchant) allowed(perMerchant int) int {
	return min(perMerchant, max(1, m.breaker.Allowed))
}
