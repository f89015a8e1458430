package server

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

const mib = 1 << 20

// TestPercentOf checks the percentages at the edges.
func TestPercentOf(t *testing.T) {
	for _, test := range []struct {
		live uint64
		want int
	}{
		{0, 400}, {16 * mib, 400}, {20 * mib, 320}, {32 * mib, 200}, {64*mib - 1, 100}, {64 * mib, 100}, {1024 * mib, 100},
	} {
		if got := percentOf(test.live); got != test.want {
			t.Errorf("%d live bytes: %d %%; want %d", test.live, got, test.want)
		}
	}
}

// TestKeep checks the setting and Go's heap goal, with few live bytes, some and many.
func TestKeep(t *testing.T) {
	limit := debug.SetMemoryLimit(math.MaxInt64)
	percent := debug.SetGCPercent(leastPercent)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(percent)
	})
	t.Setenv("GOGC", "100") // it restores the setting when the test ends, and fails in parallel tests
	stop := KeepHeap()
	reach(t, "with GOGC set", leastPercent, leastPercent)
	stop()
	expect.OK(t, os.Unsetenv("GOGC"))
	stop = KeepHeap()
	reach(t, "with few live bytes", mostPercent, mostPercent)
	some := make([]byte, 32*mib)
	reach(t, "with 32 MiB", 150, 200)
	if goal := read("/gc/heap/goal:bytes"); goal < 90*mib || goal > 110*mib {
		t.Errorf("with 32 MiB, the heap may grow to %d MiB; want about 96", goal/mib)
	}
	runtime.KeepAlive(some)
	many := make([]byte, 80*mib)
	reach(t, "with 80 MiB", leastPercent, leastPercent)
	runtime.KeepAlive(many)
	reach(t, "with few again", mostPercent, mostPercent)
	stop()
	reach(t, "after its end", leastPercent, leastPercent)
}

// reach collects until the percentage is the wanted one, which happens soon after a collection.
func reach(t *testing.T, when string, least, most uint64) {
	t.Helper()
	var got uint64
	for range 1000 {
		runtime.GC()
		if got = read("/gc/gogc:percent"); got >= least && got <= most {
			return
		}
	}
	t.Errorf("%s, after 1000 collections: %d %%; want %d to %d", when, got, least, most)
}

func read(name string) uint64 {
	sample := []runtimemetrics.Sample{{Name: name}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}
