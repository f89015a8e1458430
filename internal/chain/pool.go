package chain

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quittance/quittance/internal/clock"
)

// PoolConfig configures a Pool.
type PoolConfig struct {
	Chain   Chain
	Clients []*Client // best first; at least one
	Now     func() time.Time
	Jitter  func() float64 // in [0, 1); nil for no jitter
	// Sleep waits before a call to keep a node's pace; if nil, a real sleep is used. It fails if ctx ends first.
	Sleep   func(ctx context.Context, d time.Duration) error
	Logger  *slog.Logger
	Timeout time.Duration // for calls of OpenPool's clients; 0 means CallTimeout
	Dial    DialFunc      // of OpenPool's clients; nil means over the network
	// FailoverAfter is how long a call waits for one node while another is usable; 0 means DefaultFailoverAfter.
	FailoverAfter time.Duration
	// OnChange, if set, is called when a report changes the state of a node. It is not called when a backoff or
	// quarantine ends.
	OnChange func(Health)
	// OnRefused, if set, is called with the name of the budget when a call for a request is refused.
	OnRefused func(limit string)
}

// Pool holds the nodes of a chain with their health. It is safe for concurrent use.
type Pool struct {
	conf  PoolConfig
	nodes []*Node

	requests *Requests

	verified chan struct{} // closed when a node has matched the chain's configuration
	verify   func()        // closes it

	mu sync.Mutex // guards the nodes' health and their requestPause
}

// NewPool returns a pool that owns the clients of conf. It panics without a client or a clock.
func NewPool(conf PoolConfig) *Pool {
	if len(conf.Clients) == 0 || conf.Now == nil {
		panic("chain: PoolConfig.Clients and PoolConfig.Now are required")
	}
	conf.FailoverAfter = cmp.Or(conf.FailoverAfter, DefaultFailoverAfter)
	if conf.Sleep == nil {
		conf.Sleep = sleep
	}
	p := &Pool{conf: conf, verified: make(chan struct{})}
	p.verify = sync.OnceFunc(func() { close(p.verified) })
	for _, c := range conf.Clients {
		node := &Node{Client: c, pool: p}
		c.onRequest = node.onRequest
		c.onLeadingZeros = node.onLeadingZeros
		c.pace, c.limits.now = newPace(c.limits.settings.CallsPerSecond, conf.Now, conf.Sleep), conf.Now
		p.nodes = append(p.nodes, node)
	}
	p.requests = newRequests(p)
	return p
}

func sleep(ctx context.Context, d time.Duration) error {
	clock.Sleep(ctx, d, nil)
	return ctx.Err()
}

// jitter returns a pause changed by up to a fifth either way.
func (p *Pool) jitter(pause time.Duration) time.Duration {
	if p.conf.Jitter == nil {
		return pause
	}
	return clock.Jitter(pause, p.conf.Jitter())
}

// Nodes returns all nodes in the configured order.
func (p *Pool) Nodes() []*Node { return slices.Clone(p.nodes) }

// Verified waits until a node has matched the chain's configuration, including the code of its contracts, or until ctx
// ends. It calls no node: the indexer checks each one before it uses it. It returns an ErrMismatch immediately if no
// node matches.
func (p *Pool) Verified(ctx context.Context) error {
	mismatch := p.Mismatch()
	if p.WasVerified() {
		return nil
	}
	if mismatch != nil {
		return mismatch
	}
	select {
	case <-p.verified:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WasVerified reports whether a node has matched the chain's configuration.
func (p *Pool) WasVerified() bool {
	select {
	case <-p.verified:
		return true
	default:
		return false
	}
}

// Mismatch returns an ErrMismatch if no node matches the chain's configuration, and nil if one matches or was not
// checked.
func (p *Pool) Mismatch() (err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, node := range p.nodes {
		if err = node.health.misconfigErr; err == nil {
			return nil
		}
	}
	return err
}

// Usable returns the nodes to call now, best first: healthy nodes in the configured order, then lagging ones. Without
// such nodes it returns the nodes in backoff; without these, the quarantined and misconfigured ones, in the order in
// which their pauses end. It is never empty.
func (p *Pool) Usable() []*Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	ranks := map[*Node]int{}
	ends := map[*Node]time.Time{}
	best := rankExcluded
	for _, node := range p.nodes {
		state, until, _ := node.health.state(now)
		ranks[node], ends[node] = rank(state), until
		best = min(best, ranks[node])
	}
	usable := slices.DeleteFunc(slices.Clone(p.nodes), func(node *Node) bool {
		if best == rankHealthy {
			return ranks[node] > rankLagging
		}
		return ranks[node] != best
	})
	slices.SortStableFunc(usable, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), ends[a].Compare(ends[b]))
	})
	return usable
}

// Ranks of nodes, best first.
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

// Others returns Usable without the given node.
func (p *Pool) Others(than *Node) []*Node {
	return slices.DeleteFunc(p.Usable(), func(other *Node) bool { return other == than })
}

// Having returns the healthy nodes, and after them the lagging ones whose head is at least height. A node cannot
// exclude the others by a head that it invents, because they lag then, and still have their blocks.
func (p *Pool) Having(height uint64) []*Node {
	has := p.nodesWith(func(node *Node, rank int, _ time.Time) bool {
		return rank == rankHealthy || rank == rankLagging && node.health.last.Number >= height
	})
	return slices.DeleteFunc(p.Usable(), func(node *Node) bool { return !slices.Contains(has, node) })
}

// OtherHaving returns the best node of Having except one, or nil.
func (p *Pool) OtherHaving(height uint64, than *Node) *Node {
	for _, node := range p.Having(height) {
		if node != than {
			return node
		}
	}
	return nil
}

// nodesWith returns the nodes for which is returns true, in the configured order. is has the pool's lock.
func (p *Pool) nodesWith(is func(node *Node, rank int, now time.Time) bool) (all []*Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	for _, node := range p.nodes {
		if state, _, _ := node.health.state(now); is(node, rank(state), now) {
			all = append(all, node)
		}
	}
	return all
}

// PaceDelay returns how long a call of the indexer to the node would wait now to keep the node's pace.
func (p *Node) PaceDelay() time.Duration { return p.Client.pace.delay(ClassFollowing) }

// Health returns the health of the nodes, in the configured order.
func (p *Pool) Health() []Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	all := make([]Health, len(p.nodes))
	for i, node := range p.nodes {
		all[i] = node.snapshot(now)
	}
	return all
}

// RefreshHeads reads the head of each node with a head older than HeadMaxAge, so that lag is known before a node is
// needed. It skips nodes that are not usable, and returns when all have answered or failed.
func (p *Pool) RefreshHeads(ctx context.Context) {
	var group sync.WaitGroup
	for _, node := range p.staleNodes() {
		group.Go(func() {
			if err := node.refreshHead(ctx); err != nil {
				node.ReportFailure(err)
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
		return nil //nolint:nilerr // ReportHead has quarantined it
	}
	return nil
}

// staleNodes returns the nodes that RefreshHeads asks.
func (p *Pool) staleNodes() []*Node {
	return p.nodesWith(func(node *Node, rank int, now time.Time) bool {
		return rank <= rankLagging && now.Sub(node.health.headAt) >= HeadMaxAge
	})
}
