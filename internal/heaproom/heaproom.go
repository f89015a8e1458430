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
	// Bytes is by how much the heap grows at least between two collections of garbage.
	Bytes = 64 << 20
	// leastPercent is the growth of a heap of Bytes and more: Go's default for GOGC.
	leastPercent = 100
	// leastLive is the smallest heap that Go collects with that default.
	leastLive = 4 << 20
)

// Keep lets the heap grow by Bytes between two collections, or to twice its size if that is more. Go alone would collect a
// heap of 15 MB each time that 15 MB more were allocated. A memory limit, of GOMEMLIMIT or [debug.SetMemoryLimit], holds as
// before. If the environment sets GOGC, nothing is changed. The function that is returned ends it.
func Keep() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	k := &keeper{percent: leastPercent, samples: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}}
	k.adjust()
	return k.stop
}

// keeper sets the percentage by which the heap grows after each collection.
type keeper struct {
	mu      sync.Mutex
	samples []metrics.Sample // what the percentage is of
	percent int
	stopped bool
}

// mark is found to be garbage by the next collection. With its pointer it does not share memory
// with other small objects, which could keep it.
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
	percent := percentOf(live)
	if d := percent - k.percent; 10*max(d, -d) > k.percent { // setting it stops all goroutines for a moment
		k.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(mark), (*keeper).adjust, k)
}

func (k *keeper) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped = true
	debug.SetGCPercent(leastPercent)
}

// percentOf returns by how many percent the heap may grow, of which, with stacks and global variables, so many bytes are live.
func percentOf(live uint64) int { return int(max(100*Bytes/max(live, leastLive), leastPercent)) }
