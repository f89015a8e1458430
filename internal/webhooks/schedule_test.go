package webhooks

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var created = time.UnixMilli(1_700_000_000_000)

// An endpoint that always fails is tried as scheduled, with growing pauses,
// until just before the deadline and no longer.
func TestScheduleOfADeadEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := created.Add(24 * time.Hour)
		now := created
		for number := 1; ; number++ {
			took := time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "took"))
			jitter := rapid.Float64Range(0, 1).Filter(func(f float64) bool { return f < 1 }).Draw(t, "jitter")
			failed := now.Add(took)
			next, more := RetryAt(number, failed, deadline, 0, jitter)
			if !more {
				if number != 13 {
					t.Fatalf("the last attempt was number %d, want 13", number)
				}
				if left := deadline.Sub(now); left < time.Minute || left > 10*time.Minute {
					t.Fatalf("the last attempt started %s before the deadline, want 1 to 10 minutes", left)
				}
				return
			}
			pause := next.Sub(failed)
			if number <= len(delays) {
				nominal := delays[number-1]
				if least, most := nominal*8/10, nominal*12/10; pause < least || pause > most {
					t.Fatalf("pause %d is %s, want %s to %s", number, pause, least, most)
				}
			}
			if next.After(deadline) {
				t.Fatalf("attempt %d is due %s after the deadline", number+1, next.Sub(deadline))
			}
			now = next
		}
	})
}

// Whatever receivers ask for, and however late a worker is, a retry is in the future and before the deadline. It is not
// earlier than the receiver asked for unless the deadline is near, and never earlier than without a Retry-After.
func TestScheduleWithRetryAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := created.Add(24 * time.Hour)
		number := rapid.IntRange(1, 14).Draw(t, "number")
		failed := created.Add(time.Duration(rapid.OneOf(
			rapid.Int64Range(0, int64(25*time.Hour)),
			rapid.Int64Range(int64(24*time.Hour-2*FinalWindow), int64(24*time.Hour)), // near the limits of the rules
		).Draw(t, "failed")))
		asked := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "asked"))
		jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		plain, more := RetryAt(number, failed, deadline, 0, jitter)
		due, alsoMore := RetryAt(number, failed, deadline, asked, jitter)
		if more != alsoMore {
			t.Fatalf("more attempts: %t, and %t when asked for a pause", more, alsoMore)
		}
		if !more {
			if number < maxAttempts && failed.Before(deadline.Add(-FinalWindow)) {
				t.Fatalf("gave up after attempt %d, %s before the deadline", number, deadline.Sub(failed))
			}
			return
		}
		if !due.After(failed) || due.Before(plain) || due.After(deadline.Add(-finalMargin)) {
			t.Fatalf("due %s after the failure and %s before the deadline; unasked %s after the failure",
				due.Sub(failed), deadline.Sub(due), plain.Sub(failed))
		}
		if asked := failed.Add(asked); due.Before(asked) && due.Before(deadline.Add(-FinalWindow)) {
			t.Fatalf("due %s before the receiver asked for", asked.Sub(due))
		}
	})
}

// The edges of the last attempt's time.
func TestScheduleEnds(t *testing.T) {
	deadline := created.Add(24 * time.Hour)
	for _, c := range []struct {
		left   time.Duration // from the failure to the deadline
		jitter float64
		want   time.Duration // from the next attempt to the deadline; 0 without a next attempt
	}{
		{FinalWindow + time.Nanosecond, 0, FinalWindow},
		{FinalWindow + time.Nanosecond, 0.5, 5*time.Minute + 30*time.Second},
		{FinalWindow, 0, 0},
		{FinalWindow, 0.5, 0},
		{finalMargin, 0.5, 0},
		{0, 0.5, 0},
		{-time.Hour, 0.5, 0},
	} {
		due, more := RetryAt(1, deadline.Add(-c.left), deadline, 24*time.Hour, c.jitter)
		if more != (c.want > 0) || more && deadline.Sub(due) != c.want {
			t.Errorf("failed %s before the deadline: next %s before it (%t), want %s", c.left, deadline.Sub(due), more, c.want)
		}
	}
}
