package webhooks

import (
	"slices"
	"time"
)

// Queue is a merchant's queue, and the position from which to look for due deliveries: as far as the caller
// knows, no delivery waits that was due before Head, or at Head with a lower number than HeadSeq. A delivery in flight
// is due when its lease ends. On PostgreSQL there may be many dead row versions before the head. Without Head, each
// would be visited while a long snapshot prevents vacuuming.
type Queue struct {
	MerchantID string
	Head       time.Time
	HeadSeq    int64     // of an event
	End        time.Time // the earliest deadline of its deliveries; zero when unknown
}

// Before reports whether the queue's head is earlier than another's.
func (q Queue) Before(o Queue) bool {
	return q.Head.Before(o.Head) || q.Head.Equal(o.Head) && q.HeadSeq < o.HeadSeq
}

// LeaseRequest asks for due deliveries.
type LeaseRequest struct {
	LeaseID string // new for each request
	Now     time.Time
	Until   time.Time // when the lease expires
	Queues  []Queue   // in the order of their turns
	// Healthy and Suspect are the maximum numbers of deliveries to lease, to healthy endpoints and to suspect ones.
	Healthy, Suspect int
	// PerMerchant is how many deliveries of one merchant may be in flight, over
	// all workers. The merchant's breaker may allow fewer.
	PerMerchant int
	// InFlight are the deliveries that the requesting worker has in flight, by merchant. Their leases may have ended.
	InFlight map[string][]int64
}

// Leased is the answer to a request.
type Leased struct {
	// Deliveries are grouped by merchant, in the order of the merchants' turns, and the oldest of each merchant come
	// first.
	Deliveries []Delivery
	// Queues are the queues that were examined. A queue that another worker was serving at that moment is missing.
	Queues []QueueState
}

// QueueState is the state of a queue after a request.
type QueueState struct {
	// Queue's Head is zero if the queue is empty. Behind an open breaker the queue is unchanged.
	Queue
	Breaker Breaker // of the merchant
}

// Plan decides which deliveries a request leases. The caller reads what Peeks returns, adds what it found and the
// deliveries in flight, and calls Choose.
type Plan struct {
	request LeaseRequest
	turns   []*turn
	byID    map[string]*turn
}

// turn is a queue's part in a plan.
type turn struct {
	Queue
	breaker  Breaker
	paused   bool // the breaker allows no attempts before its Until
	inFlight map[int64]bool
	waiting  []Delivery // first deliveries of the queue, in the order in which they are leased
	taken    int        // number of leased deliveries in waiting
	further  *Queue     // position behind waiting if more deliveries may follow; nil if not
	// from excludes deliveries with an earlier deadline, which must be expired instead.
	from time.Time
}

// NewPlan begins a plan. It serves the request's queues with a breaker for the merchant in the map.
func NewPlan(r LeaseRequest, breakers map[string]Breaker) *Plan {
	p := &Plan{request: r, byID: make(map[string]*turn, len(breakers))}
	for _, q := range r.Queues {
		b, ok := breakers[q.MerchantID]
		if !ok {
			continue
		}
		t := &turn{Queue: q, breaker: b, paused: b.Until.After(r.Now), inFlight: make(map[int64]bool)}
		if b.GivenUp(r.Now) {
			t.from = r.Now
		}
		for _, seq := range r.InFlight[q.MerchantID] {
			t.inFlight[seq] = true
		}
		p.turns, p.byID[q.MerchantID] = append(p.turns, t), t
	}
	return p
}

// AddInFlight records that a delivery of a merchant is leased by any worker.
func (p *Plan) AddInFlight(merchantID string, seq int64) { p.byID[merchantID].inFlight[seq] = true }

// Peek requests the first deliveries of a queue.
type Peek struct {
	Queue           // from its head on
	From  time.Time // the earliest deadline
	Limit int
}

// Peeks returns what to read: for most queues the deliveries that are due first, and behind an open breaker, where only
// deliveries in their final window may be leased, those with the earliest deadlines.
func (p *Plan) Peeks() (byDue, byDeadline []Peek) {
	var ordinary, open []*turn
	for _, t := range p.turns {
		if t.paused {
			open = append(open, t)
		} else {
			ordinary = append(ordinary, t)
		}
	}
	return p.peeks(ordinary), p.peeks(open)
}

func (p *Plan) peeks(turns []*turn) []Peek {
	count := make(map[bool]int)
	for _, t := range turns {
		count[t.breaker.Healthy]++
	}
	room := p.room()
	peeks := make([]Peek, len(turns))
	for i, t := range turns {
		kind := t.breaker.Healthy
		share := (room[kind] + count[kind] - 1) / count[kind]
		// One more shows where the queue continues.
		limit := max(0, min(share, p.allowed(t)-len(t.inFlight))) + 1
		if t.HeadSeq == 0 { // from a resync: deliveries in flight may come first
			limit += p.request.PerMerchant
		}
		peeks[i] = Peek{t.Queue, t.from, limit}
	}
	return peeks
}

// Found adds the deliveries that were read for a peek. The read may have had a larger limit than requested.
func (p *Plan) Found(peek Peek, found []Delivery) {
	t := p.byID[peek.MerchantID]
	t.waiting = append(t.waiting, found...)
	if len(found) == peek.Limit {
		last := found[len(found)-1]
		t.further = &Queue{MerchantID: peek.MerchantID, Head: last.Due, HeadSeq: last.Seq + 1}
	}
}

// Choose takes one delivery from each queue, then the next from each, until the request is filled or no more deliveries
// may be leased. It returns the deliveries and the new states of the queues.
func (p *Plan) Choose() ([]Delivery, []QueueState) {
	for _, t := range p.turns {
		t.waiting = slices.DeleteFunc(t.waiting, func(d Delivery) bool { return t.inFlight[d.Seq] })
	}
	room := p.room()
	for again := true; again; {
		again = false
		for _, t := range p.turns {
			if room[t.breaker.Healthy] > 0 && p.takesNext(t) {
				room[t.breaker.Healthy]--
				t.taken++
				again = true
			}
		}
	}
	var chosen []Delivery
	queues := make([]QueueState, len(p.turns))
	for i, t := range p.turns {
		queues[i] = p.left(t)
		for _, d := range t.waiting[:t.taken] {
			d.Suspect = !t.breaker.Healthy
			chosen = append(chosen, d)
		}
	}
	return chosen, queues
}

// room returns how many deliveries may be leased, to healthy endpoints (key true) and to suspect ones (key false).
func (p *Plan) room() map[bool]int {
	return map[bool]int{true: p.request.Healthy, false: p.request.Suspect}
}

// allowed returns how many deliveries of the merchant may be in flight.
func (p *Plan) allowed(t *turn) int { return min(p.request.PerMerchant, t.breaker.Allowed) }

// takesNext reports whether the queue's next delivery may be leased.
func (p *Plan) takesNext(t *turn) bool {
	if t.taken == len(t.waiting) || len(t.inFlight)+t.taken >= p.allowed(t) {
		return false
	}
	next := t.waiting[t.taken]
	if t.paused {
		return !p.request.Now.Before(next.Deadline.Add(-FinalWindow))
	}
	return !p.request.Now.Before(next.Due)
}

// left returns where the queue continues. If only the earliest deadlines of a queue were read, its position is
// unchanged.
func (p *Plan) left(t *turn) QueueState {
	s := QueueState{Queue: t.Queue, Breaker: t.breaker}
	s.End = time.Time{}
	switch {
	case t.paused:
	case t.taken < len(t.waiting):
		next := t.waiting[t.taken]
		s.Head, s.HeadSeq = next.Due, next.Seq
	case t.further != nil:
		s.Queue = *t.further
	default:
		s.Head, s.HeadSeq = time.Time{}, 0
	}
	return s
}
