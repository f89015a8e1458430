package server

import (
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync"
)

const (
	// room is how many bytes a heap may grow between two garbage collections, if that is more than its
	// size.
	room = 64 << 20
	// leastPercent is the growth of a heap of that size or larger, in percent: Go's default for GOGC.
	leastPercent = 100
	// mostPercent is the percentage of a very small heap. It applies for a moment after a collection that
	// found more live bytes, so a larger one would let a heap that grows quickly become very large.
	mostPercent = 400
)

// KeepHeap lets the heap grow by 64 MB between two collections, but at most to five times and at least to
// twice its size. Without it Go would collect a heap of 15 MB each time that 15 MB more were
// allocated. A memory limit, of GOMEMLIMIT or [debug.SetMemoryLimit], holds as before. If the
// environment sets GOGC, Keep has no effect. The returned function ends it. Only one may be in use at
// a time.
func KeepHeap() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	k := &keeper{samples: []runtimemetrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}}
	k.adjust()
	return k.stop
}

// keeper sets the percentage by which the heap grows after each collection.
type keeper struct {
	mu      sync.Mutex              // guards the others; once stopped, the percentage stays
	samples []runtimemetrics.Sample // live heap, stacks and global variables
	stopped bool
}

// mark becomes garbage immediately: the next collection finds it. Because it has a pointer, it does
// not share memory with other small objects, which could keep it alive.
type mark struct{ _ *mark }

// adjust sets the percentage by the live bytes of the last collection, and does so again after the
// next.
func (k *keeper) adjust() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	runtimemetrics.Read(k.samples)
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

// percentOf returns by how many percent the heap may grow if live bytes, including stacks and global
// variables, are in use.
func percentOf(live uint64) int {
	return int(min(max(100*room/max(live, 1), leastPercent), mostPercent))
}
