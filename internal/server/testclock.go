package server

import "time"

// TestClock is the clock of a development service that can be advanced: Config.Now shows
// its time.
type TestClock struct {
	// Elapsed returns how long the process has run by Now. The delivery schedule follows
	// it, so that it advances with Now.
	Elapsed func() time.Duration
	// MaxGap is the longest advance, which counts in full, unlike an outage.
	MaxGap time.Duration
	// Advanced is signalled after each advance.
	Advanced <-chan struct{}
	// Real is the time by which webhooks are signed and the signatures of notices are
	// judged, because receivers and providers compare them with their own clocks.
	Real func() time.Time
}
