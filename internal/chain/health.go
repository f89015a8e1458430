package chain

import "time"

// State is the health of a node, which decides whether it is called.
type State string

// The states of a node, from best to worst.
const (
	StateOK            State = "ok"
	StateUnknown       State = "unknown"       // never called, or not since its last backoff
	StateLagging       State = "lagging"       // behind the others, or too slow; called after them
	StateBackoff       State = "backoff"       // failed or rate limited; not called for a while
	StateQuarantined   State = "quarantined"   // contradicted itself or the others; not called for longer
	StateMisconfigured State = "misconfigured" // does not match the configuration
)

// How long a node is excluded, by reason. Pauses are jittered by up to a fifth, except pauses that the node asked for.
const (
	// MinBackoff and MaxBackoff are the backoffs after the first failure in a row
	// and after many; each is twice the one before.
	MinBackoff = time.Second
	MaxBackoff = time.Minute
	// FailuresResetAfter is how long after a backoff without another failure the count of failures is reset.
	FailuresResetAfter = time.Minute
	// MaxRetryAfter is the longest backoff that a node may ask for.
	MaxRetryAfter = time.Hour
	// MinQuarantine and MaxQuarantine are the quarantines after a node's first
	// contradiction and after many; each is twice the one before.
	MinQuarantine = 10 * time.Minute
	MaxQuarantine = 6 * time.Hour
	// SlowFor is how long a node that was too slow is called after the others.
	SlowFor = 10 * time.Minute
	// QuarantinesResetAfter is how long after a quarantine the count is reset.
	QuarantinesResetAfter = 24 * time.Hour
	// RecheckAfter is the time between two checks of a misconfigured node.
	RecheckAfter = time.Minute
	// MaxRegress and MaxRegressTime are how far a node's head may fall below an earlier one, in blocks and in block
	// time. Both must be exceeded: the servers behind one URL are not all at the same block, and some networks have
	// several blocks a second.
	MaxRegress     = 64
	MaxRegressTime = 30 * time.Second
	// LagBlocks and LagTime are how far the head of a lagging node is behind the others', in blocks and in block time.
	// Both must be reached.
	LagBlocks = 3
	LagTime   = 15 * time.Second
	// HeadMaxAge is the age at which RefreshHeads asks for a node's head again.
	HeadMaxAge = 15 * time.Second
	// sendGrace is how long other nodes have to take a transaction once one has.
	sendGrace = time.Second
)

// Health is a snapshot of a node's health.
type Health struct {
	Node         string // scheme and host of its URL
	State        State
	Until        time.Time     // end of the backoff, the quarantine or the time to the next check
	Reason       string        // why it is in that state; empty if it is healthy
	FailingSince time.Time     // when it first failed without a success since; zero if it works
	LastError    string        // of its last failure, also if it works since
	LastErrorAt  time.Time     // when that was; zero without one
	Head         uint64        // number of its newest head
	HeadAt       time.Time     // when Head was read; zero if it never was
	Calls        Calls         // each call in a batch counts
	PerDay       uint64        // estimate of the calls per day, from the last hour; 0 in the first minute
	Errors       uint64        // failed requests, except those on behalf of API requests
	Latency      time.Duration // moving average per request, without API requests
	Limits       []LimitStatus // requests that it refused
	Pace         float64       // calls per second that it is limited to, because it refused more; 0 without a limit
	LeadingZeros bool          // it writes numbers with leading zeros
}

// Calls are numbers of calls by their class.
type Calls [len(classNames)]uint64

// Total returns the sum.
func (c Calls) Total() uint64 {
	var sum uint64
	for _, n := range c {
		sum += n
	}
	return sum
}

// exponential is a backoff that doubles.
type exponential struct{ first, most time.Duration }

var (
	failureBackoff    = exponential{MinBackoff, MaxBackoff}
	quarantineBackoff = exponential{MinQuarantine, MaxQuarantine}
)

// after returns the pause after the nth consecutive failure, n from 1.
func (p exponential) after(n int) time.Duration {
	d := p.first
	for ; n > 1 && d < p.most; n-- {
		d *= 2
	}
	return min(d, p.most)
}

// healthRecord is the mutable health of a node. The pool's lock guards it.
type healthRecord struct {
	configured         bool  // the last check succeeded
	misconfigErr       error // of the last check
	misconfiguredUntil time.Time

	failures      int       // consecutive
	failingSince  time.Time // when it first failed without a success since; zero if it works
	failedAt      time.Time // when it failed last
	backoffUntil  time.Time
	backoffReason string // the last failure

	quarantines      int
	quarantinedUntil time.Time
	quarantineReason string

	head    Header // the highest so far
	last    Header // the newest answer
	headAt  time.Time
	lagging bool

	slowUntil  time.Time
	slowReason string

	calls   Calls
	rate    callRate
	errors  uint64
	latency time.Duration
}

// wasCalled reports whether the node was called other than on behalf of requests.
func (r *healthRecord) wasCalled() bool { return r.calls[ClassFollowing]+r.calls[ClassWriting] > 0 }

// state returns the state at a time, with the end of its pause and its reason.
func (r *healthRecord) state(now time.Time) (s State, until time.Time, reason string) {
	switch {
	case now.Before(r.quarantinedUntil):
		return StateQuarantined, r.quarantinedUntil, r.quarantineReason
	case now.Before(r.misconfiguredUntil):
		return StateMisconfigured, r.misconfiguredUntil, r.misconfigErr.Error()
	case now.Before(r.backoffUntil):
		return StateBackoff, r.backoffUntil, r.backoffReason
	case now.Before(r.slowUntil):
		return StateLagging, time.Time{}, r.slowReason
	case !r.wasCalled():
		return StateUnknown, time.Time{}, ""
	case !r.failingSince.IsZero():
		return StateUnknown, time.Time{}, r.backoffReason
	case r.lagging:
		return StateLagging, time.Time{}, "its head is behind that of others"
	}
	return StateOK, time.Time{}, ""
}
