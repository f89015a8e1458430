package config

import "time"

// Limits of the settings of HTTP.
const (
	// DefaultStopDelay is how long a service that is told to stop still takes
	// requests when nothing is said of it.
	DefaultStopDelay = 2 * time.Second
	// MaxStopDelay is the longest such time.
	MaxStopDelay = 5 * time.Minute
)

// stopDelay reads a duration.
func (r *resolver) stopDelay(path string, text scalar) time.Duration {
	if text == "" {
		return DefaultStopDelay
	}
	d, err := time.ParseDuration(string(text))
	if err != nil || d < 0 || d > MaxStopDelay {
		r.fail(path, "is %q; want a duration of 0s to %s, such as 10s", text, MaxStopDelay)
	}
	return d
}
