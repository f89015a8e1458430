package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// Node is a node of a pool: a client with its health. Callers report the outcome of their calls, which decides when the
// node is called again.
type Node struct {
	*Client
	pool   *Pool
	health healthRecord // under pool.mu
	// requestPause is under pool.mu as well, and not part of the health.
	requestPause requestPause
}

// Ready checks the node against the chain's configuration: once, and again RecheckAfter each failed check. If they
// differ the error is an ErrMismatch. Other errors mean that the node did not answer; the caller reports them.
func (p *Node) Ready(ctx context.Context) error {
	p.pool.mu.Lock()
	fits, mismatch, end := p.health.configured, p.health.misconfigErr, p.health.misconfiguredUntil
	p.pool.mu.Unlock()
	switch {
	case fits:
		return nil
	case p.pool.conf.Now().Before(end):
		return mismatch
	}
	err := p.Check(ctx, p.pool.conf.Chain)
	if err != nil && !errors.Is(err, ErrMismatch) {
		return err
	}
	p.setConfigured(err)
	return err
}

// ReportMisconfigured records a mismatch that Ready does not check for. mismatch is an ErrMismatch.
func (p *Node) ReportMisconfigured(mismatch error) { p.setConfigured(mismatch) }

// setConfigured records the outcome of a check: nil or an ErrMismatch.
func (p *Node) setConfigured(mismatch error) {
	p.update(func(r *healthRecord, now time.Time) {
		if mismatch == nil {
			r.configured, r.misconfigErr, r.misconfiguredUntil = true, nil, time.Time{}
			p.pool.verify()
			return
		}
		if r.misconfigErr == nil { // otherwise it was logged before
			p.pool.conf.Logger.Error("node does not match the configuration", "chain", p.pool.conf.Chain.Key,
				"node", p.String(), "err", mismatch)
		}
		r.configured, r.misconfigErr, r.misconfiguredUntil = false, mismatch, now.Add(RecheckAfter)
	})
}

// ReportFailure records an error of a call, or of decoding its answer. A rate limit starts the backoff that the node
// asked for; an unreachable node or an invalid answer starts one that doubles with each failure in a row. A
// contradiction quarantines the node. A rejected request, a missing block and the end of the caller's context are not
// failures of the node.
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
			// Of concurrent failed calls, only one counts.
			r.backoffUntil = clock.Later(r.backoffUntil, now.Add(wanted))
			return
		}
		if now.Sub(r.backoffUntil) >= FailuresResetAfter {
			r.failures = 0
		}
		r.failures++
		if r.failedAt = now; r.failingSince.IsZero() {
			r.failingSince = now
		}
		pause := max(wanted, p.pool.jitter(failureBackoff.after(r.failures)))
		r.backoffUntil, r.backoffReason = now.Add(pause), err.Error()
		level := slog.LevelDebug
		if r.failures == 1 {
			level = slog.LevelWarn
		}
		p.pool.conf.Logger.Log(context.Background(), level, "node failed, backing off",
			"chain", p.pool.conf.Chain.Key, "node", p.String(), "pause", pause.Round(time.Millisecond), "err", err)
	})
}

// isNodeFailure reports whether an error counts as a failure of the node.
func isNodeFailure(err error) bool {
	for _, innocent := range []error{ErrNotFound, ErrUnsupported, ErrResponseTooLarge, errTooManyAnswers, ErrMismatch} {
		if errors.Is(err, innocent) {
			return false
		}
	}
	if err == nil || isCallerDone(err) {
		return false
	}
	return classify(err).nodeFault()
}

// ReportSuccess records that the node answered, and ends its backoff. The count of consecutive failures is reset only
// FailuresResetAfter the backoff: a node may answer small requests and fail at each larger one.
func (p *Node) ReportSuccess() {
	p.update(func(r *healthRecord, now time.Time) {
		r.failingSince = time.Time{}
		if now.Before(r.backoffUntil) {
			r.backoffUntil = now
		}
	})
}

// ReportHead records the node's head. A head too far below an earlier one quarantines the node and is an error. With
// three usable nodes, two others must be ahead of a node that lags: one may invent its heads.
func (p *Node) ReportHead(h Header) error {
	var err error
	p.update(func(r *healthRecord, now time.Time) {
		highest := r.head
		if h.Number+MaxRegress < highest.Number && h.Time.Add(MaxRegressTime).Before(highest.Time) {
			err = fmt.Errorf("%s: went backwards: its head is block %d, and was block %d", p, h.Number, highest.Number)
			p.quarantine(r, now, err.Error())
			highest = Header{} // from now on its present head counts
		}
		if h.Number >= highest.Number {
			r.head = h
		}
		r.last, r.headAt = h, now
		usable, ahead := 1, 0
		for _, other := range p.pool.nodes {
			o := &other.health // only its last answer counts: an earlier, higher one may have been wrong
			state, _, _ := o.state(now)
			if other == p || rank(state) == rankExcluded || o.headAt.IsZero() {
				continue
			}
			if rank(state) <= rankLagging {
				usable++
			}
			if o.last.Number >= h.Number+LagBlocks && !o.last.Time.Before(h.Time.Add(LagTime)) {
				ahead++
			}
		}
		r.lagging = ahead >= min(2, max(1, usable-1))
	})
	return err
}

// ReportSlow records that reading took too long with the node while another one was healthy. The node is called after
// the others for SlowFor. It is not excluded: its answers are right, and a quorum may need them.
func (p *Node) ReportSlow(reason string) {
	p.update(func(r *healthRecord, now time.Time) {
		r.slowUntil, r.slowReason = now.Add(SlowFor), reason
		p.pool.conf.Logger.Warn("node is slow, the others go first", "chain", p.pool.conf.Chain.Key, "node", p.String(), "reason", reason)
	})
}

// IsSlow reports whether the node was reported as slow in the last SlowFor.
func (p *Node) IsSlow() bool {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	return p.pool.conf.Now().Before(p.health.slowUntil)
}

// Quarantine excludes a node that contradicted itself or the others, or of which a request does not end.
// It lasts MinQuarantine, and twice as long each next time.
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
	p.pool.conf.Logger.Error("node quarantined", "chain", p.pool.conf.Chain.Key,
		"node", p.String(), "pause", pause.Round(time.Second), "reason", reason)
}

// update applies f under the pool's lock, and calls OnChange if the state changed.
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

// onRequest counts a request to the node. For a request on behalf of a client, only the calls count.
func (p *Node) onRequest(class Class, calls int, took time.Duration, err error) {
	p.update(func(r *healthRecord, now time.Time) {
		first := !r.wasCalled()
		r.rate.observe(now, r.calls.Total())
		r.calls[class] += uint64(calls)
		if class == ClassRequest {
			return
		}
		if first {
			r.latency = took
		}
		if err != nil {
			r.errors++
		}
		r.latency += (took - r.latency) / latencyWeight
	})
}

// onLeadingZeros logs that the node writes numbers with leading zeros.
func (p *Node) onLeadingZeros(method string) {
	p.pool.conf.Logger.Warn("node writes numbers with leading zeros, against the specification of JSON-RPC; they are read all the same",
		"chain", p.pool.conf.Chain.Key, "node", p.String(), "method", method)
}

// latencyWeight is the number of requests in the moving average of the latency.
const latencyWeight = 16

// snapshot returns the node's health. The caller holds the pool's lock.
func (p *Node) snapshot(now time.Time) Health {
	h := Health{
		Node: p.String(), Head: p.health.last.Number, HeadAt: p.health.headAt,
		Calls: p.health.calls, Errors: p.health.errors, Latency: p.health.latency,
		Limits: p.limits.status(), Pace: p.Client.pace.limit(), LeadingZeros: p.leadingZeros.Load(),
	}
	h.State, h.Until, h.Reason = p.health.state(now)
	h.FailingSince, h.LastError, h.LastErrorAt = p.health.failingSince, p.health.backoffReason, p.health.failedAt
	h.PerDay = p.health.rate.perDay(now, p.health.calls.Total())
	return h
}
