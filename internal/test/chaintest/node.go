package chaintest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"
)

// Node serves a chain over JSON-RPC.
type Node struct {
	URL string

	chain   *Chain
	handler http.Handler

	mu        sync.Mutex
	lag       uint64
	intercept func(ctx context.Context, method string) error
	calls     map[string]int
}

// Serve starts a node of the chain that runs until the test ends.
func (c *Chain) Serve(t testing.TB) *Node {
	t.Helper()
	n := &Node{chain: c, calls: map[string]int{}}
	server := rpc.NewServer()
	if err := server.RegisterName("eth", &api{n}); err != nil {
		t.Fatal(err)
	}
	n.handler = server
	listener := httptest.NewServer(n)
	t.Cleanup(func() {
		server.Stop()
		listener.CloseClientConnections()
		listener.Close()
	})
	n.URL = listener.URL
	return n
}

// ServeHTTP answers like the node at its URL, for a Proxy in front of it.
func (n *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) { n.handler.ServeHTTP(w, r) }

// Lag hides the chain's newest blocks from the node.
func (n *Node) Lag(blocks uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lag = blocks
}

// Intercept makes the node call f before each answer. An error that f returns is the answer, and the node does not
// answer while f waits. nil removes f.
func (n *Node) Intercept(f func(ctx context.Context, method string) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.intercept = f
}

// Calls returns how often a method was called.
func (n *Node) Calls(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.calls[method]
}

// enter counts a call and runs the test's intercept function.
func (n *Node) enter(ctx context.Context, method string) error {
	n.mu.Lock()
	n.calls[method]++
	f := n.intercept
	n.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(ctx, method)
}

// view returns the canonical blocks that the node knows.
func (n *Node) view() []*Block {
	blocks := n.chain.Blocks()
	n.mu.Lock()
	defer n.mu.Unlock()
	return blocks[:len(blocks)-int(min(n.lag, uint64(len(blocks)-1)))]
}

// block returns the block with a hash, canonical or not, or nil.
func (n *Node) block(hash common.Hash) *Block {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	return n.chain.byHash[hash]
}

// find returns the position of a transaction on the canonical chain.
func (n *Node) find(tx common.Hash) (place, bool) {
	n.chain.mu.Lock()
	defer n.chain.mu.Unlock()
	at, ok := n.chain.txs[tx]
	return at, ok
}
