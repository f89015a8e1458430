package webhooks

import (
	"testing"
	"time"
)

func TestLaneRoom(t *testing.T) {
	l := &lane{healthy: 4, suspect: 3, attempts: make(map[*sending]time.Time)}
	now := time.UnixMilli(1_700_000_000_000).Add(time.Minute)
	add := func(n int, age time.Duration) {
		for range n {
			l.attempts[&sending{}] = now.Add(-age)
		}
	}
	want := func(what string, healthy, suspect int) {
		t.Helper()
		if s, d := l.room(now); s != healthy || d != suspect {
			t.Errorf("%s: room for %d and %d, want %d and %d", what, s, d, healthy, suspect)
		}
	}
	want("empty", 4, 3)
	add(2, 0)
	l.suspectAttempts = 1
	want("two quick ones and a suspect one", 2, 2)
	add(1, slowAfter-1)
	want("a third that is about to linger", 1, 2)
	add(1, slowAfter)
	want("one that lingers has moved", 1, 1)
	add(2, slowAfter)
	want("of two more one found a place", 0, 0)
	if n := (l.suspectAttempts + len(l.attempts)); n != 7 {
		t.Errorf("%d under way, want 7", n)
	}
}
