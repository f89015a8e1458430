package webhooks

import "time"

// slots are the worker's parallel attempts. Healthy endpoints have slots of their own, which suspect ones cannot fill,
// so that no healthy endpoint waits for endpoints that are dead or slow.
type slots struct {
	healthy int // slots
	suspect int // slots
	// suspectAttempts counts the attempts in flight to suspect endpoints.
	suspectAttempts int
	// attempts holds the attempts in flight to healthy endpoints, with their start times.
	attempts map[*sending]time.Time
	requests [full]*leaseRequest // those that are running, for healthy and for suspect endpoints; nil for no request
}

func newSlots(healthy, suspect int) *slots {
	return &slots{healthy: healthy, suspect: suspect, attempts: make(map[*sending]time.Time)}
}

// slowAfter is how long an exchange with a healthy endpoint may take before it moves to a suspect slot, if one is free:
// an endpoint that stops answering must not occupy a healthy slot until its time limit.
const slowAfter = time.Second

// room returns how many more attempts may begin, to healthy and to suspect endpoints.
func (s *slots) room(now time.Time) (forHealthy, forSuspect int) {
	forSuspect = s.suspect - s.suspectAttempts - s.requests[suspect].slots()
	slow := 0
	for _, started := range s.attempts {
		if now.Sub(started) >= slowAfter {
			slow++
		}
	}
	moved := min(slow, max(0, forSuspect))
	return s.healthy - len(s.attempts) - s.requests[healthy].slots() + moved, forSuspect - moved
}
