package ledger

import (
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// maxClockError is how much a machine's clock may have been behind when it wrote a time. Such a row
// still counts for as long as it should.
const maxClockError = 24 * time.Hour

// Window is the span of time in which spending counts against a budget. The schedule's clock judges it,
// because the machine's clock may jump.
type Window struct {
	Since time.Time // by the schedule's clock
	// Oldest is a time by the machine's clock. Older rows are not read, since the indexes have that clock's times.
	Oldest time.Time
}

// WindowBefore returns the window of a length that ends now, at a time by the machine's clock and one
// by the schedule's.
func WindowBefore(now, scheduled time.Time, length time.Duration) Window {
	return Window{Since: scheduled.Add(-length), Oldest: clock.Earlier(now, scheduled).Add(-length - maxClockError)}
}
