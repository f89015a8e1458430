package chain

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// PoolConfig is what a Pool works with.
type PoolConfig struct {
	Chain     Chain
	Endpoints []*Endpoint // best first; at least one
	Now       func() time.Time
	Jitter    func() float64 // in [0, 1); nil for none
	Logger    *slog.Logger
	// Patience is how long a call waits for one provider while another could be
	// asked; 0 means DefaultPatience.
	Patience time.Duration
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
	conf.Patience = cmp.Or(conf.Patience, DefaultPatience)
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
