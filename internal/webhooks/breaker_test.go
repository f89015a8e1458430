package webhooks

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var began = time.UnixMilli(1_700_000_000_000)

// attempts applies attempts one second apart to a breaker, and returns it with the end of the last one.
func attempts(b Breaker, at time.Time, of ...Result) (Breaker, time.Time) {
	for _, v := range of {
		v.Started, v.Ended, v.Jitter = at, at.Add(v.Ended.Sub(v.Started)), 0.5
		b = b.After(v, 8)
		at = v.Ended.Add(time.Second)
	}
	return b, at
}

var (
	good    = Result{OK: true}
	slow    = Result{OK: true, Ended: time.Time{}.Add(healthyWithin)}
	bad     = Result{}
	silent  = Result{TimedOut: true}
	refused = Result{Gone: true}
	strange = Result{Switched: true}
)

func TestBreaker(t *testing.T) {
	open := func(b Breaker, at time.Time) time.Duration { return b.Until.Sub(at) }
	if got := NewBreaker.Health(); got != HealthUnused {
		t.Errorf("the health of an endpoint that nothing was sent to is %s", got)
	}
	for name, c := range map[string]struct {
		of      []Result
		state   BreakerState
		allowed int
		healthy bool
		pause   time.Duration // from the last attempt's end
		health  Health
	}{
		"a success":                     {of: []Result{good}, state: BreakerClosed, allowed: 2, healthy: true, health: HealthOK},
		"four":                          {of: []Result{good, good, good, good}, state: BreakerClosed, allowed: 8, healthy: true, health: HealthOK},
		"a slow one":                    {of: []Result{good, good, slow}, state: BreakerClosed, allowed: 8, health: HealthOK},
		"a failure between":             {of: []Result{good, good, bad}, state: BreakerClosed, allowed: 2, health: HealthFailing},
		"four failures":                 {of: []Result{bad, bad, bad, bad}, state: BreakerClosed, allowed: 1, health: HealthFailing},
		"five failures":                 {of: []Result{good, good, bad, bad, bad, bad, bad}, state: BreakerOpen, allowed: 1, pause: 30 * time.Second, health: HealthPaused},
		"four, a success, four":         {of: []Result{bad, bad, bad, bad, good, bad, bad, bad, bad}, state: BreakerClosed, allowed: 1, health: HealthFailing},
		"two timeouts":                  {of: []Result{silent, silent}, state: BreakerClosed, allowed: 1, pause: 2 * time.Second, health: HealthFailing},
		"three timeouts":                {of: []Result{silent, silent, silent}, state: BreakerOpen, allowed: 1, pause: 30 * time.Second, health: HealthPaused},
		"three with a failure between":  {of: []Result{silent, silent, bad, silent}, state: BreakerClosed, allowed: 1, pause: 2 * time.Second, health: HealthFailing},
		"a timeout and a success":       {of: []Result{silent, good}, state: BreakerClosed, allowed: 2, healthy: true, health: HealthOK},
		"one that wants nothing (410)":  {of: []Result{good, good, refused}, state: BreakerGone, allowed: 1, pause: time.Hour, health: HealthGone},
		"one that switches protocols":   {of: []Result{good, good, strange}, state: BreakerOpen, allowed: 1, pause: 30 * time.Second, health: HealthPaused},
		"and what was under way beside": {of: []Result{silent, silent, silent, silent, bad}, state: BreakerOpen, allowed: 1, pause: 28 * time.Second, health: HealthPaused},
	} {
		b, at := attempts(NewBreaker, began, c.of...)
		at = at.Add(-time.Second)
		if b.State != c.state || b.Allowed != c.allowed || b.Healthy != c.healthy || c.pause != 0 && open(b, at) != c.pause || c.pause == 0 && !b.Until.IsZero() || b.Health() != c.health {
			t.Errorf("%s: %+v, left alone for %s; want %+v", name, b, open(b, at), c)
		}
	}
}

// A breaker has the time of the first failure in a row, and the last error, which stays.
func TestBreakerOfFailures(t *testing.T) {
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	b, _ := attempts(NewBreaker, at(0), good, Result{Error: "first"}, Result{Error: "second"})
	if !b.Failing.Equal(at(1)) || !b.Failed.Equal(at(2)) || b.Error != "second" {
		t.Errorf("after two failures it is %+v", b)
	}
	if b, _ = attempts(b, at(3), good); !b.Failing.IsZero() || !b.Failed.Equal(at(2)) || b.Error != "second" {
		t.Errorf("after a success it is %+v", b)
	}
	if b, _ = attempts(b, at(4), Result{Error: "third"}); !b.Failing.Equal(at(4)) || b.Error != "third" {
		t.Errorf("after another failure it is %+v", b)
	}
}

// After each pause one attempt probes; failures double the pause, a success begins a ramp.
func TestBreakerProbes(t *testing.T) {
	b, _ := attempts(NewBreaker, began, silent, silent, silent)
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		probe := b.Until
		b, _ = attempts(b, probe, bad)
		if got := b.Until.Sub(probe); got != want || b.Allowed != 1 || b.State != BreakerOpen {
			t.Errorf("after a probe that failed: left alone for %s with %d allowed, %s; want %s", got, b.Allowed, b.State, want)
		}
	}
	at := b.Until
	for _, want := range []int{1, 2, 4, 8, 8} {
		if b, at = attempts(b, at, good); b.Allowed != want || b.State != BreakerClosed || b.Pauses != 0 {
			t.Errorf("on the ramp: %+v, want %d allowed", b, want)
		}
	}
}

// Whatever happens, an endpoint is allowed one to eight attempts, its pause never exceeds an hour and a fifth, and one
// success ends the pause.
func TestBreakerProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, at := NewBreaker, began
		for range rapid.IntRange(1, 60).Draw(rt, "attempts") {
			v := rapid.SampledFrom([]Result{good, slow, bad, silent, refused}).Draw(rt, "result")
			v.Started = at.Add(-time.Duration(rapid.IntRange(0, 5000).Draw(rt, "took")) * time.Millisecond)
			v.Ended, v.Jitter = at, rapid.Float64Range(0, 0.999).Draw(rt, "jitter")
			b = b.After(v, 8)
			if b.Allowed < 1 || b.Allowed > 8 {
				rt.Fatalf("%+v allows %d", b, b.Allowed)
			}
			if pause := b.Until.Sub(at); pause > gonePause*6/5 {
				rt.Fatalf("%+v leaves the endpoint alone for %s", b, pause)
			}
			if (b.State == BreakerClosed) != (b.Pauses == 0) || v.OK && b.State != BreakerClosed {
				rt.Fatalf("after %+v: %+v", v, b)
			}
			at = at.Add(time.Duration(rapid.IntRange(0, 3_000_000).Draw(rt, "wait")) * time.Millisecond)
		}
	})
}
