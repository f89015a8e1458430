package db_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestBatcher submits 100 calls while the first batches are being flushed.
func TestBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, limit, calls = 2, 10, 100
		release := make(chan struct{})
		var running, most, batches atomic.Int64
		b := db.NewBatcher(db.BatchConfig[int, int]{
			Lanes: lanes,
			Full:  limit, Patience: time.Hour,
			Take: db.First[int, int](limit),
			Flush: func(_ context.Context, some []*db.Call[int, int]) {
				most.Store(max(most.Load(), running.Add(1)))
				batches.Add(1)
				if len(some) > limit {
					t.Errorf("a batch of %d, want at most %d", len(some), limit)
				}
				<-release
				for _, c := range some {
					c.Finish(2 * c.Value)
				}
				running.Add(-1)
			},
		})
		var results []<-chan int
		for i := range calls {
			results = append(results, b.Submit(t.Context(), i))
			synctest.Wait()
		}
		expect.Equal(t, batches.Load(), lanes, "batches begun before one ended:")
		close(release)
		for i, result := range results {
			expect.Equal(t, <-result, 2*i, "call %d got", i)
		}
		// The first call has its own batch, and the rest come in full batches.
		if want := int64(1 + (calls-1+limit-1)/limit); batches.Load() != want || most.Load() > lanes {
			t.Errorf("%d batches, %d at once; want %d, and at most %d at once", batches.Load(), most.Load(), want, lanes)
		}
		synctest.Wait()
		expect.Equal(t, <-b.Submit(t.Context(), 7), 14, "after the lanes were freed a call got")
	})
}

// TestSlowBatch submits calls while a batch takes long. The first after Batcher.Patience starts another lane.
func TestSlowBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Second
		release := make(chan struct{})
		b := db.NewBatcher(db.BatchConfig[int, int]{
			Lanes: 2, Full: 10, Patience: patience, Take: db.First[int, int](10),
			Flush: func(_ context.Context, some []*db.Call[int, int]) {
				if some[0].Value == 0 {
					<-release
				}
				for _, c := range some {
					c.Finish(c.Value)
				}
			},
		})
		slow := b.Submit(t.Context(), 0)
		synctest.Wait()
		<-time.After(patience / 2)
		first := b.Submit(t.Context(), 1)
		<-time.After(patience/2 - 1)
		second := b.Submit(t.Context(), 2)
		synctest.Wait()
		expect.Equal(t, b.Waiting(), 2, "calls wait within the patience:")
		<-time.After(1)
		for i, result := range []<-chan int{first, second} {
			expect.Equal(t, <-result, i+1, "a call got")
		}
		close(release)
		<-slow
		<-b.Idle()
	})
}

// TestFreedLane runs a batch that takes longer than the patience: its lane leaves a call to another lane.
func TestFreedLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Second
		b := db.NewBatcher(db.BatchConfig[time.Duration, time.Duration]{
			Lanes: 2, Full: 2, Patience: patience, Take: db.First[time.Duration, time.Duration](2),
			Flush: func(_ context.Context, some []*db.Call[time.Duration, time.Duration]) {
				<-time.After(some[0].Value)
				for _, c := range some {
					c.Finish(c.Value)
				}
			},
		})
		began := time.Now()
		b.Submit(t.Context(), 9*patience/10)
		synctest.Wait()
		b.Submit(t.Context(), 3*patience/2)
		b.Submit(t.Context(), 3*patience/2) // in another lane, with the one before
		synctest.Wait()
		slow := b.Submit(t.Context(), time.Minute) // in the first lane, after the other exceeded the patience
		<-time.After(6 * patience / 5)
		last := b.Submit(t.Context(), 0) // left to the first lane when the other ends
		<-last
		expect.Equal(t, time.Since(began), 2*patience, "the call took")
		<-slow
		<-b.Idle()
	})
}

// TestIdle checks that Idle waits for the calls that wait or are flushed.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := db.NewBatcher(db.BatchConfig[int, int]{
			Lanes: 1,
			Take:  db.First[int, int](1),
			Flush: func(_ context.Context, some []*db.Call[int, int]) {
				<-release
				some[0].Finish(0)
			},
		})
		<-b.Idle()
		for range 2 {
			b.Submit(t.Context(), 0)
		}
		synctest.Wait()
		idle := b.Idle()
		for range 2 {
			select {
			case <-idle:
				t.Error("idle while calls wait")
			default:
			}
			release <- struct{}{}
			synctest.Wait()
		}
		<-idle
		<-b.Idle()
	})
}

// TestWithdraw checks that a call is withdrawn or flushed, and never both.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 50
		release := make(chan struct{})
		var flushed [calls]bool
		b := db.NewBatcher(db.BatchConfig[int, int]{
			Lanes: 1,
			Take:  db.First[int, int](4),
			Flush: func(_ context.Context, some []*db.Call[int, int]) {
				<-release
				for _, c := range some {
					flushed[c.Value] = true
					c.Finish(c.Value)
				}
			},
		})
		var results [calls]<-chan int
		for i := range calls {
			results[i] = b.Submit(t.Context(), i)
			synctest.Wait()
		}
		expect.Equal(t, b.Waiting(), calls-1, "calls wait:")
		var withdrawn [calls]bool
		for i := 0; i < calls; i += 3 {
			if i == calls/2/3*3 { // some batches later
				release <- struct{}{}
				release <- struct{}{}
				synctest.Wait()
			}
			withdrawn[i] = b.Withdraw(results[i])
			if b.Withdraw(results[i]) {
				t.Errorf("call %d was withdrawn twice", i)
			}
		}
		if withdrawn[0] || !withdrawn[3] {
			t.Errorf("withdrawn: the call that was flushed at once %v, one that waits %v", withdrawn[0], withdrawn[3])
		}
		close(release)
		<-b.Idle()
		expect.Equal(t, b.Waiting(), 0, "calls wait at the end:")
		for i := range calls {
			if flushed[i] == withdrawn[i] {
				t.Errorf("call %d: flushed %v, withdrawn %v", i, flushed[i], withdrawn[i])
			}
		}
	})
}
