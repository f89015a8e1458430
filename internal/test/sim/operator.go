package main

import (
	mathrand "math/rand/v2"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/simdisk"
)

// operate stops, kills and starts the service until the active time is over: at a drawn time, at a request, or when
// a fault stops its disk.
func (s *service) operate() {
	w, r := s.world, stream(s.world.seed, "operator"+s.name)
	for left := w.active; left > 0 && w.ctx.Err() == nil && !w.failed(); left = w.active - time.Since(w.plan.began) {
		d, crash := time.Duration(r.ExpFloat64()*float64(w.active/2)), (<-chan struct{})(nil)
		switch r.IntN(6) {
		case 0:
			crash = w.plan.crashAfter(1 + r.IntN(1000))
		case 1, 2:
			s.faulty = true
			s.disk.Plan(simdisk.Draw(r, s.disk.Ops(), 3000))
		}
		timer, kill := time.NewTimer(min(d, left)), true
		select {
		case <-timer.C:
			kill = r.IntN(2) == 0
		case <-crash:
		case <-s.disk.Stopped():
		}
		if timer.Stop() || d < left {
			s.restart(r, kill, time.Duration(r.ExpFloat64()*float64(8*time.Second)))
		}
	}
	s.disk.Heal()
	w.returns.Store(time.Now().Add(w.outage).UnixNano())
	if w.outage > 0 || s.stopped() {
		s.restart(r, s.stopped() || r.IntN(2) == 0, w.outage)
	}
	s.faulty = false
}

// pause waits before somebody asks the service again, and until the outage ends. It reports whether the world goes on.
func (w *world) pause(d time.Duration) bool {
	return clock.Sleep(w.ctx, max(d, time.Until(time.Unix(0, w.returns.Load()))), nil)
}

// restart stops or kills the service, and starts it after a pause. With a faulty disk that may take more attempts.
func (s *service) restart(r *mathrand.Rand, kill bool, pause time.Duration) {
	w := s.world
	if kill {
		s.kill(r)
	} else if err := s.stopNow(); err != nil && !s.faulty {
		w.fail("the service did not stop in order: %v", err)
	}
	w.pace.Store(int64(pause / 100))
	clock.Sleep(w.ctx, pause, nil)
	w.pace.Store(0)
	for {
		if s.stopped() {
			s.restartDisk()
		}
		faulty := s.faulty
		if time.Since(w.plan.began) > w.active {
			s.disk.Heal()
			faulty = false
		}
		err := s.start()
		if err == nil {
			return
		}
		w.log.say("operator", "%v", err)
		if !faulty || !clock.Sleep(w.ctx, 10*time.Second, nil) {
			w.fail("%v", err)
			return
		}
	}
}
