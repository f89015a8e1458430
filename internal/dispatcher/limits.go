package dispatcher

import (
	"cmp"
	"time"

	"github.com/quittance/quittance/internal/poster"
	"github.com/quittance/quittance/internal/watchdog"
)

// Limits bound what a worker does. A field that is zero has its default.
type Limits struct {
	First   int // first attempts at a time, to healthy endpoints; default 256
	Retries int // retries at a time, to healthy endpoints; default 128
	// Suspect is how many first attempts at a time, and again how many retries,
	// may go to suspect endpoints: those whose last answer was not a quick
	// success, and those that have not answered yet. Default 1024: if fewer
	// endpoints than that hang at once, nobody else waits for them.
	Suspect     int
	PerMerchant int // exchanges with one merchant at a time, those of all workers included; default 8
	// Timeout bounds one exchange as a whole: looking up the name, dialling,
	// TLS, sending, and receiving the answer's header and body. The default is
	// poster.DefaultTimeout.
	Timeout time.Duration
	// Lease is how long a delivery is kept from other workers. It must leave
	// room for leasing, the exchange and recording its outcome; default 15 s.
	Lease time.Duration
	Grace time.Duration // from the end of Run's context to the end of its exchanges; default 10 s
	// Stall is how long an attempt may take as a whole, recording included, before
	// its slot is freed. Default watchdog.Limit.
	Stall time.Duration
	// Poll is the longest time between two rounds of the worker. Default 1 s.
	Poll time.Duration
}

// LimitsFor returns the limits of a worker that may have so many connections in
// use: the defaults, or fewer slots of each kind.
func LimitsFor(connections int) Limits {
	l := Limits{}.orDefaults()
	if connections >= l.slots() {
		return l
	}
	l.First, l.Retries = max(1, connections/6), max(1, connections/12)
	l.Suspect = max(1, (connections-l.First-l.Retries)/2)
	return l
}

// slots is how many attempts there may be at a time.
func (l Limits) slots() int { return l.First + l.Retries + 2*l.Suspect }

func (l Limits) orDefaults() Limits {
	return Limits{
		First:       cmp.Or(l.First, 256),
		Retries:     cmp.Or(l.Retries, 128),
		Suspect:     cmp.Or(l.Suspect, 1024),
		PerMerchant: cmp.Or(l.PerMerchant, 8),
		Timeout:     cmp.Or(l.Timeout, poster.DefaultTimeout),
		Lease:       cmp.Or(l.Lease, 15*time.Second),
		Grace:       cmp.Or(l.Grace, 10*time.Second),
		Stall:       cmp.Or(l.Stall, watchdog.Limit),
		Poll:        cmp.Or(l.Poll, time.Second),
	}
}

const (
	// storeTimeout bounds one call of the database.
	storeTimeout = 10 * time.Second
	// stopTimeout bounds what a stop waits for once the grace is over.
	stopTimeout = 5 * time.Second
	// resyncTimeout bounds one resync.
	resyncTimeout = time.Minute
	// recordRetry is how long to wait before an outcome is recorded again after
	// an error.
	recordRetry = 250 * time.Millisecond
)
