package chain_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// of returns the context of a merchant's request.
func of(t *testing.T, owner string) context.Context {
	t.Helper()
	return chain.OnBehalfOf(chain.ForRoute(t.Context(), "POST /x402/verify"), owner)
}

// askFor makes one call for a request.
func askFor(ctx context.Context, p *chain.Pool) error {
	return p.Requests().CallContext(ctx, new(hexutil.Uint64), "eth_chainId")
}

// checked returns a pool of nodes that the indexer has checked.
func checked(t *testing.T, c *clock, urls ...string) *chain.Pool {
	t.Helper()
	return check(t, pool(t, c, urls...))
}

// check checks the nodes of a pool, as the indexer does.
func check(t *testing.T, p *chain.Pool) *chain.Pool {
	t.Helper()
	for _, node := range p.Nodes() {
		expect.OK(t, node.Ready(t.Context()))
		node.ReportSuccess()
	}
	return p
}

// TestRequestFailuresLeaveHealth has nodes fail for requests in each way, and expects that the indexer sees the same
// health as before.
func TestRequestFailuresLeaveHealth(t *testing.T) {
	for name, failure := range map[string]error{
		"rate limited": coded(429), "its fault": coded(-32603), "not offered": coded(-32601), "refused": coded(-32000),
	} {
		first, second := chaintest.New(5).Serve(t), chaintest.New(5).Serve(t)
		at := start()
		p := checked(t, at, first.URL, second.URL)
		before := p.Health()
		for _, n := range []*chaintest.Node{first, second} {
			n.Intercept(func(context.Context, string) error { return failure })
		}
		for range 3 {
			if err := askFor(of(t, "acme"), p); err == nil {
				t.Errorf("%s: the call succeeded", name)
			}
		}
		after := p.Health()
		made := after[0].Calls[chain.ClassRequest] + after[1].Calls[chain.ClassRequest]
		for i := range after {
			after[i].Calls[chain.ClassRequest] = 0
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: the health changed (-before +after):\n%s", name, diff)
		}
		expect.Len(t, p.Usable(), 2, "%s: … nodes are usable for the indexer:", name)
		// Requests do not call a node that limits the rate.
		if limited := name == "rate limited"; (made == 2) != limited {
			t.Errorf("%s: %d calls were made", name, made)
		}
		for _, n := range []*chaintest.Node{first, second} {
			n.Intercept(nil)
		}
		at.at = at.at.Add(chain.MinBackoff)
		if err := askFor(of(t, "acme"), p); err != nil {
			t.Errorf("%s: after a pause: %v", name, err)
		}
	}
}

// TestRequestsLeaveLimits has a node refuse lists to requests: batches of the indexer and of the transaction manager
// stay as long as they were.
func TestRequestsLeaveLimits(t *testing.T) {
	limited := chaintest.NewLimited(t, chaintest.New(5).Serve(t), chaintest.Allowance{Batch: 1}, time.Now, 1)
	p := checked(t, start(), limited.URL)
	batch := make([]rpc.BatchElem, 8)
	for i := range batch {
		batch[i] = rpc.BatchElem{Method: "eth_chainId", Result: new(hexutil.Uint64)}
	}
	expect.OK(t, p.Requests().BatchCallContext(of(t, "acme"), batch))
	node := p.Nodes()[0]
	expect.Equal(t, node.Limit(chain.KindRequestCalls).Next(), 1, "a batch of requests has … calls next:")
	for _, kind := range []chain.Kind{chain.KindCalls, chain.KindHeaders, chain.KindHeads, chain.KindLogs, chain.KindReceipts} {
		expect.Equal(t, node.Limit(kind).Next(), chain.MaxBatch, "%s: … are requested next:", kind)
	}
	if health := p.Health()[0]; health.State != chain.StateOK || health.Errors > 0 || health.Pace > 0 {
		t.Errorf("the health is %+v", health)
	}
}

// TestRequestsSpareNodes has nodes that requests may not call: one was not checked, and one failed for the indexer.
func TestRequestsSpareNodes(t *testing.T) {
	node := chaintest.New(5).Serve(t)
	at := start()
	p := pool(t, at, node.URL)
	refused := func(when string) {
		t.Helper()
		before := node.Calls("eth_chainId")
		err := askFor(of(t, "acme"), p)
		if !errors.Is(err, chain.ErrNoNode) || !errors.Is(err, limits.ErrBusy) || node.Calls("eth_chainId") != before {
			t.Errorf("%s: %v, and %d calls", when, err, node.Calls("eth_chainId")-before)
		}
	}
	refused("before the check")
	p = checked(t, at, node.URL)
	p.Nodes()[0].ReportFailure(chain.ErrTimeout)
	refused("in backoff")
	at.at = at.at.Add(chain.MinBackoff)
	expect.NoError(t, askFor(of(t, "acme"), p))
	p.Nodes()[0].Quarantine("test")
	refused("in quarantine")
}

// TestRequestsNeedARoute makes calls for requests without a route, and without an owner.
func TestRequestsNeedARoute(t *testing.T) {
	node := chaintest.New(5).Serve(t)
	p := checked(t, start(), node.URL)
	for name, ctx := range map[string]context.Context{
		"neither": t.Context(), "no owner": chain.ForRoute(t.Context(), "GET /"), "no route": chain.OnBehalfOf(t.Context(), "acme"),
	} {
		before := node.Calls("eth_chainId")
		if err := askFor(ctx, p); !errors.Is(err, chain.ErrNoRoute) || node.Calls("eth_chainId") != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := askFor(of(t, ""), p); err != nil {
		t.Errorf("of the only merchant of an installation: %v", err)
	}
}

// TestRequestBudgets uses up the budget of an owner, and then the budget of all owners.
func TestRequestBudgets(t *testing.T) {
	node := chaintest.New(5).Serve(t)
	at := start()
	p := checked(t, at, node.URL)
	const own, all = 2 * chain.DefaultRequestCalls / 4, 2 * chain.DefaultRequestCalls
	batch := func(owner string) error {
		return p.Requests().BatchCallContext(of(t, owner), []rpc.BatchElem{
			{Method: "eth_chainId", Result: new(hexutil.Uint64)}, {Method: "eth_chainId", Result: new(hexutil.Uint64)},
		})
	}
	use := func(owner string) {
		t.Helper()
		for range own / 2 {
			if err := batch(owner); err != nil {
				t.Fatalf("%s within the budget: %v", owner, err)
			}
		}
	}
	use("acme")
	var exceeded *limits.ExceededError
	if err := batch("acme"); !errors.As(err, &exceeded) || exceeded.Limit != "node_calls" || exceeded.RetryAfter != "1" {
		t.Errorf("beyond the budget of the owner: %v", err)
	}
	for _, owner := range []string{"b", "c", "d"} {
		use(owner)
	}
	if err := askFor(of(t, "e"), p); !errors.Is(err, limits.ErrBusy) || errors.As(err, &exceeded) && exceeded.Limit != "node_calls" {
		t.Errorf("beyond the budget of all: %v", err)
	}
	expect.Equal(t, p.Health()[0].Calls[chain.ClassRequest], all, "calls were made:")
	at.at = at.at.Add(chain.RequestWindow)
	for range own { // the refusals did not use any of them
		if err := askFor(of(t, "e"), p); err != nil {
			t.Fatalf("after a while: %v", err)
		}
	}
}

// TestRequestsInFlight has a node that does not answer.
func TestRequestsInFlight(t *testing.T) {
	node := chaintest.New(5).Serve(t)
	p := check(t, poolOf(t, start(), chain.Chain{Key: "test", ID: 5, RequestCalls: 1000}, node.URL))
	asked, answer := make(chan struct{}), make(chan struct{})
	node.Intercept(func(context.Context, string) error { asked <- struct{}{}; <-answer; return nil })
	done := make(chan error)
	begin := func(owner string, n int) {
		for range n {
			go func() { done <- askFor(of(t, owner), p) }()
			<-asked
		}
	}
	begin("acme", chain.MaxRequestCalls/2)
	var exceeded *limits.ExceededError
	if err := askFor(of(t, "acme"), p); !errors.As(err, &exceeded) {
		t.Errorf("beyond those of the owner: %v", err)
	}
	begin("globex", chain.MaxRequestCalls/4)
	if err := askFor(of(t, "globex"), p); !errors.As(err, &exceeded) {
		t.Errorf("beyond those of the next owner: %v", err)
	}
	for i := range chain.MaxRequestCalls / 4 { // owners without calls get one
		begin(fmt.Sprint("merchant", i), 1)
	}
	expect.Error(t, limits.ErrBusy, "beyond those of all")(askFor(of(t, "initech"), p))
	close(answer)
	for range chain.MaxRequestCalls {
		expect.NoError(t, <-done)
	}
	node.Intercept(nil)
	if err := askFor(of(t, "acme"), p); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestRequestsOfEachNode asks all nodes. One that fails does not matter while another answers, and the calls
// of all count against the budget.
func TestRequestsOfEachNode(t *testing.T) {
	at := start()
	first, second := chaintest.New(5).Serve(t), chaintest.New(5).Serve(t)
	p := checked(t, at, first.URL, second.URL)
	var answered atomic.Int64
	ask := func(owner string) (all bool, err error) {
		answered.Store(0)
		return p.Requests().Each(of(t, owner), 2, func(ctx context.Context, node chain.BatchCaller) error {
			err := node.BatchCallContext(ctx, []rpc.BatchElem{
				{Method: "eth_chainId", Result: new(hexutil.Uint64)}, {Method: "eth_chainId", Result: new(hexutil.Uint64)},
			})
			if err == nil {
				answered.Add(1)
			}
			return err
		})
	}
	const own = 2 * chain.DefaultRequestCalls / 4
	for range own / 4 {
		if all, err := ask("acme"); err != nil || !all || answered.Load() != 2 {
			t.Fatalf("of 2 nodes, %d answered: %t, %v", answered.Load(), all, err)
		}
	}
	var exceeded *limits.ExceededError
	if _, err := ask("acme"); !errors.As(err, &exceeded) || answered.Load() != 0 {
		t.Errorf("beyond the budget of the owner, %d answered: %v", answered.Load(), err)
	}
	first.Intercept(func(context.Context, string) error { return coded(429) })
	if all, err := ask("b"); err != nil || all || answered.Load() != 1 {
		t.Errorf("one node fails, and %d answered: %t, %v", answered.Load(), all, err)
	}
	second.Intercept(func(context.Context, string) error { return coded(-32603) })
	if _, err := ask("c"); err == nil {
		t.Error("the only node that is left fails, and there is no error")
	}
	p.Nodes()[0].Quarantine("test")
	p.Nodes()[1].Quarantine("test")
	expect.Error(t, chain.ErrNoNode, "without a node")(ask("d"))
}

// TestRequestsOfEachNodeBelowTheirBudget has a budget that is below the calls of all nodes together.
func TestRequestsOfEachNodeBelowTheirBudget(t *testing.T) {
	var urls []string
	for range 3 {
		urls = append(urls, chaintest.New(5).Serve(t).URL)
	}
	p := check(t, poolOf(t, start(), chain.Chain{Key: "test", ID: 5, RequestCalls: 1}, urls...))
	var asked atomic.Int64
	all, err := p.Requests().Each(of(t, "acme"), 2, func(context.Context, chain.BatchCaller) error { asked.Add(1); return nil })
	if err != nil || !all || asked.Load() != 3 {
		t.Errorf("of 3 nodes, %d were asked: %v", asked.Load(), err)
	}
}
