package webhooks

import (
	"fmt"
	"testing"
	"time"
)

func TestLimiter(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	var b limiter
	want := func(what string, at time.Time, inFlight, room int) {
		t.Helper()
		if got := b.room(inFlight, 64, at); got != room {
			t.Errorf("%s: room for %d with %d in flight, want %d", what, got, inFlight, room)
		}
	}
	want("before", began, 64, 64) // only limited by the lanes
	b.backOff(40, began)
	b.backOff(39, began) // for attempts that started together
	if !b.paused(began.Add(limiterPause-1)) || b.paused(began.Add(limiterPause)) {
		t.Error("it does not pause")
	}
	want("at once", began, 20, 0)
	want("half of it", began, 5, 15)
	want("a second later", began.Add(limiterPause), 5, 35)
	b.backOff(30, began.Add(limiterPause))
	want("pulled again", began.Add(limiterPause), 5, 10)
	want("two seconds later", began.Add(3*limiterPause), 5, 55)
	want("three", began.Add(4*limiterPause), 64, 64)
	b.backOff(0, began.Add(time.Hour))
	want("one goes on", began.Add(time.Hour), 0, 1)
}

func TestLimitsFor(t *testing.T) {
	for _, n := range []int{1, 20, 96, 300, 1000, 5000} {
		l := LimitsFor(n)
		if l.First < 1 || l.Retries < 1 || l.Suspect < 1 || l.slots() > max(n, 4) {
			t.Errorf("for %d connections: %+v, %d slots", n, l, l.slots())
		}
	}
	if l := LimitsFor(5000); l != (Limits{}).orDefaults() {
		t.Errorf("with connections enough: %+v", l)
	}
}

// TestLogLimiter checks that the first message of a key is logged immediately, and the suppressed ones later as one
// message with their count.
func TestLogLimiter(t *testing.T) {
	l := newLogLimiter()
	got := map[string][]int{}
	add := func(key string, n int) {
		for range n {
			l.add(key, func(count int) { got[key] = append(got[key], count) })
		}
	}
	add("a", 100)
	add("b", 1)
	l.flush(false)
	if len(got["a"]) != 1 || got["a"][0] != 1 || len(got["b"]) != 1 {
		t.Errorf("at once: %v", got)
	}
	l.keys["a"].at = l.keys["a"].at.Add(-logEvery)
	l.flush(false)
	add("a", 2)
	l.flush(true)
	if fmt.Sprint(got["a"]) != "[1 99 2]" {
		t.Errorf("in the end: %v", got)
	}
	for i := range 2 * maxLogKeys {
		add(fmt.Sprint(i), 1)
	}
	if len(l.keys) > maxLogKeys+1 {
		t.Errorf("%d keys are distinguished", len(l.keys))
	}
}
