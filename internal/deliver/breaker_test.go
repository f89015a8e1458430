package deliver

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/store"
)

var began = time.UnixMilli(1_700_000_000_000)

var fresh = store.Breaker{State: store.BreakerClosed, Allowed: 1}

// attempts moves a breaker by attempts one second apart, and returns it with
// the time of the last one's end.
func attempts(b store.Breaker, at time.Time, of ...verdict) (store.Breaker, time.Time) {
	for _, v := range of {
		v.started, v.ended, v.jitter = at, at.Add(v.ended.Sub(v.started)), 0.5
		b = after(b, v, 8)
		at = v.ended.Add(time.Second)
	}
	return b, at
}

var (
	good    = verdict{ok: true}
	slow    = verdict{ok: true, ended: time.Time{}.Add(quickly)}
	bad     = verdict{}
	silent  = verdict{timedOut: true}
	refused = verdict{gone: true}
	strange = verdict{switched: true}
)

func TestBreaker(t *testing.T) {
	open := func(b store.Breaker, at time.Time) time.Duration { return time.UnixMilli(b.UntilMS).Sub(at) }
	for name, c := range map[string]struct {
		of      []verdict
		state   store.BreakerState
		allowed int
		steady  bool
		pause   time.Duration // from the last attempt's end
	}{
		"a success":                     {of: []verdict{good}, state: store.BreakerClosed, allowed: 2, steady: true},
		"four":                          {of: []verdict{good, good, good, good}, state: store.BreakerClosed, allowed: 8, steady: true},
		"a slow one":                    {of: []verdict{good, good, slow}, state: store.BreakerClosed, allowed: 8},
		"a failure between":             {of: []verdict{good, good, bad}, state: store.BreakerClosed, allowed: 2},
		"four failures":                 {of: []verdict{bad, bad, bad, bad}, state: store.BreakerClosed, allowed: 1},
		"five failures":                 {of: []verdict{good, good, bad, bad, bad, bad, bad}, state: store.BreakerOpen, allowed: 1, pause: 30 * time.Second},
		"four, a success, four":         {of: []verdict{bad, bad, bad, bad, good, bad, bad, bad, bad}, state: store.BreakerClosed, allowed: 1},
		"two timeouts":                  {of: []verdict{silent, silent}, state: store.BreakerClosed, allowed: 1, pause: 2 * time.Second},
		"three timeouts":                {of: []verdict{silent, silent, silent}, state: store.BreakerOpen, allowed: 1, pause: 30 * time.Second},
		"three with a failure between":  {of: []verdict{silent, silent, bad, silent}, state: store.BreakerClosed, allowed: 1, pause: 2 * time.Second},
		"a timeout and a success":       {of: []verdict{silent, good}, state: store.BreakerClosed, allowed: 2, steady: true},
		"one that wants nothing (410)":  {of: []verdict{good, good, refused}, state: store.BreakerGone, allowed: 1, pause: time.Hour},
		"one that switches protocols":   {of: []verdict{good, good, strange}, state: store.BreakerOpen, allowed: 1, pause: 30 * time.Second},
		"and what was under way beside": {of: []verdict{silent, silent, silent, silent, bad}, state: store.BreakerOpen, allowed: 1, pause: 28 * time.Second},
	} {
		b, at := attempts(fresh, began, c.of...)
		at = at.Add(-time.Second)
		if b.State != c.state || b.Allowed != c.allowed || b.Steady != c.steady || c.pause != 0 && open(b, at) != c.pause || c.pause == 0 && b.UntilMS != 0 {
			t.Errorf("%s: %+v, left alone for %s; want %+v", name, b, open(b, at), c)
		}
	}
}

// After each pause one attempt probes; failures double the pause, a success
// begins a ramp.
func TestBreakerProbes(t *testing.T) {
	b, _ := attempts(fresh, began, silent, silent, silent)
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		probe := time.UnixMilli(b.UntilMS)
		b, _ = attempts(b, probe, bad)
		if got := time.UnixMilli(b.UntilMS).Sub(probe); got != want || b.Allowed != 1 || b.State != store.BreakerOpen {
			t.Errorf("after a probe that failed: left alone for %s with %d allowed, %s; want %s", got, b.Allowed, b.State, want)
		}
	}
	at := time.UnixMilli(b.UntilMS)
	for _, want := range []int{1, 2, 4, 8, 8} {
		if b, at = attempts(b, at, good); b.Allowed != want || b.State != store.BreakerClosed || b.Pauses != 0 {
			t.Errorf("on the ramp: %+v, want %d allowed", b, want)
		}
	}
}

// Whatever happens, an endpoint is allowed one to eight attempts, is never
// left alone for longer than an hour and a fifth, and one success ends that.
func TestBreakerProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, at := fresh, began
		for range rapid.IntRange(1, 60).Draw(rt, "attempts") {
			v := rapid.SampledFrom([]verdict{good, slow, bad, silent, refused}).Draw(rt, "verdict")
			v.started = at.Add(-time.Duration(rapid.IntRange(0, 5000).Draw(rt, "took")) * time.Millisecond)
			v.ended, v.jitter = at, rapid.Float64Range(0, 0.999).Draw(rt, "jitter")
			b = after(b, v, 8)
			if b.Allowed < 1 || b.Allowed > 8 {
				rt.Fatalf("%+v allows %d", b, b.Allowed)
			}
			if pause := time.UnixMilli(b.UntilMS).Sub(at); pause > gonePause*6/5 {
				rt.Fatalf("%+v leaves the endpoint alone for %s", b, pause)
			}
			if (b.State == store.BreakerClosed) != (b.Pauses == 0) || v.ok && b.State != store.BreakerClosed {
				rt.Fatalf("after %+v: %+v", v, b)
			}
			at = at.Add(time.Duration(rapid.IntRange(0, 3_000_000).Draw(rt, "wait")) * time.Millisecond)
		}
	})
}
