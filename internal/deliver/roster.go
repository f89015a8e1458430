package deliver

import (
	"slices"

	"github.com/quittance/quittance/internal/store"
)

// maxTurns is how many queues one request names at most.
const maxTurns = 256

// roster is what a worker knows of the queues of one lane: when the first
// delivery of each is due. It is told by the log of events, by the outcomes of
// its own attempts, by what leasing leaves behind, and, for the rest, by
// surveys. It may know a queue that another process has emptied since; to know
// one as due later than it is would delay it until the next survey.
type roster struct {
	heads map[string]store.Queue // those that hold something, by merchant
	order []string               // their merchants, sorted
	after string                 // the merchant that had the last turn
}

func newRoster() roster { return roster{heads: make(map[string]store.Queue)} }

// add notes that the queue holds something from its head on.
func (r *roster) add(q store.Queue) {
	if head, ok := r.heads[q.MerchantID]; !ok || q.Before(head) {
		r.set(q)
	}
}

// set notes where the queue begins; a head at 0 is that it is empty.
func (r *roster) set(q store.Queue) {
	i, known := slices.BinarySearch(r.order, q.MerchantID)
	switch {
	case q.HeadMS == 0 && known:
		delete(r.heads, q.MerchantID)
		r.order = slices.Delete(r.order, i, i+1)
	case q.HeadMS == 0:
	case !known:
		r.order = slices.Insert(r.order, i, q.MerchantID)
		fallthrough
	default:
		r.heads[q.MerchantID] = q
	}
}

// turns returns the queues that are due, from the one behind the last turn on,
// as far as wanted says yes; at most maxTurns.
func (r *roster) turns(nowMS int64, wanted func(merchantID string) bool) []store.Queue {
	start, found := slices.BinarySearch(r.order, r.after)
	if found {
		start++
	}
	var due []store.Queue
	for i := range r.order {
		m := r.order[(start+i)%len(r.order)]
		if q := r.heads[m]; q.HeadMS <= nowMS && wanted(m) {
			if due = append(due, q); len(due) == maxTurns {
				break
			}
		}
	}
	return due
}

// merchant is what a worker knows of a merchant's endpoint.
type merchant struct {
	breaker store.Breaker // as of the last look
	busy    int           // attempts under way, of this worker
}

// allowed returns how many attempts may be under way.
func (m *merchant) allowed(perMerchant int) int {
	return min(perMerchant, max(1, m.breaker.Allowed))
}
