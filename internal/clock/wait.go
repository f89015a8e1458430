package clock

import (
	"context"
	"time"
)

// Sleep waits for d, a wake-up or the end of ctx, whichever comes first. It
// reports whether ctx is still active. wake may be nil.
func Sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Jitter returns d changed by up to a fifth. random is in [0, 1); 0.5 leaves d as
// it is.
func Jitter(d time.Duration, random float64) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*random))
}

// Wake sends a wake-up unless one is pending. c has a buffer of one.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
