package webhooks

import (
	"cmp"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// Limits bound a worker. A field that is zero has its default.
type Limits struct {
	Healthy int // parallel attempts to healthy endpoints; default 384
	// Suspect is how many attempts in parallel may go to suspect endpoints. An endpoint is suspect if its last answer
	// was not a quick success, or it has not answered yet. Default 2048: if fewer endpoints than that hang at the same
	// time, no healthy endpoint waits for them.
	Suspect     int
	PerMerchant int // parallel exchanges with one merchant, over all workers; default 8
	// Timeout bounds a whole exchange: looking up the name, dialing, TLS, sending, and receiving the answer's header
	// and body. The default is DefaultTimeout.
	Timeout time.Duration
	// Lease is how long a delivery is reserved for a worker. It must leave time for leasing, the exchange and recording
	// its outcome; default 15 s.
	Lease time.Duration
	Grace time.Duration // time to finish exchanges after Run's context ends; default 10 s
	// Stall is how long a whole attempt may take, including recording, before its slot is freed. Default clock.Limit.
	Stall time.Duration
	// Poll is the longest time between two rounds of the worker. Default 1 s.
	Poll time.Duration
}

// LimitsFor returns the limits of a worker that may use this many connections: the defaults, or fewer slots of each
// kind.
func LimitsFor(connections int) Limits {
	l := Limits{}.orDefaults()
	if connections >= l.slots() {
		return l
	}
	l.Healthy = max(1, connections/4)
	l.Suspect = max(1, connections-l.Healthy)
	return l
}

// slots is the maximum number of parallel attempts.
func (l Limits) slots() int { return l.Healthy + l.Suspect }

func (l Limits) orDefaults() Limits {
	return Limits{
		Healthy:     cmp.Or(l.Healthy, 384),
		Suspect:     cmp.Or(l.Suspect, 2048),
		PerMerchant: cmp.Or(l.PerMerchant, 8),
		Timeout:     cmp.Or(l.Timeout, DefaultTimeout),
		Lease:       cmp.Or(l.Lease, 15*time.Second),
		Grace:       cmp.Or(l.Grace, 10*time.Second),
		Stall:       cmp.Or(l.Stall, clock.Limit),
		Poll:        cmp.Or(l.Poll, time.Second),
	}
}

const (
	// storeTimeout bounds one database call.
	storeTimeout = 10 * time.Second
	// stopTimeout bounds the waits of a stop after the grace is over.
	stopTimeout = 5 * time.Second
	// resyncTimeout bounds one resync.
	resyncTimeout = time.Minute
	// recordRetry is the pause before an outcome is recorded again after an error.
	recordRetry = 250 * time.Millisecond
)
