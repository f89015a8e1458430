package webhooks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

// In every case a plan stays within the request's room and every merchant's limit, takes no delivery that is in flight
// or not due, and gives no merchant two deliveries more than another that could have had them.
func TestPlanProperties(t *testing.T) {
	now := time.UnixMilli(1_000_000_000_000)
	rapid.Check(t, func(rt *rapid.T) {
		r := LeaseRequest{
			Now: now, PerMerchant: rapid.IntRange(1, 8).Draw(rt, "per merchant"),
			Healthy: rapid.IntRange(0, 20).Draw(rt, "healthy"), Suspect: rapid.IntRange(0, 20).Draw(rt, "suspect"),
		}
		breakers, queued := make(map[string]Breaker), make(map[string][]Delivery)
		for i := range rapid.IntRange(1, 6).Draw(rt, "merchants") {
			id := fmt.Sprint("m", i)
			breakers[id] = Breaker{State: BreakerClosed, Healthy: rapid.Bool().Draw(rt, "is healthy"), Allowed: rapid.IntRange(1, 8).Draw(rt, "allowed")}
			r.Queues = append(r.Queues, Queue{MerchantID: id})
			for n := range rapid.IntRange(0, 20).Draw(rt, "queued") {
				due := now.Add(time.Duration(n-10) * time.Millisecond)
				queued[id] = append(queued[id], Delivery{MerchantID: id, Seq: int64(100*i + n), Due: due, Deadline: due.Add(RetryWindow)})
			}
		}
		p := NewPlan(r, breakers)
		inFlight := make(map[string]int)
		for id, all := range queued {
			inFlight[id] = rapid.IntRange(0, min(3, len(all))).Draw(rt, "in flight")
			for _, d := range all[:inFlight[id]] {
				p.AddInFlight(id, d.Seq)
			}
		}
		byDue, _ := p.Peeks()
		for _, peek := range byDue {
			all := queued[peek.MerchantID]
			p.Found(peek, all[:min(len(all), peek.Limit)])
		}
		chosen, states := p.Choose()
		taken, room := make(map[string]int), map[bool]int{true: r.Healthy, false: r.Suspect}
		for _, d := range chosen {
			if d.Due.After(now) || d.Suspect == breakers[d.MerchantID].Healthy {
				rt.Fatalf("took %+v", d)
			}
			if next := queued[d.MerchantID][inFlight[d.MerchantID]+taken[d.MerchantID]]; next.Seq != d.Seq {
				rt.Fatalf("took %d of %s before %d", d.Seq, d.MerchantID, next.Seq)
			}
			taken[d.MerchantID]++
			room[!d.Suspect]--
		}
		for id, b := range breakers {
			if taken[id] > 0 && inFlight[id]+taken[id] > min(r.PerMerchant, b.Allowed) || room[b.Healthy] < 0 {
				rt.Fatalf("%s has %d and %d in flight, with room %v", id, taken[id], inFlight[id], room)
			}
			for other, o := range breakers {
				if b.Healthy == o.Healthy && taken[other] > taken[id]+1 && inFlight[id]+taken[id] < min(r.PerMerchant, b.Allowed) && len(queued[id]) > inFlight[id]+taken[id] &&
					!queued[id][inFlight[id]+taken[id]].Due.After(now) {
					rt.Fatalf("%s has %d, %s %d", id, taken[id], other, taken[other])
				}
			}
		}
		for _, s := range states {
			if rest := queued[s.MerchantID][inFlight[s.MerchantID]+taken[s.MerchantID]:]; len(rest) > 0 && (s.Head.IsZero() || s.Head.After(rest[0].Due)) {
				rt.Fatalf("%s goes on at %s, and %s waits", s.MerchantID, s.Head, rest[0].Due)
			}
		}
	})
}

func TestRoomOfSlots(t *testing.T) {
	l := newSlots(4, 3)
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
	expect.Equal(t, l.suspectAttempts+len(l.attempts), 7, "requests under way:")
}

func TestLimiter(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	var b limiter
	want := func(what string, at time.Time, inFlight, room int) {
		t.Helper()
		if got := b.room(inFlight, 64, at); got != room {
			t.Errorf("%s: room for %d with %d in flight, want %d", what, got, inFlight, room)
		}
	}
	want("before", began, 64, 64) // only limited by the slots
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
		if l.Healthy < 1 || l.Suspect < 1 || l.slots() > max(n, 2) {
			t.Errorf("for %d connections: %+v, %d slots", n, l, l.slots())
		}
	}
	expect.Equal(t, LimitsFor(5000), (Limits{}).orDefaults(), "with connections enough:")
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

// TestTakeOutcomes checks that successes are recorded before failures, failures in small
// batches, and the outcomes of one merchant in their order.
func TestTakeOutcomes(t *testing.T) {
	outcomeOf := func(merchant string, seq int64, status Status) *recordCall {
		return &recordCall{Value: unrecorded{outcome: Outcome{Delivery: Delivery{MerchantID: merchant, Seq: seq}, Status: status}}}
	}
	t.Run("many failures", func(t *testing.T) {
		var waiting []*recordCall
		for i := range int64(900) {
			waiting = append(waiting, outcomeOf("dead", i, Pending))
		}
		waiting = append(waiting, outcomeOf("well", 900, Delivered))
		batch, waiting := takeOutcomes(waiting)
		if len(batch) != 900/recordShare+1 || batch[len(batch)-1].Value.outcome.Delivery.Seq != 900 {
			t.Errorf("a batch of %d that ends with %d, want the success with the eighth part of the failures",
				len(batch), batch[len(batch)-1].Value.outcome.Delivery.Seq)
		}
		batches := 1
		for len(waiting) > 0 {
			_, waiting = takeOutcomes(waiting)
			batches++
		}
		if batches > 50 {
			t.Errorf("%d batches for 900 failures", batches)
		}
	})
	t.Run("in order", rapid.MakeCheck(func(t *rapid.T) {
		var waiting []*recordCall
		var all []int64
		for i := range rapid.Int64Range(0, 2*recordBatch).Draw(t, "outcomes") {
			status := rapid.SampledFrom([]Status{Delivered, Pending, Failed}).Draw(t, "status")
			waiting = append(waiting, outcomeOf(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "merchant"), i, status))
			all = append(all, i)
		}
		var taken []int64
		last := map[string]int64{}
		for len(waiting) > 0 {
			var batch []*recordCall
			batch, waiting = takeOutcomes(waiting)
			if len(batch) == 0 || len(batch) > recordBatch {
				t.Fatalf("a batch of %d", len(batch))
			}
			for _, c := range batch {
				d := c.Value.outcome.Delivery
				if before, ok := last[d.MerchantID]; ok && before > d.Seq {
					t.Fatalf("%d of %s comes after %d", d.Seq, d.MerchantID, before)
				}
				last[d.MerchantID] = d.Seq
				taken = append(taken, d.Seq)
			}
		}
		if slices.Sort(taken); !slices.Equal(taken, all) {
			t.Fatalf("taken are %v of %d", taken, len(all))
		}
	}))
}

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
	expect.Equal(t, NewBreaker.Health(time.Time{}), HealthUnused, "the health of an endpoint that nothing was sent to is")
	left := Breaker{State: BreakerOpen, Used: true, Failures: openAfter}
	expect.Equal(t, left.Health(left.Until.Add(probeLate)), HealthPaused, "the health before a probe is late is")
	expect.Equal(t, left.Health(left.Until.Add(probeLate+1)), HealthFailing, "the health without a probe is")
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
		if b.State != c.state || b.Allowed != c.allowed || b.Healthy != c.healthy || c.pause != 0 && open(b, at) != c.pause || c.pause == 0 && !b.Until.IsZero() || b.Health(at) != c.health {
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
