package main

import (
	"math/rand/v2"
	"sync"
	"time"
	"unsafe"

	"github.com/quittance/quittance/internal/clock"
)

// machineClock is the clock of the service's machine, which is set now and then.
type machineClock struct {
	began time.Time

	mu      sync.Mutex
	offsets []time.Duration // from the world's time; the last one is in force
}

// recent returns the last offsets, of which a request that is on its way may have any.
func (c *machineClock) recent() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration{0}, c.offsets...)[max(0, len(c.offsets)-2):]
}

// now returns the machine's time. Setting the clock changes only its wall time, and not its monotonic reading, which
// time.Now leaves out in a bubble.
func (c *machineClock) now() time.Time {
	recent := c.recent()
	t := time.Now()
	ran := t.Sub(c.began)
	t = t.Add(recent[len(recent)-1])
	const monotonic, secondsAt, before1970 = 1 << 63, 30, 2_682_288_000 // of a time.Time; its seconds begin in 1885
	inside := (*struct {
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t)) //nolint:gosec // a time.Time is such a struct
	inside.wall, inside.ext = monotonic|uint64(t.Unix()+before1970)<<secondsAt|uint64(t.Nanosecond()), int64(ran)+1
	return t
}

// set sets the clock forward or back, by seconds, minutes or hours.
func (c *machineClock) set(r *rand.Rand) time.Duration {
	offset := time.Duration(r.NormFloat64() * float64([]time.Duration{10 * time.Second, 2 * time.Minute, 2 * time.Hour}[r.IntN(3)])).Truncate(time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offsets = append(c.offsets, offset)
	return offset
}

// setClock sets the clock of the service's machine.
func (w *world) setClock(r *rand.Rand) {
	w.log.say("operator", "the machine's clock is set to %s ahead", w.machine.set(r))
}

// setClocks sets the clock of the service's machine a drawn number of times, until the active time is over.
func (w *world) setClocks() {
	r := stream(w.seed, "clock")
	for r.IntN(3) > 0 && clock.Sleep(w.ctx, time.Duration(r.ExpFloat64()*float64(w.active/3)), nil) && time.Since(w.plan.began) < w.active {
		w.setClock(r)
	}
}
