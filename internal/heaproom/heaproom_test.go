package heaproom

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

const mib = 1 << 20

// TestPercentOf checks the growth in bytes at the edges.
func TestPercentOf(t *testing.T) {
	for _, test := range []struct {
		live uint64
		want int
	}{
		{0, 1600}, {4*mib - 1, 1600}, {8 * mib, 800}, {32 * mib, 200}, {64*mib - 1, 100}, {64 * mib, 100}, {1024 * mib, 100},
	} {
		if got := percentOf(test.live); got != test.want {
			t.Errorf("%d live bytes: %d %%; want %d", test.live, got, test.want)
		}
	}
}

// TestKeep counts collections while garbage is made, in a small heap and in one that is larger than what is kept free.
// It changes this process, so nothing runs in parallel with it.
func TestKeep(t *testing.T) {
	if value, ok := os.LookupEnv("GOGC"); ok { // which CI sets
		t.Cleanup(func() { _ = os.Setenv("GOGC", value) })
	}
	before := debug.SetGCPercent(leastPercent)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	if err := os.Setenv("GOGC", "100"); err != nil {
		t.Fatal(err)
	}
	defer Keep()()
	if got := collections(10); got < 20 {
		t.Errorf("with GOGC set, %d collections while 10 times as much is allocated; want as many as Go makes", got)
	}
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	stop := Keep()
	if got := collections(10); got < 5 || got > 15 {
		t.Errorf("a small heap: %d collections while 10 times as much is allocated; want about 10", got)
	}
	large := make([]byte, 4*Bytes)
	settle()
	if got := collections(10); got < 1 || got > 5 {
		t.Errorf("a large heap: %d collections; want about 2", got)
	}
	runtime.KeepAlive(large)
	settle()
	stop()
	settle()
	if got := collections(10); got < 20 {
		t.Errorf("after its end: %d collections; want as many as Go makes", got)
	}
}

// settle collects until what ran after one collection has run.
func settle() {
	for range 3 {
		runtime.GC()
	}
}

// collections returns how often the heap was collected while so many times Bytes were allocated.
func collections(times int) int {
	sample := []metrics.Sample{{Name: "/gc/cycles/automatic:gc-cycles"}}
	metrics.Read(sample)
	began := sample[0].Value.Uint64()
	for range times * Bytes / (64 << 10) {
		garbage = make([]byte, 64<<10)
	}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64() - began)
}

// garbage keeps the compiler from leaving out allocations.
var garbage []byte
