package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if !clock.Sleep(t.Context(), time.Minute, nil) || time.Since(begun) != time.Minute {
			t.Errorf("slept %v, want a minute", time.Since(begun))
		}
		wake := make(chan struct{}, 1)
		clock.Wake(wake)
		clock.Wake(wake) // does not block
		begun = time.Now()
		if !clock.Sleep(t.Context(), time.Minute, wake) || time.Since(begun) != 0 {
			t.Errorf("slept %v in spite of a wake-up", time.Since(begun))
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if clock.Sleep(ended, time.Minute, nil) || time.Since(begun) != 0 {
			t.Errorf("slept %v after the context ended", time.Since(begun))
		}
	})
}

func TestJitter(t *testing.T) {
	for random, want := range map[float64]time.Duration{0: 80, 0.5: 100, 1: 120} {
		if got := clock.Jitter(100, random); got != want {
			t.Errorf("Jitter(100, %v) = %d, want %d", random, got, want)
		}
	}
}
