package webhooks

import "time"

// delays are the pauses after the first failed attempt, the second and so on.
// After them comes one more attempt, shortly before the deadline.
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
	// FinalWindow is how long before its deadline a delivery gets its last
	// attempt, even behind an open breaker. An attempt that fails within the
	// window is the last.
	FinalWindow = 10 * time.Minute
	// finalMargin is how long before the deadline the last attempt is due.
	finalMargin = time.Minute
)

// RetryAt returns when to try again after attempt number (counted from 1) failed, or false if no attempt is left. A
// retry is never due after the deadline. retryAfter is the pause that the receiver asked for: it prolongs a delay and
// never shortens one. jitter is a random number in [0, 1).
func RetryAt(number int, failed, deadline time.Time, retryAfter time.Duration, jitter float64) (time.Time, bool) {
	window := deadline.Add(-FinalWindow)
	if number >= maxAttempts || !failed.Before(window) {
		return time.Time{}, false
	}
	last := window.Add(scale(FinalWindow-finalMargin, jitter))
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
