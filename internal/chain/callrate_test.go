package chain

import (
	"testing"
	"time"
)

// TestCallRate makes two calls a second for two hours, and then one a minute.
func TestCallRate(t *testing.T) {
	var r callRate
	now, calls := time.Unix(1_800_000_000, 0), uint64(0)
	if got := r.perDay(now, 0); got != 0 {
		t.Errorf("without a call: %d", got)
	}
	pass := func(d, every time.Duration, n uint64) {
		for end := now.Add(d); now.Before(end); now = now.Add(every) {
			r.observe(now, calls)
			calls += n
		}
	}
	pass(30*time.Second, time.Second, 2)
	if got := r.perDay(now, calls); got != 0 {
		t.Errorf("after half a minute: %d", got)
	}
	pass(2*time.Hour, time.Second, 2)
	if got := r.perDay(now, calls); got < 172_000 || got > 173_600 {
		t.Errorf("with two calls a second: %d a day", got)
	}
	pass(2*time.Hour, time.Minute, 1)
	if got := r.perDay(now, calls); got < 1400 || got > 1480 {
		t.Errorf("with a call a minute: %d a day", got)
	}
	if got := r.perDay(now.Add(-5*time.Hour), calls); got != 0 {
		t.Errorf("with a clock that was set back: %d", got)
	}
}
