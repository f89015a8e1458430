package invoice

import "time"

// lastSecond is the last second of the year 9999. Later times have no form in RFC
// 3339, and arithmetic with them can overflow.
const lastSecond = 253_402_300_799

// Unix returns the time of Unix seconds in UTC. Seconds before 1970 or after the year
// 9999, which only a faulty peer sends, count as the first or the last second in
// between. Two times that Unix returned are equal exactly if they are ==.
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
