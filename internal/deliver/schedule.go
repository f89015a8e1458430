package deliver

import "time"

// delays are the pauses after the first failed attempt, the second and so on.
// After them comes one attempt more, shortly before the deadline.
var delays = [...]time.Duration{
	5 * time.Second, 30 * time.Second,
	2 * time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour,
}

const (
	// maxAttempts is how many attempts a delivery gets: the first, one after
	// each delay, and the last.
	maxAttempts = len(delays) + 2
	// spread is the share of a delay by which jitter shortens or prolongs it.
	spread = 0.2
	// The last attempt falls due between lastFrom and lastUntil before the
	// deadline. An attempt that fails in or after that time is the last.
	lastFrom, lastUntil = 10 * time.Minute, time.Minute
)

// retryAt returns when to try again after the attempt with the number, from 1,
// failed, or false when none is left. No retry is due after the deadline.
// retryAfter is the pause that the receiver asked for, which delays and never
// shortens; jitter is a random number in [0, 1).
func retryAt(number int, failed, deadline time.Time, retryAfter time.Duration, jitter float64) (time.Time, bool) {
	window := deadline.Add(-lastFrom)
	if number >= maxAttempts || !failed.Before(window) {
		return time.Time{}, false
	}
	last := window.Add(scale(lastFrom-lastUntil, jitter))
	if number > len(delays) {
		return last, true
	}
	delay := scale(delays[number-1], 1-spread+2*spread*jitter)
	due := failed.Add(max(delay, retryAfter))
	if due.After(last) {
		return last, true
	}
	return due, true
}

func scale(d time.Duration, by float64) time.Duration { return time.Duration(float64(d) * by) }
