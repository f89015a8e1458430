// Package heaproom lets a small heap grow before it is collected.
package heaproom

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// room is by how many bytes a heap may grow between two collections of garbage, if that is more than its size.
	room = 64 << 20
	// leastPercent is the growth of a heap of that size and more, in percent: Go's default for GOGC.
	leastPercent = 100
	// mostPercent is that of a very small one. The percentage holds for a moment after a collection that found more live
	// bytes, so that a large one would let a heap that grows quickly become very large.
	mostPercent = 400
)

// Keep lets the heap grow by 64 MB between two collections, to five times its size at most, and at least to twice its
// size. Go alone would collect a heap of 15 MB each time that 15 MB more were allocated. A memory limit, of GOMEMLIMIT or
// [debug.SetMemoryLimit], holds as before. If the environment sets GOGC, nothing is changed. The function that is returned
// ends it. One at a time may be in use.
func Keep() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	k := &keeper{samples: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}}
	k.adjust()
	return k.stop
}

// keeper sets the percentage by which the heap grows after each collection.
type keeper struct {
	mu      sync.Mutex       // guards the others; once stopped, nothing sets the percentage
	samples []metrics.Sample // what the percentage is of
	stopped bool
}

// mark is garbage at once: the next collection that begins finds it. With its pointer it does
// not share memory with other small objects, which could keep it.
type mark struct{ _ *mark }

// adjust sets the percentage by what the last collection left, and does so again after the next.
func (k *keeper) adjust() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	metrics.Read(k.samples)
	var live uint64
	for _, s := range k.samples {
		live += s.Value.Uint64()
	}
	debug.SetGCPercent(percentOf(live))
	runtime.AddCleanup(new(mark), (*keeper).adjust, k)
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	debug.SetGCPercent(leastPercent)
}

// percentOf returns by how many percent the heap may grow, of which, with stacks and global variables, so many bytes are live.
func percentOf(live uint64) int {
	return int(min(max(100*room/max(live, 1), leastPercent), mostPercent))
}
