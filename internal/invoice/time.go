package invoice

import "time"

// lastSecond is the last second of the year 9999. RFC 3339 cannot represent later times, and arithmetic with them can
// overflow.
const lastSecond = 253_402_300_799

// Unix returns the time of Unix seconds in UTC. Seconds before 1970 or after the year 9999, which only a faulty peer
// sends, are clamped to that range. Two times that Unix returned are equal exactly if they are ==.
func Unix(seconds int64) time.Time {
	return time.Unix(max(0, min(seconds, lastSecond)), 0).UTC()
}

// UnixSeconds returns the Unix seconds of t; 0 for the zero time.
func UnixSeconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
