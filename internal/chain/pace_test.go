package chain

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

// pacedClock is a clock that advances only while something sleeps.
type pacedClock struct{ at time.Time }

func newPaced() (*pacedClock, *pace) {
	c := &pacedClock{time.Unix(1_790_000_000, 0)}
	return c, &pace{now: func() time.Time { return c.at }, sleep: func(ctx context.Context, d time.Duration) error {
		c.at = c.at.Add(d)
		return ctx.Err()
	}}
}

// TestPace calls a node that allows a number of calls per second, whatever a call costs: after the first refusals no
// call is refused for a minute.
func TestPace(t *testing.T) {
	for _, allowed := range []int{5, 6, 20} {
		c, p := newPaced()
		second, used, refused := c.at, 0, 0
		call := func() {
			expect.OK(t, p.admit(t.Context(), 1))
			if c.at.Sub(second) >= time.Second {
				second, used = c.at, 0
			}
			if used++; used > allowed {
				refused++
				p.refused()
			}
		}
		for range 200 {
			call()
		}
		refused, began := 0, c.at
		for c.at.Sub(began) < 2*time.Minute {
			call()
		}
		if refused > 6 {
			t.Errorf("%d calls are refused in two minutes where %d are allowed in a second", refused, allowed)
		}
	}
}

// TestPaceOfCallersThatGiveUp has a caller make 40 calls in a row and start again a second after each refusal, so that
// each second has few calls.
func TestPaceOfCallersThatGiveUp(t *testing.T) {
	for _, allowed := range []int{5, 6, 20} {
		c, p := newPaced()
		second, used, done := c.at, 0, 0
		if err := p.admit(t.Context(), 60); err != nil { // the first batch, which is refused
			t.Fatal(err)
		}
		p.refused()
		attempts := 0
		for ; done < 40 && attempts < 20; attempts++ {
			c.at = c.at.Add(time.Second)
			for done = 0; done < 40; done++ {
				expect.OK(t, p.admit(t.Context(), 1))
				if c.at.Sub(second) >= time.Second {
					second, used = c.at, 0
				}
				if used++; used > allowed {
					p.refused()
					break
				}
			}
		}
		if attempts > 5 {
			t.Errorf("%d attempts to make 40 calls where %d are allowed in a second", attempts, allowed)
		}
	}
}

// TestPaceEdges tests the limits of the pace.
func TestPaceEdges(t *testing.T) {
	_, p := newPaced()
	if err := p.admit(t.Context(), firstPace); err != nil || p.most() != MaxBatch || p.delay(ClassFollowing) != 0 {
		t.Errorf("a node that refused nothing: %d calls at once after %s, %v", p.most(), p.delay(ClassFollowing), err)
	}
	p.refused()
	expect.Equal(t, p.limit(), 0, "after a failure at %d calls a second the pace is", firstPace)
	expect.OK(t, p.admit(t.Context(), 1))
	p.refused()
	p.refused() // of the same time
	if p.limit() != firstPace || p.most() != 1 || p.delay(ClassFollowing) != pauseAfterRefusal {
		t.Errorf("after a failure at %d calls a second the pace is %f, after %s", firstPace+1, p.limit(), p.delay(ClassFollowing))
	}
	for _, want := range []float64{2, MinPace, MinPace} {
		for range firstPace {
			expect.OK(t, p.admit(t.Context(), 1))
		}
		if p.refused(); p.limit() != want {
			t.Errorf("after a further failure the pace is %f, want %f", p.limit(), want)
		}
	}
	slow, p := newPaced()
	p.rate = firstPace
	slow.at = slow.at.Add(time.Hour)
	p.changed = slow.at.Add(-pauseAfterRefusal)
	if p.refused(); p.limit() != firstPace {
		t.Errorf("a failure at fewer calls than the pace changes it to %f", p.limit())
	}
	for after, want := range map[time.Duration]float64{paceHeldFor - 1: firstPace, paceHeldFor: 2 * firstPace, 4 * paceHeldFor: maxPace, 5 * paceHeldFor: 0} {
		c, p := newPaced()
		p.rate, p.changed = firstPace, c.at
		c.at = c.at.Add(after)
		if p.recover(c.at); p.limit() != want {
			t.Errorf("%s after a refusal the pace is %f, want %f", after, p.limit(), want)
		}
	}
	set, p := newPaced()
	p.rate, p.setting = 8, 8
	for range 80 {
		expect.OK(t, p.admit(t.Context(), 2))
	}
	if took := set.at.Sub(time.Unix(1_790_000_000, 0)); took < 19*time.Second || took > 20*time.Second || p.limit() != 0 || p.most() != 2 {
		t.Errorf("160 calls took %s at 8 a second; refusals led to %f, %d at once", took, p.limit(), p.most())
	}
	if p.refused(); p.limit() != 4 {
		t.Errorf("after a refusal at 8 calls a second the pace is %f", p.limit())
	}
	set.at = set.at.Add(time.Hour)
	if p.recover(set.at); p.rate != 8 || p.limit() != 0 {
		t.Errorf("the pace grows to %f, above the setting", p.rate)
	}
	var none *pace
	if none.refused(); none.admit(t.Context(), 1) != nil || none.most() != MaxBatch || none.delay(ClassRequest) != 0 || none.limit() != 0 {
		t.Error("a client without a pool has a pace")
	}
}

// TestLostBroadcast calls a node faster than the slowest pace. A broadcast without an answer does not slow the calls
// down, because it is no evidence about their rate. A broadcast that is refused for the rate does, and so does another
// call without an answer.
func TestLostBroadcast(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		status int // 0: the connection breaks
		want   float64
	}{
		"a lost broadcast":            {broadcast, 0, 0},
		"a broadcast, gateway's page": {broadcast, http.StatusBadGateway, 0},
		"a broadcast, too many":       {broadcast, http.StatusTooManyRequests, firstPace},
		"another call":                {"eth_gasPrice", 0, firstPace},
	} {
		t.Run(name, func(t *testing.T) {
			node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				switch {
				case err != nil || !strings.Contains(string(body), test.method):
					_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x5"}`)
				case test.status == 0:
					panic(http.ErrAbortHandler)
				default:
					w.WriteHeader(test.status)
				}
			}))
			defer node.Close()
			c, err := NewClient(ClientConfig{URL: node.URL})
			expect.OK(t, err)
			defer c.Close()
			_, c.pace = newPaced()
			expect.OK(t, c.pace.admit(t.Context(), 2*firstPace-1))
			if err := c.call(t.Context(), new(string), test.method, "0x01"); err == nil {
				t.Fatal("it succeeds")
			}
			expect.Equal(t, c.pace.limit(), test.want, "the pace is")
		})
	}
}

// TestTurnsByClass makes calls of each class wait for a node, the requests first. The indexer has the first turns, then
// the transaction manager, and finally each class gets a turn.
func TestTurnsByClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(100, time.Now, sleep)
		expect.OK(t, p.admit(t.Context(), 1))
		var mu sync.Mutex
		var order []Class
		for _, class := range []Class{ClassRequest, ClassWriting, ClassFollowing} {
			for range 3 {
				go func() {
					expect.NoError(t, p.admit(withClass(t.Context(), class), 1))
					mu.Lock()
					defer mu.Unlock()
					order = append(order, class)
				}()
				synctest.Wait()
			}
		}
		began := time.Now()
		expect.OK(t, sleep(t.Context(), time.Second))
		synctest.Wait()
		const f, w, r = ClassFollowing, ClassWriting, ClassRequest
		if want := []Class{f, f, f, w, r, w, w, r, r}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
		expect.Equal(t, p.next.Sub(began), 90*time.Millisecond, "nine calls took … at 100 a second:")
	})
}

// TestNoClassStarves has the indexer and the transaction manager call a node as often as it allows.
func TestNoClassStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(100, time.Now, sleep)
		ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		classes := []Class{ClassFollowing, ClassWriting, ClassFollowing} // one of the first waits at each turn
		made := make([]int, len(classes))                                // each changed by one goroutine
		for i, class := range classes {
			go func() {
				for p.admit(withClass(ctx, class), 1) == nil && ctx.Err() == nil {
					made[i]++
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
		if w := made[1]; w < 1000/(maxPassed+1)-5 || w > 1000/(maxPassed+1)+5 {
			t.Errorf("of 1000 calls %d are of the writer, want one in %d", w, maxPassed+1)
		}
		if len(p.queue.waiting[ClassFollowing])+len(p.queue.waiting[ClassWriting]) != 0 {
			t.Error("callers that gave up still wait")
		}
	})
}

// TestRequestsWait tests how long others may delay a call for a request.
func TestRequestsWait(t *testing.T) {
	request := withClass(t.Context(), ClassRequest)
	for delay, want := range map[time.Duration]error{0: nil, requestsWait: nil, requestsWait + 1: errPaced} {
		c, p := newPaced()
		p.rate, p.setting, p.next = 4, 4, c.at.Add(delay)
		expect.Error(t, want, "behind calls that take %s", delay)(p.admit(request, 1))
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPace(4, time.Now, sleep)
		expect.OK(t, p.admit(t.Context(), 1))
		failed := make(chan error, 1)
		go func() { failed <- p.admit(withClass(t.Context(), ClassRequest), 1) }()
		synctest.Wait()
		for range 2 { // which go first
			expect.OK(t, p.admit(t.Context(), 1))
		}
		if err := <-failed; !errors.Is(err, errPaced) {
			t.Errorf("a request behind calls of the indexer: %v", err)
		}
		if p.delay(ClassRequest) > 0 {
			t.Error("it still waits")
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := p.admit(ended, 1); !errors.Is(err, context.Canceled) || len(p.queue.waiting[ClassFollowing]) > 0 {
			t.Errorf("a caller that gave up: %v", err)
		}
	})
}

// TestTurnsOfAnyCalls makes calls of all classes at any time. Some of them give up. All others are made, no faster than
// the pace allows, and only requests fail.
func TestTurnsOfAnyCalls(t *testing.T) {
	type call struct {
		After, GiveUp time.Duration
		Class         Class
		Calls         int
	}
	rapid.Check(t, func(rt *rapid.T) {
		calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
			return call{
				After:  time.Duration(rapid.IntRange(0, 300).Draw(t, "after")) * time.Millisecond,
				GiveUp: time.Duration(rapid.SampledFrom([]int{100, 100_000}).Draw(t, "gives up after")) * time.Millisecond,
				Class:  rapid.SampledFrom(Classes).Draw(t, "class"),
				Calls:  rapid.IntRange(1, 5).Draw(t, "calls"),
			}
		}), 1, 30).Draw(rt, "calls")
		synctest.Test(t, func(t *testing.T) {
			p := newPace(20, time.Now, sleep)
			began := time.Now()
			var mu sync.Mutex
			made, ended, failed := 0, time.Duration(0), ""
			var group sync.WaitGroup
			for _, c := range calls {
				expect.OK(t, sleep(t.Context(), c.After))
				group.Go(func() {
					ctx, end := context.WithTimeout(withClass(t.Context(), c.Class), c.GiveUp)
					defer end()
					err := p.admit(ctx, c.Calls)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						made, ended = made+c.Calls, time.Since(began)
					case ctx.Err() == nil && c.Class != ClassRequest:
						failed = err.Error()
					}
				})
			}
			group.Wait()
			expect.Equal(rt, failed, "", "a call failed:")
			if most := ended.Seconds()*20 + 5; float64(made) > most {
				rt.Errorf("%d calls are made within %s at 20 a second", made, ended)
			}
			if p.queue.first() != nil {
				rt.Error("a call still waits")
			}
		})
	})
}

// TestLimit finds a node's limit, stays near it without many refusals, and notices when the limit is raised.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{KindRange, KindHeaders, KindReceipts, KindReceiptsOfBlock}).Draw(t, "kind")
		l := newLimit(kind, NodeSettings{}, time.Now)
		allowed := rapid.Uint64Range(l.least, 2*l.most).Draw(t, "allowed")
		ask := func() (n uint64, refused bool) {
			n = l.Next()
			if n < l.least || n > l.most {
				t.Fatalf("asks for %d", n)
			}
			switch {
			case n > allowed:
				if !l.Refused(n) && l.least > 0 {
					t.Fatalf("gives up at %d, of which %d are allowed", n, allowed)
				}
				return n, true
			case n > 0:
				l.Answered(n)
			}
			return n, false
		}
		for range 100 {
			ask()
		}
		refusals, asked := 0, uint64(0)
		for range 200 {
			n, refused := ask()
			asked += n
			if refused {
				refusals++
			}
		}
		if refusals > 30 {
			t.Fatalf("%d of 200 requests are refused where %d is allowed", refusals, allowed)
		}
		if asked < 200*min(allowed, l.most)/2 {
			t.Fatalf("asks for %d on average where %d is allowed", asked/200, allowed)
		}
		if s, told := l.status(); told && s.Refused <= allowed || allowed < l.most/2 && !told {
			t.Fatalf("status %+v, %t where %d is allowed", s, told, allowed)
		}
		allowed = 2 * l.most
		for range 5000 {
			ask()
		}
		if n := l.Next(); n != l.most {
			t.Fatalf("asks for %d where nothing is refused, want %d", n, l.most)
		}
	})
}

// TestLimitSettings starts from the settings of a node.
func TestLimitSettings(t *testing.T) {
	s := NodeSettings{MaxBatch: 7, MaxRange: 9}
	for kind, want := range map[Kind]uint64{KindHeaders: 7, KindHeads: 7, KindLogs: 7, KindReceipts: 7, KindCalls: 7, KindRequestCalls: 7, KindRange: 9, KindBlocks: MaxBlocks, KindReceiptsOfBlock: 1} {
		l := newLimit(kind, s, time.Now)
		for range 200 {
			if n := l.Next(); n != want {
				t.Fatalf("%s: asks for %d, want %d", kind, n, want)
			}
			l.Answered(want)
		}
		if _, told := l.status(); told {
			t.Errorf("%s: a setting is shown as a refusal", kind)
		}
	}
}

// TestLimitEdges requests the smallest possible size.
func TestLimitEdges(t *testing.T) {
	l := newLimit(KindHeaders, NodeSettings{MaxBatch: 1}, time.Now)
	if l.Refused(1) || l.Next() != 1 {
		t.Error("asks for less than one call")
	}
	r := newLimit(KindRange, NodeSettings{MaxRange: 1}, time.Now)
	if r.Refused(1) || r.Next() != 0 {
		t.Error("asks for a range that was refused, though there is another way")
	}
	for n := 2; n < retryRefusedAfter; n++ {
		if r.Next() != 0 {
			t.Fatalf("tries again after %d, want %d", n, retryRefusedAfter)
		}
	}
	if r.Next() != 1 {
		t.Errorf("does not try again after %d", retryRefusedAfter)
	}
	r.Answered(1)
	if r.Next() != 1 {
		t.Error("does not use what was answered")
	}
	r.Fit(0)
	if r.Next() != 1 {
		t.Error("fits to nothing")
	}
}

// TestCallRate makes two calls a second for two hours, and then one a minute.
func TestCallRate(t *testing.T) {
	var r callRate
	now, calls := time.Unix(1_800_000_000, 0), uint64(0)
	expect.Equal(t, r.perDay(now, 0), 0, "without a call:")
	pass := func(d, every time.Duration, n uint64) {
		for end := now.Add(d); now.Before(end); now = now.Add(every) {
			r.observe(now, calls)
			calls += n
		}
	}
	pass(30*time.Second, time.Second, 2)
	expect.Equal(t, r.perDay(now, calls), 0, "after half a minute:")
	pass(2*time.Hour, time.Second, 2)
	if got := r.perDay(now, calls); got < 172_000 || got > 173_600 {
		t.Errorf("with two calls a second: %d a day", got)
	}
	pass(2*time.Hour, time.Minute, 1)
	if got := r.perDay(now, calls); got < 1400 || got > 1480 {
		t.Errorf("with a call a minute: %d a day", got)
	}
	expect.Equal(t, r.perDay(now.Add(-5*time.Hour), calls), 0, "with a clock that was set back:")
}
