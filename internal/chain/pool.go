package chain

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// PoolConfig is what a Pool works with.
type PoolConfig struct {
	Chain     Chain
	Endpoints []*Endpoint // best first; at least one
	Now       func() time.Time
	Jitter    func() float64 // in [0, 1); nil for none
	Logger    *slog.Logger
	// OnChange, when set, is told of a provider whose state changed by what
	// happened. That a pause ended is not told.
	OnChange func(Health)
}

// Pool is a chain's providers and what is known of their health. It is safe
// for concurrent use.
type Pool struct {
	conf      PoolConfig
	providers []*Provider

	mu sync.Mutex // of the providers' records
}

// NewPool returns a pool of the endpoints, which belong to it from then on.
func NewPool(conf PoolConfig) *Pool {
	p := &Pool{conf: conf}
	for _, e := range conf.Endpoints {
		provider := &Provider{Endpoint: e, pool: p}
		e.account = provider.account
		p.providers = append(p.providers, provider)
	}
	return p
}

// jittered returns a pause changed by up to a fifth either way.
func (p *Pool) jittered(pause time.Duration) time.Duration {
	if p.conf.Jitter == nil {
		return pause
	}
	return time.Duration(float64(pause) * (0.8 + 0.4*p.conf.Jitter()))
}

// Providers returns all providers in the configured order.
func (p *Pool) Providers() []*Provider { return slices.Clone(p.providers) }

// Usable returns the providers to ask now, best first: in the configured order,
// those that lag after the others. Those that cool down are left out while
// there are others; those that are set aside or do not fit the configuration,
// while there is anything else. Then those come first whose pause ends first.
// It is never empty.
func (p *Pool) Usable() []*Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	ranks := map[*Provider]int{}
	ends := map[*Provider]time.Time{}
	best := rankLast
	for _, provider := range p.providers {
		state, until, _ := provider.rec.state(now)
		ranks[provider], ends[provider] = rank(state), until
		best = min(best, ranks[provider])
	}
	usable := slices.DeleteFunc(slices.Clone(p.providers), func(provider *Provider) bool {
		if best == rankWell {
			return ranks[provider] > rankLagging
		}
		return ranks[provider] != best
	})
	slices.SortStableFunc(usable, func(a, b *Provider) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), ends[a].Compare(ends[b]))
	})
	return usable
}

// Ranks by which providers are chosen.
const (
	rankWell = iota
	rankLagging
	rankCooling
	rankLast
)

func rank(s State) int {
	switch s {
	case StateOK, StateUnknown:
		return rankWell
	case StateLagging:
		return rankLagging
	case StateCooling:
		return rankCooling
	case StateAside, StateMisfit:
	}
	return rankLast
}

// Others returns Usable without one.
func (p *Pool) Others(than *Provider) []*Provider {
	return slices.DeleteFunc(p.Usable(), func(other *Provider) bool { return other == than })
}

// HasOther reports whether another provider than one is well, or was never
// asked.
func (p *Pool) HasOther(than *Provider) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	return slices.ContainsFunc(p.providers, func(other *Provider) bool {
		state, _, _ := other.rec.state(now)
		return other != than && rank(state) == rankWell
	})
}

// Health returns what is known of the providers, in the configured order.
func (p *Pool) Health() []Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	all := make([]Health, len(p.providers))
	for i, provider := range p.providers {
		all[i] = provider.health(now)
	}
	return all
}

// Survey asks those providers for their head that have not told one for
// SurveyAfter, unless they are in a pause, so that one that lags is known
// before it is needed. It returns when all have answered or failed.
func (p *Pool) Survey(ctx context.Context) {
	var group sync.WaitGroup
	for _, provider := range p.silent() {
		group.Go(func() {
			if err := provider.survey(ctx); err != nil {
				provider.Failed(err)
			}
		})
	}
	group.Wait()
}

func (p *Provider) survey(ctx context.Context) error {
	if err := p.Ready(ctx); err != nil {
		return err
	}
	h, err := p.Head(ctx)
	if err != nil {
		return err
	}
	p.Worked()
	if err := p.SawHead(h); err != nil {
		return nil //nolint:nilerr // SawHead has set it aside, which says it all
	}
	return nil
}

// silent returns the providers that Survey asks.
func (p *Pool) silent() []*Provider {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	return slices.DeleteFunc(slices.Clone(p.providers), func(provider *Provider) bool {
		state, _, _ := provider.rec.state(now)
		return rank(state) > rankLagging || now.Sub(provider.rec.headAt) < SurveyAfter
	})
}

// CallContext makes one call, as go-ethereum's rpc.Client does: of the first
// usable provider that answers. An answer that refuses the question is an
// answer. A transaction (eth_sendRawTransaction) goes to all usable providers
// at once; it is sent when one takes it.
func (p *Pool) CallContext(ctx context.Context, result any, method string, args ...any) error {
	if method == "eth_sendRawTransaction" {
		return p.send(ctx, result, method, args...)
	}
	return p.try(ctx, func(e *Provider) error { return e.CallContext(ctx, result, method, args...) })
}

// BatchCallContext makes several calls together, of the first usable provider
// that answers them all. It fails when one of them does.
func (p *Pool) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return p.try(ctx, func(e *Provider) error { return e.BatchCallContext(ctx, batch) })
}

func (p *Pool) try(ctx context.Context, call func(*Provider) error) error {
	var err error
	for _, provider := range p.Usable() {
		if err = provider.answer(ctx, call); err == nil || !isPassedOn(err) {
			return err
		}
	}
	return err
}

// isPassedOn reports whether another provider may answer what one did not.
func isPassedOn(err error) bool {
	_, limited := IsRateLimit(err)
	return limited || isTrouble(err) || errors.Is(err, ErrMismatch) || errors.Is(err, ErrUnsupported)
}

// answer makes a call of the provider, and notes how it went.
func (p *Provider) answer(ctx context.Context, call func(*Provider) error) error {
	err := p.Ready(ctx)
	if err == nil {
		err = call(p)
	}
	if err == nil {
		p.Worked()
	} else {
		p.Failed(err)
	}
	return err
}

// send gives a transaction to all usable providers. When none takes it, the
// error is that of the first that answered, or else of the first.
func (p *Pool) send(ctx context.Context, result any, method string, args ...any) error {
	usable := p.Usable()
	type answer struct {
		from int
		body json.RawMessage
		err  error
	}
	answers := make(chan answer, len(usable))
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	for i, provider := range usable {
		go func() {
			a := answer{from: i}
			a.err = provider.answer(limited, func(e *Provider) error { return e.CallContext(limited, &a.body, method, args...) })
			answers <- a
		}()
	}
	var taken json.RawMessage
	errs := make([]error, len(usable))
	for range usable {
		a := <-answers
		if errs[a.from] = a.err; a.err == nil && taken == nil {
			taken = a.body
			defer time.AfterFunc(sendGrace, cancel).Stop()
		}
	}
	if taken != nil {
		return json.Unmarshal(taken, result)
	}
	for _, err := range errs {
		if !isPassedOn(err) {
			return err
		}
	}
	return errs[0]
}
