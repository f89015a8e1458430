package dispatcher

import (
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// lane is the part of the worker's slots for first attempts or for retries. It is a bulkhead: first attempts do not
// wait behind the retries of dead endpoints, and retries do not wait behind a burst of events. Within a lane, healthy
// endpoints have separate slots, which suspect ones cannot fill.
type lane struct {
	name    delivery.Lane
	healthy int // slots
	suspect int // slots
	cache   queueCache
	// suspectAttempts counts the attempts in flight to suspect endpoints.
	suspectAttempts int
	// attempts holds the attempts in flight to healthy endpoints, with their start times.
	attempts map[*attempt]time.Time
	// leasing is how many slots the running lease requests may fill: for healthy endpoints (key true) and for suspect
	// ones (key false).
	leasing map[bool]int
}

func newLane(name delivery.Lane, healthy, suspect int) *lane {
	return &lane{name: name, healthy: healthy, suspect: suspect, cache: newQueueCache(), attempts: make(map[*attempt]time.Time), leasing: make(map[bool]int)}
}

// slowAfter is how long an exchange with a healthy endpoint may take before it moves to a suspect slot, if one is free:
// an endpoint that stops answering must not occupy a healthy slot until its time limit.
const slowAfter = time.Second

// room returns how many more attempts may begin, to healthy and to suspect
// endpoints.
func (l *lane) room(now time.Time) (healthy, suspect int) {
	suspect = l.suspect - l.suspectAttempts - l.leasing[false]
	slow := 0
	for _, started := range l.attempts {
		if now.Sub(started) >= slowAfter {
			slow++
		}
	}
	moved := min(slow, max(0, suspect))
	return l.healthy - len(l.attempts) - l.leasing[true] + moved, suspect - moved
}
