package chain

import "time"

// State says whether a provider is asked.
type State string

// The states of a provider, from best to worst.
const (
	StateOK            State = "ok"
	StateUnknown       State = "unknown" // never asked, or not since the pause after a failure
	StateLagging       State = "lagging" // behind the others; asked after them
	StateBackoff       State = "cooling" // failed, or was asked too often; left alone for a while
	StateQuarantined   State = "aside"   // contradicted itself or the others; left alone for longer
	StateMisconfigured State = "misfit"  // does not fit the configuration
)

// How long a provider is left alone, and what counts as a fault. Each pause is
// jittered by up to a fifth either way, except one that the provider named.
const (
	// MinBackoff and MaxCooling are the pauses after the first failure in a
	// row and after many; each is twice the one before.
	MinBackoff = time.Second
	MaxBackoff = time.Minute
	// FailuresResetAfter is how long after a pause without another failure a row of
	// failures ends.
	FailuresResetAfter = time.Minute
	// MaxRetryAfter is the longest pause that a provider may ask for.
	MaxRetryAfter = time.Hour
	// MinQuarantine and MaxAside are the pauses after a provider's first
	// contradiction and after many; each is twice the one before.
	MinQuarantine = 10 * time.Minute
	MaxQuarantine = 6 * time.Hour
	// QuarantinesResetAfter is how long after a pause a contradiction is forgotten.
	QuarantinesResetAfter = 24 * time.Hour
	// RecheckAfter is how long a provider that does not fit the configuration
	// waits to be looked at again.
	RecheckAfter = time.Minute
	// MaxRegress and MaxRegressTime are how far a provider's head may lie
	// below one that it told before, in blocks and in their time, both of
	// which must be passed: the nodes behind one address are not all at the
	// same block, and some networks have several blocks a second.
	MaxRegress     = 64
	MaxRegressTime = 30 * time.Second
	// LagBlocks and LagTime are how far a provider's head lies behind
	// another's when it lags, in blocks and in their time, both of which must
	// be reached.
	LagBlocks = 3
	LagTime   = 15 * time.Second
	// HeadMaxAge is how old the newest head of a provider is when Survey
	// asks for it again.
	HeadMaxAge = 15 * time.Second
	// sendGrace is how long other providers have to take a transaction once
	// one has.
	sendGrace = time.Second
)

// Health is what is known of a provider.
type Health struct {
	Node       string // scheme and host of its URL
	State      State
	Until      time.Time     // end of the pause in the states cooling, aside and misfit
	Reason     string        // why it is in that state; empty when it is well
	Head       uint64        // number of the newest head that it told
	HeadAt     time.Time     // when it told it; zero when it never did
	Calls      uint64        // made, each call of a batch counted
	Errors     uint64        // requests that failed
	Latency    time.Duration // of a request, a moving average
	Subscribed bool          // to new heads
}

// exponential are the lengths of a row of pauses that double.
type exponential struct{ first, most time.Duration }

var (
	failureBackoff    = exponential{MinBackoff, MaxBackoff}
	quarantineBackoff = exponential{MinQuarantine, MaxQuarantine}
)

// after returns the pause after n in a row, n from 1 on.
func (p exponential) after(n int) time.Duration {
	d := p.first
	for ; n > 1 && d < p.most; n-- {
		d *= 2
	}
	return min(d, p.most)
}

// healthRecord is the changing part of a provider, under the pool's lock.
type healthRecord struct {
	configured         bool  // was held against the configuration, and fits
	misconfigErr       error // how it did not when it was last looked at
	misconfiguredUntil time.Time

	failures      int  // in a row
	failing       bool // nothing worked since the last failure
	backoffUntil  time.Time
	backoffReason string

	quarantines      int
	quarantinedUntil time.Time
	quarantineReason string

	head    Header // the highest that it told
	headAt  time.Time
	lagging bool

	calls, errors uint64
	latency       time.Duration
}

// state returns the state at a time, with the end of its pause and its reason.
func (r *healthRecord) state(now time.Time) (s State, until time.Time, reason string) {
	switch {
	case now.Before(r.quarantinedUntil):
		return StateQuarantined, r.quarantinedUntil, r.quarantineReason
	case now.Before(r.misconfiguredUntil):
		return StateMisconfigured, r.misconfiguredUntil, r.misconfigErr.Error()
	case now.Before(r.backoffUntil):
		return StateBackoff, r.backoffUntil, r.backoffReason
	case r.calls == 0:
		return StateUnknown, time.Time{}, ""
	case r.failing:
		return StateUnknown, time.Time{}, r.backoffReason
	case r.lagging:
		return StateLagging, time.Time{}, "its head is behind that of others"
	}
	return StateOK, time.Time{}, ""
}
