package chain_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
)

// coded is a node's error answer with a code.
type coded int

func (coded) Error() string    { return "no" }
func (c coded) ErrorCode() int { return int(c) }

// TestFailover has the first of two nodes refuse a call: only what says nothing
// about the call itself takes it to the second.
func TestFailover(t *testing.T) {
	c := chaintest.New(5)
	first, second := c.Serve(t), c.Serve(t)
	f := chain.Failover{endpoint(t, first.URL), endpoint(t, second.URL)}
	calls := map[string]func() error{
		"single": func() error { return f.CallContext(t.Context(), new(hexutil.Uint64), "eth_chainId") },
		"batch": func() error {
			return f.BatchCallContext(t.Context(), []rpc.BatchElem{{Method: "eth_chainId", Result: new(hexutil.Uint64)}})
		},
	}
	for code, passed := range map[int]bool{-32005: true, 429: true, -32000: false, 3: false} {
		first.Intercept(func(context.Context, string) error { return coded(code) })
		for name, call := range calls {
			before := second.Calls("eth_chainId")
			err := call()
			if asked := second.Calls("eth_chainId") > before; asked != passed || (err == nil) != passed {
				t.Errorf("%s call refused with code %d: the second node was asked: %t, error %v; want %t", name, code, asked, err, passed)
			}
		}
	}
}

// TestFailoverByStatus has the first node refuse by HTTP alone.
func TestFailoverByStatus(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(busy.Close)
	var id hexutil.Uint64
	f := chain.Failover{endpoint(t, busy.URL), endpoint(t, chaintest.New(5).Serve(t).URL)}
	if err := f.CallContext(t.Context(), &id, "eth_chainId"); err != nil || id != 5 {
		t.Errorf("chain id %d, %v; want the second node's answer", id, err)
	}
	f = chain.Failover{f[0]}
	if err := f.CallContext(t.Context(), &id, "eth_chainId"); err == nil {
		t.Error("a call that every node refused went well")
	}
}
