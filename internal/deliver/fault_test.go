package deliver

import (
	"fmt"
	"testing"
	"time"
)

func TestBrake(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	var b brake
	want := func(what string, at time.Time, underWay, room int) {
		t.Helper()
		if got := b.room(underWay, 64, at); got != room {
			t.Errorf("%s: room for %d beside %d, want %d", what, got, underWay, room)
		}
	}
	want("before", began, 64, 64) // the lanes bound it
	b.pull(40, began)
	b.pull(39, began) // of those that began together
	if !b.holds(began.Add(brakePause-1)) || b.holds(began.Add(brakePause)) {
		t.Error("it does not hold for its pause")
	}
	want("at once", began, 20, 0)
	want("half of it", began, 5, 15)
	want("a second later", began.Add(brakePause), 5, 35)
	b.pull(30, began.Add(brakePause))
	want("pulled again", began.Add(brakePause), 5, 10)
	want("two seconds later", began.Add(3*brakePause), 5, 55)
	want("three", began.Add(4*brakePause), 64, 64)
	b.pull(0, began.Add(time.Hour))
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

// Lines about one thing are one at once, and later one for all that were held
// back.
func TestLines(t *testing.T) {
	l := newLines()
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
	l.keys["a"].at = l.keys["a"].at.Add(-lineEvery)
	l.flush(false)
	add("a", 2)
	l.flush(true)
	if fmt.Sprint(got["a"]) != "[1 99 2]" {
		t.Errorf("in the end: %v", got)
	}
	for i := range 2 * maxLines {
		add(fmt.Sprint(i), 1)
	}
	if len(l.keys) > maxLines+1 {
		t.Errorf("%d keys are told apart", len(l.keys))
	}
}
