package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Provider is one of a pool's endpoints. Whoever asks it tells it how that
// went, which decides when it is asked again.
type Provider struct {
	*Endpoint
	pool *Pool
	rec  record // under pool.mu
}

// Ready holds the chain's configuration against the provider, the first time
// that it is asked, and again MisfitPause after it did not fit. What does not
// fit is an ErrMismatch; other errors mean that the provider could not be
// asked, and are not passed to Failed yet.
func (p *Provider) Ready(ctx context.Context) error {
	p.pool.mu.Lock()
	fits, misfit, end := p.rec.fits, p.rec.misfit, p.rec.misfitEnd
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
	p.held(err)
	return err
}

// Misfits notes that the provider does not fit the configuration in a way that
// Ready does not look for. misfit is an ErrMismatch.
func (p *Provider) Misfits(misfit error) { p.held(misfit) }

// held notes how the provider fits the configuration: nil or an ErrMismatch.
func (p *Provider) held(misfit error) {
	p.change(func(r *record, now time.Time) {
		if misfit == nil {
			r.fits, r.misfit, r.misfitEnd = true, nil, time.Time{}
			return
		}
		if r.misfit == nil { // else it was said before
			p.pool.conf.Logger.Error("a provider does not fit the configuration", "chain", p.pool.conf.Chain.Key,
				"provider", p.String(), "err", misfit)
		}
		r.fits, r.misfit, r.misfitEnd = false, misfit, now.Add(MisfitPause)
	})
}

// Failed notes an error of one of the provider's calls, or of what was made of
// its answer. When it was asked too often it is left alone for as long as it
// said; when it could not be reached, or answered what makes no sense, for a
// pause that doubles with each failure in a row. An answer that refuses the
// question, that the provider lacks something, and the end of the caller's own
// context say nothing against it. A contradiction sets it aside.
func (p *Provider) Failed(err error) {
	if errors.Is(err, ErrContradiction) {
		p.SetAside(err.Error())
		return
	}
	retryAfter, limited := IsRateLimit(err)
	if !limited && !isTrouble(err) {
		return
	}
	wanted := min(retryAfter, MaxRetryAfter)
	p.change(func(r *record, now time.Time) {
		if now.Before(r.coolEnd) {
			// Of calls that were under way together one counts.
			r.coolEnd = later(r.coolEnd, now.Add(wanted))
			return
		}
		if now.Sub(r.coolEnd) >= SteadyAfter {
			r.failures = 0
		}
		r.failures++
		r.failing = true
		pause := max(wanted, p.pool.jittered(cooling.after(r.failures)))
		r.coolEnd, r.coolWhy = now.Add(pause), err.Error()
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

// isTrouble reports whether an error speaks against the provider.
func isTrouble(err error) bool {
	for _, innocent := range []error{ErrNotFound, ErrUnsupported, ErrNoSubscription, ErrResponseTooLarge, ErrMismatch} {
		if errors.Is(err, innocent) {
			return false
		}
	}
	if err == nil || isCallers(err) {
		return false
	}
	f := examine(err)
	return !f.oversize() && f.trouble()
}

// Worked notes that the provider answered, which ends its pause if it was asked
// during one. The row of failures ends only after SteadyAfter without another:
// a provider may answer small questions and fail at each larger one.
func (p *Provider) Worked() {
	p.change(func(r *record, now time.Time) {
		r.failing = false
		if now.Before(r.coolEnd) {
			r.coolEnd = now
		}
	})
}

// SawHead notes a head that the provider told. One that lies too far below
// what it told before is an error, and sets it aside.
func (p *Provider) SawHead(h Header) error {
	var err error
	p.change(func(r *record, now time.Time) {
		highest := r.head
		if h.Number+MaxRegress < highest.Number && h.Time+int64(MaxRegressTime/time.Second) < highest.Time {
			err = fmt.Errorf("%s: went backwards: its head is block %d, and was block %d", p, h.Number, highest.Number)
			p.setAside(r, now, err.Error())
			highest = Header{} // from here on it is judged by what it tells now
		}
		if h.Number >= highest.Number {
			r.head = h
		}
		r.headAt = now
		r.lagging = false
		for _, other := range p.pool.providers {
			best := &other.rec
			r.lagging = r.lagging || !now.Before(best.asideEnd) && !now.Before(best.misfitEnd) &&
				best.head.Number >= h.Number+LagBlocks && best.head.Time >= h.Time+int64(LagTime/time.Second)
		}
	})
	return err
}

// SetAside notes that the provider contradicted itself or the others, or held
// up the work. It is left alone for MinAside, and for twice as long each next
// time.
func (p *Provider) SetAside(reason string) {
	p.change(func(r *record, now time.Time) { p.setAside(r, now, reason) })
}

func (p *Provider) setAside(r *record, now time.Time, reason string) {
	if now.Before(r.asideEnd) {
		return
	}
	if now.Sub(r.asideEnd) > Forgiven {
		r.contradictions = 0
	}
	r.contradictions++
	pause := p.pool.jittered(aside.after(r.contradictions))
	r.asideEnd, r.asideWhy = now.Add(pause), reason
	p.pool.conf.Logger.Error("a provider is set aside", "chain", p.pool.conf.Chain.Key,
		"provider", p.String(), "pause", pause.Round(time.Second), "reason", reason)
}

// change applies f under the pool's lock and tells of a changed state.
func (p *Provider) change(f func(r *record, now time.Time)) {
	p.pool.mu.Lock()
	now := p.pool.conf.Now()
	before, untilBefore, _ := p.rec.state(now)
	f(&p.rec, now)
	after, until, _ := p.rec.state(now)
	h := p.health(now)
	p.pool.mu.Unlock()
	if p.pool.conf.OnChange != nil && (after != before || !until.Equal(untilBefore)) {
		p.pool.conf.OnChange(h)
	}
}

// account notes that a request was made.
func (p *Provider) account(calls int, took time.Duration, err error) {
	p.change(func(r *record, _ time.Time) {
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

// health returns what is known. The caller holds the pool's lock.
func (p *Provider) health(now time.Time) Health {
	h := Health{
		Provider: p.String(), Head: p.rec.head.Number, HeadAt: p.rec.headAt,
		Calls: p.rec.calls, Errors: p.rec.errors, Latency: p.rec.latency, Subscribed: p.subscribed.Load(),
	}
	h.State, h.Until, h.Reason = p.rec.state(now)
	return h
}
