package deliver

import (
	"time"

	"github.com/quittance/quittance/internal/delivery"
)

// lane is a share of the worker's exchanges, which the other lane cannot use:
// first attempts do not wait behind the retries of dead endpoints, nor retries
// behind a burst of events. Within a lane, endpoints that are steady have a
// share of their own: those that may be slow or dead cannot fill it.
type lane struct {
	name     delivery.Lane
	label    string // of the metrics
	steady   int    // slots
	doubtful int    // slots
	roster   roster
	begun    int                   // exchanges under way with doubtful endpoints
	flights  map[*flight]time.Time // when those with steady ones began
	// ending are merchants to ask for although their breaker is open: what
	// waits behind it may be at its end.
	ending map[string]bool
}

func newLane(name delivery.Lane, label string, steady, doubtful int) *lane {
	return &lane{
		name: name, label: label, steady: steady, doubtful: doubtful,
		roster: newRoster(), flights: make(map[*flight]time.Time), ending: make(map[string]bool),
	}
}

// lingering is how long an exchange may take before it gives its steady slot
// to another, if there is a doubtful one for it: a steady endpoint that stops
// answering must not hold for the whole of its timeouts what others need.
const lingering = time.Second

// atOnce is how many exchanges with doubtful endpoints begin in one go. What
// very many of them need must not hold up those of steady ones.
const atOnce = 32

// room returns how many more exchanges may begin, with steady endpoints and
// with others.
func (l *lane) room(now time.Time) (steady, doubtful int) {
	doubtful = l.doubtful - l.begun
	slow := 0
	for _, started := range l.flights {
		if now.Sub(started) >= lingering {
			slow++
		}
	}
	moved := min(slow, max(0, doubtful))
	return l.steady - len(l.flights) + moved, doubtful - moved
}
