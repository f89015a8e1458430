package chain

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quittance/quittance/internal/test/expect"
)

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
		if p.next.Sub(began) != 90*time.Millisecond {
			t.Errorf("nine calls took %s at 100 a second", p.next.Sub(began))
		}
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
		if err := p.admit(request, 1); !errors.Is(err, want) {
			t.Errorf("behind calls that take %s: %v, want %v", delay, err, want)
		}
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
			if failed != "" {
				rt.Errorf("a call failed: %s", failed)
			}
			if most := ended.Seconds()*20 + 5; float64(made) > most {
				rt.Errorf("%d calls are made within %s at 20 a second", made, ended)
			}
			if p.queue.first() != nil {
				rt.Error("a call still waits")
			}
		})
	})
}
