package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// coded is a node's error answer with a code.
type coded int

func (coded) Error() string    { return "no" }
func (c coded) ErrorCode() int { return int(c) }

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func (c *clock) sleep(context.Context, time.Duration) error { return nil }

func pool(t *testing.T, c *clock, urls ...string) *chain.Pool {
	t.Helper()
	return poolOf(t, c, chain.Chain{Key: "test", ID: 5}, urls...)
}

func poolOf(t *testing.T, c *clock, of chain.Chain, urls ...string) *chain.Pool {
	t.Helper()
	conf := chain.PoolConfig{Chain: of, Now: c.now, Sleep: c.sleep, Logger: slog.New(slog.DiscardHandler)}
	for _, url := range urls {
		conf.Clients = append(conf.Clients, newClient(t, url))
	}
	return chain.NewPool(conf)
}

func start() *clock { return &clock{time.Unix(1_790_000_000, 0)} }

// answering returns the URL of a node of chain 5 that gives the same answer to all other requests, after wait.
func answering(t *testing.T, answer string, wait func(*http.Request)) string {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct {
			ID     int
			Method string
		}
		expect.NoError(t, json.NewDecoder(r.Body).Decode(&request))
		result := `"result":"0x5"`
		if request.Method != "eth_chainId" {
			if result = answer; wait != nil {
				wait(r)
			}
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,%s}`, request.ID, result)
	}))
	t.Cleanup(node.Close)
	return node.URL
}

// TestPoolPassesOn has the first of two nodes refuse a call in any way, although the call's parameters cannot be wrong.
func TestPoolPassesOn(t *testing.T) {
	c := chaintest.New(5)
	first, second := c.Serve(t), c.Serve(t)
	for code, passed := range map[int]bool{-32005: true, 429: true, -32603: true, -32601: true, -32000: true, 3: true} {
		for name, call := range map[string]func(*chain.Pool) error{
			"single": func(p *chain.Pool) error {
				return p.Writer().CallContext(t.Context(), new(hexutil.Uint64), "eth_chainId")
			},
			"batch": func(p *chain.Pool) error {
				return p.Writer().BatchCallContext(t.Context(), []rpc.BatchElem{{Method: "eth_chainId", Result: new(hexutil.Uint64)}})
			},
		} {
			p := pool(t, start(), first.URL, second.URL)
			expect.OK(t, p.Nodes()[0].Ready(t.Context()))
			first.Intercept(func(context.Context, string) error { return coded(code) })
			before := second.Calls("eth_chainId")
			err := call(p)
			first.Intercept(nil)
			if asked := second.Calls("eth_chainId") > before; asked != passed {
				t.Errorf("%s call refused with code %d: the second node was asked: %t, error %v; want %t", name, code, asked, err, passed)
			}
		}
	}
}

// TestPoolFailsOver kills the first of two nodes, which is not called until its pause is over.
func TestPoolFailsOver(t *testing.T) {
	c := chaintest.New(5)
	first, second := c.Serve(t), c.Serve(t)
	at := start()
	p := pool(t, at, first.URL, second.URL)
	ask := func(from *chaintest.Node, broken error) {
		t.Helper()
		first.Intercept(func(context.Context, string) error { return broken })
		before := from.Calls("eth_chainId")
		var id hexutil.Uint64
		if err := p.Writer().CallContext(t.Context(), &id, "eth_chainId"); err != nil || id != 5 {
			t.Errorf("chain id %d, %v", id, err)
		}
		if from.Calls("eth_chainId") == before {
			t.Errorf("another node answered")
		}
	}
	ask(first, nil)
	ask(second, coded(-32603))
	if h := p.Health()[0]; h.State != chain.StateBackoff || !strings.Contains(h.Reason, "no") {
		t.Errorf("the broken node is %+v", h)
	}
	ask(second, nil)
	at.at = at.at.Add(chain.MinBackoff)
	ask(first, nil)
	if h := p.Health()[0]; h.State != chain.StateOK || h.Calls.Total() == 0 || h.Errors == 0 || h.Latency <= 0 {
		t.Errorf("the node that came back is %+v", h)
	}
}

// TestSimulationsLeaveHealth has a node fail while it simulates code of a payer.
func TestSimulationsLeaveHealth(t *testing.T) {
	c := chaintest.New(5)
	node := c.Serve(t)
	for code, want := range map[int]chain.State{-32603: chain.StateOK, -32005: chain.StateBackoff} {
		p := pool(t, start(), node.URL)
		expect.OK(t, p.Nodes()[0].Ready(t.Context()))
		node.Intercept(func(context.Context, string) error { return coded(code) })
		err := p.Writer().CallContext(chain.Simulating(t.Context()), new(hexutil.Uint64), "eth_chainId")
		node.Intercept(nil)
		if h := p.Health()[0]; err == nil || h.State != want {
			t.Errorf("after code %d (%v) the node is %s, want %s", code, err, h.State, want)
		}
	}
}

// TestPoolByStatus has nodes refuse only with an HTTP status.
func TestPoolByStatus(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "100")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	at := start()
	p := pool(t, at, busy.URL, chaintest.New(5).Serve(t).URL)
	var id hexutil.Uint64
	if err := p.Writer().CallContext(t.Context(), &id, "eth_chainId"); err != nil || id != 5 {
		t.Errorf("chain id %d, %v; want the second node's answer", id, err)
	}
	if h := p.Health()[0]; h.State != chain.StateBackoff || h.Until.Sub(at.at) != 100*time.Second {
		t.Errorf("the busy node is %+v, want it left alone for 100s", h)
	}
	if err := pool(t, at, busy.URL).Writer().CallContext(t.Context(), &id, "eth_chainId"); err == nil {
		t.Error("a call that every node refused went well")
	}
}

// TestPoolCallersEnd gives up a call: that does not count as a failure of the node.
func TestPoolCallersEnd(t *testing.T) {
	node := chaintest.New(5).Serve(t)
	p := pool(t, start(), node.URL)
	expect.OK(t, p.Nodes()[0].Ready(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	node.Intercept(func(ctx context.Context, _ string) error {
		cancel()
		<-ctx.Done()
		return nil
	})
	expect.Error(t, context.Canceled, "CallContext")(p.Writer().CallContext(ctx, new(any), "eth_chainId"))
	if h := p.Health()[0]; h.State != chain.StateOK || h.Errors != 0 {
		t.Errorf("the node is %+v", h)
	}
}

// TestPoolMisconfigured has a node of another chain among the nodes: it is never called, and checked again after a
// while.
func TestPoolMisconfigured(t *testing.T) {
	wrong, right := chaintest.New(6).Serve(t), chaintest.New(5).Serve(t)
	at := start()
	p := pool(t, at, wrong.URL, right.URL)
	for range 3 {
		var id hexutil.Uint64
		if err := p.Writer().CallContext(t.Context(), &id, "eth_chainId"); err != nil || id != 5 {
			t.Errorf("chain id %d, %v", id, err)
		}
	}
	first := p.Nodes()[0]
	expect.Error(t, chain.ErrMismatch, "Ready")(first.Ready(t.Context()))
	expect.Equal(t, wrong.Calls("eth_chainId"), 1, "the misconfigured node was asked … times:")
	if h := p.Health()[0]; h.State != chain.StateMisconfigured || !strings.Contains(h.Reason, "chain id 6") {
		t.Errorf("the misconfigured node is %+v", h)
	}
	at.at = at.at.Add(chain.RecheckAfter)
	if err := first.Ready(t.Context()); !errors.Is(err, chain.ErrMismatch) || wrong.Calls("eth_chainId") != 2 {
		t.Errorf("Ready after a while: %v, with %d calls", err, wrong.Calls("eth_chainId"))
	}
}

// TestPoolVerified uses a pool with only a node of another chain, and one that also has a correct node.
func TestPoolVerified(t *testing.T) {
	wrong, right := chaintest.New(6).Serve(t), chaintest.New(5).Serve(t)
	p := pool(t, start(), wrong.URL)
	if err := p.Nodes()[0].Ready(t.Context()); !errors.Is(err, chain.ErrMismatch) {
		t.Fatal(err)
	}
	expect.Error(t, chain.ErrMismatch, "with a wrong node alone")(p.Verified(t.Context()))
	p = pool(t, start(), wrong.URL, right.URL)
	waiting, stop := context.WithCancel(t.Context())
	stop()
	expect.Error(t, context.Canceled, "before a node was checked")(p.Verified(waiting))
	verified := make(chan error)
	go func() { verified <- p.Verified(t.Context()) }()
	expect.Equal(t, right.Calls("eth_chainId"), 0, "the right node was asked … times:")
	for _, node := range p.Nodes() {
		_ = node.Ready(t.Context()) // one does not match
	}
	if err := <-verified; err != nil {
		t.Errorf("with a right node: %v", err)
	}
}

// TestPoolSends sends a transaction to three nodes: one refuses it, one hangs and one accepts it.
func TestPoolSends(t *testing.T) {
	const (
		low   = `"error":{"code":-32000,"message":"nonce too low"}`
		busy  = `"error":{"code":-32005,"message":"rate limit exceeded"}`
		taken = `"result":"0xabcd"`
	)
	for _, c := range []struct {
		answers []string
		err     string
	}{
		{[]string{taken}, ""},
		{[]string{low, taken}, ""},
		{[]string{busy, low, taken}, ""},
		{[]string{busy, low}, "nonce too low"},
		{[]string{busy, busy}, "rate limit"},
	} {
		var urls []string
		for _, a := range c.answers {
			urls = append(urls, answering(t, a, nil))
		}
		p := pool(t, start(), urls...)
		var got string
		err := p.Writer().CallContext(t.Context(), &got, "eth_sendRawTransaction", "0x01")
		if c.err == "" && (err != nil || got != "0xabcd") || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %q, %v; want the error %q", c.answers, got, err, c.err)
		}
		for i, h := range p.Health() {
			if h.Calls.Total() != 2 {
				t.Errorf("%q: node %d had %d calls, want 2", c.answers, i, h.Calls)
			}
		}
	}
}

// TestPoolSendDoesNotWait has one node accept a transaction while another hangs.
func TestPoolSendDoesNotWait(t *testing.T) {
	hanging := answering(t, "", func(r *http.Request) { <-r.Context().Done() })
	p := pool(t, start(), hanging, answering(t, `"result":"0xabcd"`, nil))
	began := time.Now()
	var got string
	err := p.Writer().CallContext(t.Context(), &got, "eth_sendRawTransaction", "0x01")
	if took := time.Since(began); err != nil || got != "0xabcd" || took > chain.CallTimeout/2 {
		t.Errorf("after %s: %q, %v", took, got, err)
	}
	if h := p.Health()[0]; h.State != chain.StateOK {
		t.Errorf("the node that was not waited for is %+v", h)
	}
}

// TestRefreshHeads reads the heads of nodes that are not called, and finds one that lags and one that went backwards.
func TestRefreshHeads(t *testing.T) {
	c := chaintest.New(5)
	c.MineEmpty(200)
	first, second, third := c.Serve(t), c.Serve(t), c.Serve(t)
	third.Intercept(func(context.Context, string) error { return coded(-32603) })
	at := start()
	p := pool(t, at, first.URL, second.URL, third.URL)
	nodes := p.Nodes()
	p.RefreshHeads(t.Context())
	if h := p.Health(); h[0].Head != 200 || h[1].Head != 200 || h[2].State != chain.StateBackoff || !h[0].HeadAt.Equal(at.at) {
		t.Errorf("after the first refresh: %+v", h)
	}
	calls := first.Calls("eth_getBlockByNumber")
	p.RefreshHeads(t.Context())
	if n := first.Calls("eth_getBlockByNumber"); n != calls {
		t.Errorf("a refresh called a node with a recent head")
	}

	c.MineEmpty(20)
	first.Lag(20)
	third.Intercept(nil)
	for range 2 { // the second time the lag is known, in whichever order they answered
		at.at = at.at.Add(chain.HeadMaxAge)
		p.RefreshHeads(t.Context())
	}
	if h := p.Health(); h[0].State != chain.StateLagging || h[1].State != chain.StateOK || h[2].State != chain.StateOK {
		t.Errorf("with a node that lags: %+v", h)
	}
	if u := p.Usable(); len(u) != 3 || u[2] != nodes[0] {
		t.Errorf("usable are %v", u)
	}

	first.Lag(100)
	at.at = at.at.Add(chain.HeadMaxAge)
	p.RefreshHeads(t.Context())
	if h := p.Health(); h[0].State != chain.StateQuarantined || !strings.Contains(h[0].Reason, "went backwards") {
		t.Errorf("with a node that went backwards: %+v", h)
	}
	if u := p.Usable(); len(u) != 2 || u[0] != nodes[1] {
		t.Errorf("usable are %v", u)
	}
}
