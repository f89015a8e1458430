package chain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/limits"
)

// Limits of calls to a chain's nodes that are made on behalf of requests.
const (
	// DefaultRequestCalls is the number of calls per second, unless Chain.RequestCalls is set. An owner gets a
	// requestShare-th of it.
	DefaultRequestCalls = 40
	requestShare        = 4
	// RequestWindow is how long a full budget lasts at its rate.
	RequestWindow = 2 * time.Second
	// MaxRequestCalls is the number of calls in flight. An owner gets a share of it, up to half.
	MaxRequestCalls = 64
	// maxRequestOwners is how many owners' budgets are remembered.
	maxRequestOwners = 10_000
)

// Names of the budgets of requests, in refusals and metrics.
const (
	limitNodeCalls    = "node_calls"     // for one owner
	limitAllNodeCalls = "all_node_calls" // for all owners together
)

// ErrNoNode is the error of a call for a request while no node is usable. Requests do not call a node that the indexer
// has not checked, that failed for the indexer, or that limits their rate.
var ErrNoNode = errors.New("no node is usable for requests right now")

// BatchCaller makes several calls together.
type BatchCaller interface {
	BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error
}

// Requests calls a chain's nodes on behalf of requests. The calls are bounded, for each owner and in total, and a call
// that fails leaves the health of a node as it is. So the calls cannot prevent the indexer from using its nodes,
// whatever their number and content.
//
// A call beyond a budget is refused without waiting. The error is a *limits.ExceededError if the owner's budget is
// used up, and limits.ErrBusy if the budget of all owners or of a node is.
type Requests struct {
	pool   *Pool
	owners *limits.Buckets[string]
	all    *limits.Buckets[struct{}]

	inFlight *limits.Shares[string] // by owner
}

func newRequests(p *Pool) *Requests {
	rate := cmp.Or(p.conf.Chain.RequestCalls, DefaultRequestCalls)
	limit := func(name string, rate int) limits.Limit { return limits.PerSecond(name, rate, RequestWindow) }
	return &Requests{
		pool:     p,
		owners:   limits.NewBuckets[string](limit(limitNodeCalls, RequestCallsOfOwner(rate)), maxRequestOwners, p.conf.Now),
		all:      limits.NewBuckets[struct{}](limit(limitAllNodeCalls, rate), 1, p.conf.Now),
		inFlight: limits.NewShares[string](limitNodeCalls, MaxRequestCalls),
	}
}

// RequestCallsOfOwner returns one owner's calls per second if all owners together have rate.
func RequestCallsOfOwner(rate int) int { return max(1, rate/requestShare) }

// Requests returns the caller for requests.
func (p *Pool) Requests() *Requests { return p.requests }

// Nodes returns how many nodes the chain has, also those that are not usable now.
func (r *Requests) Nodes() int { return len(r.pool.nodes) }

// CallContext makes one call, to the first node that answers.
func (r *Requests) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return r.do(ctx, 1, func(ctx context.Context, node *Node) error { return node.CallContext(ctx, result, method, args...) })
}

// BatchCallContext makes several calls together, to the first node that answers them all. It fails if one of them
// fails.
func (r *Requests) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	return r.do(ctx, len(batch), func(ctx context.Context, node *Node) error { return node.BatchCallContext(ctx, batch) })
}

// Each asks all usable nodes in parallel. ask makes up to calls calls to one node, and runs concurrently. all reports
// whether all these nodes answered. err is nil if a node answered, and otherwise the error of the best node. The calls to
// all nodes count against the owner's budget, but not more than a full budget for all questions of a request.
func (r *Requests) Each(ctx context.Context, calls int, ask func(ctx context.Context, node BatchCaller) error) (all bool, err error) {
	owner, err := ownerOf(ctx)
	if err != nil {
		return false, err
	}
	nodes := r.pool.usableForRequests()
	charged := min(calls*max(1, len(nodes)), max(0, r.owners.Limit().Quota-int(owner.asked.Load())))
	end, err := r.admit(ctx, charged)
	if err != nil {
		return false, err
	}
	defer end()
	owner.asked.Add(int64(charged))
	if len(nodes) == 0 {
		return false, fmt.Errorf("%w: %w", limits.ErrBusy, ErrNoNode)
	}
	limit := r.pool.conf.FailoverAfter
	if len(nodes) == 1 {
		limit = 0
	}
	ctx = withClass(ctx, ClassRequest)
	errs := make([]error, len(nodes))
	var asked sync.WaitGroup
	for i, node := range nodes {
		asked.Go(func() {
			errs[i] = node.callWithin(ctx, limit, func(ctx context.Context, node *Node) error { return ask(ctx, node) })
		})
	}
	asked.Wait()
	all = true
	for i, err := range errs {
		if err != nil {
			all = false
			nodes[i].pauseRequests(err)
		}
	}
	if slices.Contains(errs, nil) {
		return all, nil
	}
	return false, errs[0]
}

func (r *Requests) do(ctx context.Context, calls int, call func(context.Context, *Node) error) error {
	end, err := r.admit(ctx, calls)
	if err != nil {
		return err
	}
	defer end()
	ctx = withClass(ctx, ClassRequest)
	nodes := r.pool.usableForRequests()
	if len(nodes) == 0 {
		return fmt.Errorf("%w: %w", limits.ErrBusy, ErrNoNode)
	}
	for i, node := range nodes {
		limit := r.pool.conf.FailoverAfter
		if i == len(nodes)-1 {
			limit = 0
		}
		if err = node.callWithin(ctx, limit, call); err == nil || !shouldFailOver(err) {
			return err
		}
		node.pauseRequests(err)
	}
	return err
}

// admit counts a request's calls against the budgets, and returns the function that ends them.
func (r *Requests) admit(ctx context.Context, calls int) (end func(), err error) {
	owner, err := ownerOf(ctx)
	if err != nil {
		return nil, err
	}
	claim := limits.Claim[string]{Client: owner.name, Weight: 1}
	if err := r.inFlight.Take(1, claim); err != nil {
		return nil, r.refused(err)
	}
	end = func() { r.inFlight.Give(1, claim) }
	if err := take(r.owners, owner.name, calls); err != nil {
		end()
		return nil, r.refused(err)
	}
	if err := take(r.all, struct{}{}, calls); err != nil {
		for range calls {
			r.owners.Return(owner.name)
		}
		end()
		return nil, r.refused(err)
	}
	return end, nil
}

// take takes one token from a bucket for each call. If there are too few tokens, it takes no token.
func take[K comparable](b *limits.Buckets[K], key K, calls int) error {
	for taken := range calls {
		if err := b.Take(key).Err(); err != nil {
			for range taken {
				b.Return(key)
			}
			return err
		}
	}
	return nil
}

// refused reports a refusal, and returns its error for the caller: limits.ErrBusy if the owner's budget is not used up.
func (r *Requests) refused(err error) error {
	limit := limitAllNodeCalls
	if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) {
		limit = exceeded.Limit
	}
	if r.pool.conf.OnRefused != nil {
		r.pool.conf.OnRefused(limit)
	}
	if limit == limitAllNodeCalls {
		return fmt.Errorf("%w: %w", limits.ErrBusy, errAllNodeCalls)
	}
	return err
}

var errAllNodeCalls = errors.New("the calls of nodes that requests may make are used up")

// usableForRequests returns the nodes that a request may call, best first.
func (p *Pool) usableForRequests() []*Node {
	usable := p.Usable()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.conf.Now()
	var nodes []*Node
	for _, node := range usable {
		state, _, _ := node.health.state(now)
		if node.health.configured && rank(state) <= rankLagging && !now.Before(node.requestPause.until) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// requestPause stops requests from calling a node that limits their rate. Other callers ignore it.
type requestPause struct {
	until    time.Time
	failures int // consecutive
}

// pauseRequests stops requests from calling the node if err means that it limits their rate. Other failures have no
// such effect, because a request may cause them.
func (p *Node) pauseRequests(err error) {
	wanted, limited := IsRateLimit(err)
	if !limited {
		return
	}
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	now, pause := p.pool.conf.Now(), &p.requestPause
	if now.Sub(pause.until) >= FailuresResetAfter {
		pause.failures = 0
	}
	if now.Before(pause.until) { // of concurrent failed calls, only one counts
		pause.until = clock.Later(pause.until, now.Add(min(wanted, MaxRetryAfter)))
		return
	}
	pause.failures++
	pause.until = now.Add(max(min(wanted, MaxRetryAfter), p.pool.jitter(failureBackoff.after(pause.failures))))
}
