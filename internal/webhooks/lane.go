package webhooks

import (
	"time"
)

// lane is the part of the worker's slots for first attempts or for retries. It is a bulkhead: first attempts do not
// wait behind the retries of dead endpoints, and retries do not wait behind a burst of events. Within a lane, healthy
// endpoints have separate slots, which suspect ones cannot fill.
type lane struct {
	number  int
	name    Lane
	healthy int // slots
	suspect int // slots
	// suspectAttempts counts the attempts in flight to suspect endpoints.
	suspectAttempts int
	// attempts holds the attempts in flight to healthy endpoints, with their start times.
	attempts map[*sending]time.Time
	requests [full]*leaseRequest // those that are running, for healthy and for suspect endpoints; nil for no request
}

func newLane(number int, name Lane, healthy, suspect int) *lane {
	return &lane{number: number, name: name, healthy: healthy, suspect: suspect, attempts: make(map[*sending]time.Time)}
}

// slowAfter is how long an exchange with a healthy endpoint may take before it moves to a suspect slot, if one is free:
// an endpoint that stops answering must not occupy a healthy slot until its time limit.
const slowAfter = time.Second

// room returns how many more attempts may begin, to healthy and to suspect
// endpoints.
func (l *lane) room(now time.Time) (forHealthy, forSuspect int) {
	forSuspect = l.suspect - l.suspectAttempts - l.requests[suspect].slots()
	slow := 0
	for _, started := range l.attempts {
		if now.Sub(started) >= slowAfter {
			slow++
		}
	}
	moved := min(slow, max(0, forSuspect))
	return l.healthy - len(l.attempts) - l.requests[healthy].slots() + moved, forSuspect - moved
}
