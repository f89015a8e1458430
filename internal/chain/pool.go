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
	Chain   Chain
	Clients []*Client // best first; at least one
	Now     func() time.Time
	Jitter  func() float64 // in [0, 1); nil for none
	Logger  *slog.Logger
	// FailoverAfter is how long a call waits for one provider while another could be
	// asked; 0 means DefaultPatience.
	FailoverAfter time.Duration
	// OnChange, when set, is told of a provider whose state changed by what
	// happened. That a pause ended is not told.
	OnChange func(Health)
}

// Pool is a chain's providers and what is known of their health. It is safe
// for concurrent use.
type Pool struct {
	conf  PoolConfig
	nodes []*Node

	mu sync.Mutex // of the providers' records
}

// NewPool returns a pool of the endpoints, which belong to it from then on.
func NewPool(conf PoolConfig) *Pool {
	conf.FailoverAfter = cmp.Or(conf.FailoverAfter, DefaultFailoverAfter)
	p := &Pool{conf: conf}
	for _, e := range conf.Clients {
		provider := &Node{Client: e, pool: p}
		e.onRequest = provider.onRequest
		p.nodes = append(p.nodes, provider)
	}
	return p
}

// jitter returns a pause changed by up to a fifth either way.
func (p *Pool) jitter(pause time.Duration) time.Duration {
	if p.conf.Jitter == nil {
		return pause
	}
	return time.Duration(float64(pause) * (0.8 + 0.4*p.conf.Jitter()))
}

// Nodes returns all providers in the configured order.
func (p *Pool) Nodes() []*Node { return slices.Clone(p.nodes) }

// Usable returns the providers to ask now, best first: in the configured order,
// those that lag after the others. Those that cool down are left out while
// there are others; those that are set aside or do not fit the configuration,
// while there is anything else. Then those come first whose pause ends first.
// It is never empty.
func (p *Pool) Usable() []*Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	ranks := map[*Node]int{}
	ends := map[*Node]time.Time{}
	best := rankExcluded
	for _, provider := range p.nodes {
		state, until, _ := provider.health.state(now)
		ranks[provider], ends[provider] = rank(state), until
		best = min(best, ranks[provider])
	}
	usable := slices.DeleteFunc(slices.Clone(p.nodes), func(provider *Node) bool {
		if best == rankHealthy {
			return ranks[provider] > rankLagging
		}
		return ranks[provider] != best
	})
	slices.SortStableFunc(usable, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), ends[a].Compare(ends[b]))
	})
	return usable
}

// Ranks by which providers are chosen.
const (
	rankHealthy = iota
	rankLagging
	rankBackoff
	rankExcluded
)

func rank(s State) int {
	switch s {
	case StateOK, StateUnknown:
		return rankHealthy
	case StateLagging:
		return rankLagging
	case StateBackoff:
		return rankBackoff
	case StateQuarantined, StateMisconfigured:
	}
	return rankExcluded
}

// Others returns Usable without one.
func (p *Pool) Others(than *Node) []*Node {
	return slices.DeleteFunc(p.Usable(), func(other *Node) bool { return other == than })
}

// HasHealthyOther reports whether another provider than one is well, or was never
// asked.
func (p *Pool) HasHealthyOther(than *Node) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	return slices.ContainsFunc(p.nodes, func(other *Node) bool {
		state, _, _ := other.health.state(now)
		return other != than && rank(state) == rankHealthy
	})
}

// Health returns what is known of the providers, in the configured order.
func (p *Pool) Health() []Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	all := make([]Health, len(p.nodes))
	for i, provider := range p.nodes {
		all[i] = provider.snapshot(now)
	}
	return all
}

// RefreshHeads asks those providers for their head that have not told one for
// SurveyAfter, unless they are in a pause, so that one that lags is known
// before it is needed. It returns when all have answered or failed.
func (p *Pool) RefreshHeads(ctx context.Context) {
	var group sync.WaitGroup
	for _, provider := range p.staleNodes() {
		group.Go(func() {
			if err := provider.refreshHead(ctx); err != nil {
				provider.ReportFailure(err)
			}
		})
	}
	group.Wait()
}

func (p *Node) refreshHead(ctx context.Context) error {
	if err := p.Ready(ctx); err != nil {
		return err
	}
	h, err := p.Head(ctx)
	if err != nil {
		return err
	}
	p.ReportSuccess()
	if err := p.ReportHead(h); err != nil {
		return nil //nolint:nilerr // SawHead has set it aside, which says it all
	}
	return nil
}

// staleNodes returns the providers that Survey asks.
func (p *Pool) staleNodes() []*Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	return slices.DeleteFunc(slices.Clone(p.nodes), func(provider *Node) bool {
		state, _, _ := provider.health.state(now)
		return rank(state) > rankLagging || now.Sub(provider.health.headAt) < HeadMaxAge
	})
}
