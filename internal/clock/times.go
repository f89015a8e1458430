package clock

import "time"

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Format returns a time in a zone as text, and "" for the zero time, which means that there is no
// time. It is the only way to format a time in this program.
func Format(at time.Time, zone *time.Location, layout string) string {
	if at.IsZero() {
		return ""
	}
	return at.In(zone).Format(layout) //nolint:forbidigo // it is not zero
}

// Unix returns a time of Unix seconds, in UTC, and the zero time for 0.
func Unix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}
