package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Node is one of a pool's endpoints. Whoever asks it tells it how that
// went, which decides when it is asked again.
type Node struct {
	*Client
	pool   *Pool
	health healthRecord // under pool.mu
}

// Ready holds the chain's configuration against the provider, the first time
// that it is asked, and again MisfitPause after it did not fit. What does not
// fit is an ErrMismatch; other errors mean that the provider could not be
// asked, and are not passed to Failed yet.
func (p *Node) Ready(ctx context.Context) error {
	p.pool.mu.Lock()
	fits, misfit, end := p.health.configured, p.health.misconfigErr, p.health.misconfiguredUntil
	p.pool.mu.Unlock()
	switch {
	case fits:
		return nil
	case p.pool.conf.Now().Before(end):
		return misfit
	}
	err := p.Check(ctx, p.pool.conf.Chain)
	if err != nil && !errors.Is(err, ErrMismatch) {
		return err
	}
	p.setConfigured(err)
	return err
}

// ReportMisconfigured notes that the provider does not fit the configuration in a way that
// Ready does not look for. misfit is an ErrMismatch.
func (p *Node) ReportMisconfigured(misfit error) { p.setConfigured(misfit) }

// setConfigured notes how the provider fits the configuration: nil or an ErrMismatch.
func (p *Node) setConfigured(misfit error) {
	p.update(func(r *healthRecord, now time.Time) {
		if misfit == nil {
			r.configured, r.misconfigErr, r.misconfiguredUntil = true, nil, time.Time{}
			return
		}
		if r.misconfigErr == nil { // else it was said before
			p.pool.conf.Logger.Error("a provider does not fit the configuration", "chain", p.pool.conf.Chain.Key,
				"provider", p.String(), "err", misfit)
		}
		r.configured, r.misconfigErr, r.misconfiguredUntil = false, misfit, now.Add(RecheckAfter)
	})
}

// ReportFailure notes an error of one of the provider's calls, or of what was made of
// its answer. When it was asked too often it is left alone for as long as it
// said; when it could not be reached, or answered what makes no sense, for a
// pause that doubles with each failure in a row. An answer that refuses the
// question, that the provider lacks something, and the end of the caller's own
// context say nothing against it. A contradiction sets it aside.
func (p *Node) ReportFailure(err error) {
	if errors.Is(err, ErrContradiction) {
		p.Quarantine(err.Error())
		return
	}
	retryAfter, limited := IsRateLimit(err)
	if !limited && !isNodeFailure(err) {
		return
	}
	wanted := min(retryAfter, MaxRetryAfter)
	p.update(func(r *healthRecord, now time.Time) {
		if now.Before(r.backoffUntil) {
			// Of calls that were under way together one counts.
			r.backoffUntil = later(r.backoffUntil, now.Add(wanted))
			return
		}
		if now.Sub(r.backoffUntil) >= FailuresResetAfter {
			r.failures = 0
		}
		r.failures++
		r.failing = true
		pause := max(wanted, p.pool.jitter(failureBackoff.after(r.failures)))
		r.backoffUntil, r.backoffReason = now.Add(pause), err.Error()
		level := slog.LevelDebug
		if r.failures == 1 {
			level = slog.LevelWarn
		}
		p.pool.conf.Logger.Log(context.Background(), level, "a provider fails and is left alone for a while",
			"chain", p.pool.conf.Chain.Key, "provider", p.String(), "pause", pause.Round(time.Millisecond), "err", err)
	})
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isNodeFailure reports whether an error speaks against the provider.
func isNodeFailure(err error) bool {
	for _, innocent := range []error{ErrNotFound, ErrUnsupported, ErrNoSubscription, ErrResponseTooLarge, ErrMismatch} {
		if errors.Is(err, innocent) {
			return false
		}
	}
	if err == nil || isCallerDone(err) {
		return false
	}
	f := classify(err)
	return !f.tooLarge() && f.nodeFault()
}

// ReportSuccess notes that the provider answered, which ends its pause if it was asked
// during one. The row of failures ends only after SteadyAfter without another:
// a provider may answer small questions and fail at each larger one.
func (p *Node) ReportSuccess() {
	p.update(func(r *healthRecord, now time.Time) {
		r.failing = false
		if now.Before(r.backoffUntil) {
			r.backoffUntil = now
		}
	})
}

// ReportHead notes a head that the provider told. One that lies too far below
// what it told before is an error, and sets it aside.
func (p *Node) ReportHead(h Header) error {
	var err error
	p.update(func(r *healthRecord, now time.Time) {
		highest := r.head
		if h.Number+MaxRegress < highest.Number && h.Time+int64(MaxRegressTime/time.Second) < highest.Time {
			err = fmt.Errorf("%s: went backwards: its head is block %d, and was block %d", p, h.Number, highest.Number)
			p.quarantine(r, now, err.Error())
			highest = Header{} // from here on it is judged by what it tells now
		}
		if h.Number >= highest.Number {
			r.head = h
		}
		r.headAt = now
		r.lagging = false
		for _, other := range p.pool.nodes {
			best := &other.health
			r.lagging = r.lagging || !now.Before(best.quarantinedUntil) && !now.Before(best.misconfiguredUntil) &&
				best.head.Number >= h.Number+LagBlocks && best.head.Time >= h.Time+int64(LagTime/time.Second)
		}
	})
	return err
}

// Quarantine notes that the provider contradicted itself or the others, or held
// up the work. It is left alone for MinAside, and for twice as long each next
// time.
func (p *Node) Quarantine(reason string) {
	p.update(func(r *healthRecord, now time.Time) { p.quarantine(r, now, reason) })
}

func (p *Node) quarantine(r *healthRecord, now time.Time, reason string) {
	if now.Before(r.quarantinedUntil) {
		return
	}
	if now.Sub(r.quarantinedUntil) > QuarantinesResetAfter {
		r.quarantines = 0
	}
	r.quarantines++
	pause := p.pool.jitter(quarantineBackoff.after(r.quarantines))
	r.quarantinedUntil, r.quarantineReason = now.Add(pause), reason
	p.pool.conf.Logger.Error("a provider is set aside", "chain", p.pool.conf.Chain.Key,
		"provider", p.String(), "pause", pause.Round(time.Second), "reason", reason)
}

// update applies f under the pool's lock and tells of a changed state.
func (p *Node) update(f func(r *healthRecord, now time.Time)) {
	p.pool.mu.Lock()
	now := p.pool.conf.Now()
	before, untilBefore, _ := p.health.state(now)
	f(&p.health, now)
	after, until, _ := p.health.state(now)
	h := p.snapshot(now)
	p.pool.mu.Unlock()
	if p.pool.conf.OnChange != nil && (after != before || !until.Equal(untilBefore)) {
		p.pool.conf.OnChange(h)
	}
}

// onRequest notes that a request was made.
func (p *Node) onRequest(calls int, took time.Duration, err error) {
	p.update(func(r *healthRecord, _ time.Time) {
		if r.calls == 0 {
			r.latency = took
		}
		r.calls += uint64(calls)
		if err != nil {
			r.errors++
		}
		r.latency += (took - r.latency) / latencyWeight
	})
}

// latencyWeight is how many requests the moving average of the latency is
// taken over.
const latencyWeight = 16

// snapshot returns what is known. The caller holds the pool's lock.
func (p *Node) snapshot(now time.Time) Health {
	h := Health{
		Node: p.String(), Head: p.health.head.Number, HeadAt: p.health.headAt,
		Calls: p.health.calls, Errors: p.health.errors, Latency: p.health.latency, Subscribed: p.subscribed.Load(),
	}
	h.State, h.Until, h.Reason = p.health.state(now)
	return h
}
