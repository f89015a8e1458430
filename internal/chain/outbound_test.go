package chain_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

// client returns a client. Its connections are closed when the test ends.
func client(t *testing.T) *http.Client {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: chain.Transport{Base: base}}
}

// hijacking answers every request and leaves the connection open until the client closes it, which closes gone.
func hijacking(t *testing.T, answer string) (url string, gone <-chan struct{}) {
	t.Helper()
	closed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // it is over in any case
		if _, err := io.WriteString(conn, answer); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, bufio.NewReader(buffered))
		close(closed)
	}))
	t.Cleanup(server.Close)
	return server.URL, closed
}

func post(ctx context.Context, t *testing.T, c *http.Client, url string) (*http.Response, error) {
	t.Helper()
	r := expect.Must(http.NewRequestWithContext(ctx, http.MethodPost, url, nil))
	return c.Do(r)
}

func TestSwitchingProtocolsIsRefused(t *testing.T) {
	url, gone := hijacking(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: whatever\r\n\r\n")
	resp, err := post(t.Context(), t, client(t), url)
	if err == nil {
		_ = resp.Body.Close() // the test fails in any case
	}
	expect.Error(t, chain.ErrSwitched, "got")(err)
	<-gone
}

// stubborn is an answer with a body that ends only when it is closed.
type stubborn struct {
	io.Reader
	io.Closer
}

func (s stubborn) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: s}, nil
}

func TestBodyEndsWithTheContext(t *testing.T) {
	// net/http ends its own bodies; it does not know this one.
	r, w := io.Pipe()
	defer w.Close() //nolint:errcheck // it is over in any case
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, t, &http.Client{Transport: chain.Transport{Base: stubborn{r, r}}}, "http://node.example")
	expect.OK(t, err)
	defer resp.Body.Close() //nolint:errcheck // it is over in any case
	go func() {
		_, _ = io.WriteString(w, "{") // the reader has begun
		cancel()
	}()
	got, err := io.ReadAll(resp.Body)
	if string(got) != "{" || !errors.Is(err, context.Canceled) {
		t.Errorf("read %q and %v, want the beginning and context.Canceled", got, err)
	}
}

func TestTricklingBodyEndsWithTheContext(t *testing.T) {
	url, gone := hijacking(t, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := post(ctx, t, client(t), url)
	expect.OK(t, err)
	defer resp.Body.Close() //nolint:errcheck // it is over in any case
	expect.Success(t)(io.ReadFull(resp.Body, make([]byte, 1)))
	cancel()
	expect.Error(t, context.Canceled, "got")(io.ReadAll(resp.Body))
	<-gone
}

// TestNodeWithBatchLimit sends every kind of batch to nodes that refuse long ones, or all lists, in randomly chosen
// ways.
func TestNodeWithBatchLimit(t *testing.T) {
	c := chaintest.New(5)
	var txs []common.Hash
	var blocks []invoice.Hash
	var numbers []uint64
	for n := range uint64(40) {
		tx := chaintest.NewTx(chaintest.Transfer(token, alice, bob, invoice.NewAmount(n+1)))
		b := c.Mine(tx)
		txs, blocks, numbers = append(txs, tx.Hash), append(blocks, invoice.Hash(b.Hash)), append(numbers, b.Number)
	}
	c.Tag(chain.TagSafe, 30)
	node := c.Serve(t)
	filter := chain.LogFilter{Addresses: []common.Address{common.Address(token)}, Topics: []common.Hash{chain.TransferTopic}}
	for seed := range uint64(30) {
		limited := chaintest.NewLimited(t, node, chaintest.Allowance{Batch: []int{1, 5, 15}[seed%3]}, time.Now, seed)
		e := newClient(t, limited.URL)
		for range 2 {
			if headers, err := e.Headers(t.Context(), numbers); err != nil || len(headers) != len(numbers) {
				t.Fatalf("seed %d: %d headers, %v", seed, len(headers), err)
			}
			if head, tagged, err := e.HeadAndTagged(t.Context(), chain.TagSafe); err != nil || head.Number != 40 || tagged.Number != 30 {
				t.Fatalf("seed %d: head %d, tagged %d, %v", seed, head.Number, tagged.Number, err)
			}
			if logs, err := e.LogsOfBlocks(t.Context(), blocks, filter); err != nil || len(logs) != len(blocks) || len(logs[39]) != 1 {
				t.Fatalf("seed %d: logs of %d blocks, %v", seed, len(logs), err)
			}
			if receipts, inputs, err := e.Evidence(t.Context(), txs); err != nil || len(receipts) != len(txs) || len(inputs) != len(txs) {
				t.Fatalf("seed %d: %d receipts, %v", seed, len(receipts), err)
			}
			calls := make([]rpc.BatchElem, 40)
			ids := make([]hexutil.Uint64, len(calls))
			for i := range calls {
				calls[i] = rpc.BatchElem{Method: "eth_chainId", Result: &ids[i]}
			}
			if err := e.BatchCallContext(t.Context(), calls); err != nil || ids[0] != 5 || ids[39] != 5 {
				t.Fatalf("seed %d: calls of the writer, %v, %v", seed, ids, err)
			}
		}
		if most := uint64([]int{1, 5, 15}[seed%3]); e.Limit(chain.KindHeaders).Next() > most+most/4+1 {
			t.Errorf("seed %d: %d headers are requested next, where %d are allowed", seed, e.Limit(chain.KindHeaders).Next(), most)
		}
	}
}

// TestHeadersOfNodes sends a node's headers and never shows their values, even if the node
// repeats them.
func TestHeadersOfNodes(t *testing.T) {
	const secret = "Bearer hunter2hunter2"
	seen := make(chan string, 1)
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		http.Error(w, "no access with "+r.Header.Get("Authorization")+" or "+strings.TrimPrefix(secret, "Bearer "), http.StatusForbidden)
	}))
	t.Cleanup(node.Close)
	settings := chain.NodeSettings{Headers: http.Header{"Authorization": {secret}}}
	_, err := newClientOf(t, chain.ClientConfig{URL: node.URL, NodeSettings: settings}).Head(t.Context())
	expect.Equal(t, <-seen, secret, "the node got")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

// TestNullsInBatches has a node lack some items of a batch, which is not a limit.
func TestNullsInBatches(t *testing.T) {
	c := chaintest.New(5)
	c.MineEmpty(9)
	e := newClient(t, c.Serve(t).URL)
	numbers := []uint64{1, 2, 3, 4, 10}
	if _, err := e.Headers(t.Context(), numbers); !errors.Is(err, chain.ErrNotFound) || !strings.Contains(err.Error(), fmt.Sprint(hexutil.Uint64(10))) {
		t.Errorf("headers up to one that is not there: %v", err)
	}
	expect.Error(t, chain.ErrNotFound, "evidence of an unknown transaction")(e.Evidence(t.Context(), []common.Hash{{1}}))
	for _, kind := range []chain.Kind{chain.KindHeaders, chain.KindReceipts} {
		expect.Equal(t, e.Limit(kind).Next(), chain.MaxBatch, "%s: … are requested next:", kind)
	}
}

// TestRefusedTogether has a node refuse a batch of a range's logs and its ends. If the node refused the range, the next
// range is smaller; if it refused the batch, the next batch is.
func TestRefusedTogether(t *testing.T) {
	c := chaintest.New(5)
	c.MineEmpty(40)
	node := c.Serve(t)
	for seed := range uint64(20) {
		for allows, want := range map[chaintest.Allowance]struct{ heads, blocks uint64 }{
			{Range: 10}: {chain.MaxBatch, 20}, {Batch: 2}: {1, chain.FirstRange},
		} {
			e := newClient(t, chaintest.NewLimited(t, node, allows, time.Now, seed).URL)
			_, _, err := e.LogsAndEnds(t.Context(), 1, 40, chain.LogFilter{})
			if heads, blocks := e.Limit(chain.KindHeads).Size(), e.Limit(chain.KindRange).Size(); err == nil || heads != want.heads || blocks != want.blocks {
				t.Errorf("seed %d, %+v: %v; a batch of %d and a range of %d are next", seed, allows, err, heads, blocks)
			}
		}
	}
}

// hijacked answers every request, and then leaves the connection open until the client closes it.
func hijacked(t *testing.T, answer string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close() //nolint:errcheck // the test is over in any case
		if _, err := io.WriteString(conn, answer); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, bufio.NewReader(buffered))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// mute returns the address of a listener that accepts connections and never sends a byte.
func mute(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, listener.Close()) })
	return listener.Addr().String() // the backlog accepts
}

// TestHostileNodes has nodes answer in ways that would make net/http or go-ethereum's client wait without a limit, or
// longer than the client's timeout.
func TestHostileNodes(t *testing.T) {
	const whole = `{"jsonrpc":"2.0","id":1,"result":"0x5"}`
	for name, test := range map[string]struct {
		url  string
		want error
	}{
		"switches protocols": {hijacked(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"), chain.ErrSwitched},
		"no header":          {"http://" + mute(t), chain.ErrTimeout},
		"header in parts":    {hijacked(t, "HTTP/1.1 200 OK\r\nContent-"), chain.ErrTimeout},
		"endless body":       {hijacked(t, "HTTP/1.1 200 OK\r\n\r\n{"), chain.ErrTimeout},
		"endless error page": {hijacked(t, "HTTP/1.1 500 Oh\r\n\r\n{"), chain.ErrTimeout},
		"more than an answer": {hijacked(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"+
			"27\r\n"+whole+"\r\n"), chain.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			e := newClientOf(t, chain.ClientConfig{URL: test.url, Timeout: 100 * time.Millisecond})
			var result string
			err := e.CallContext(t.Context(), &result, "eth_chainId")
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if _, err := e.LogsInRange(t.Context(), 1, 2, chain.LogFilter{}); err == nil {
				t.Error("logs were answered")
			}
		})
	}
}

// TestRedirectIsNotFollowed has a node redirect, with the access key in the URL, to a server that must not receive it.
func TestRedirectIsNotFollowed(t *testing.T) {
	var heard atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		heard.Add(1)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x5"}`)
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		node := httptest.NewServer(http.RedirectHandler(other.URL+"/v3/secretkey", status))
		t.Cleanup(node.Close)
		p := pool(t, start(), node.URL+"/v3/secretkey")
		var result string
		err := p.Writer().CallContext(t.Context(), &result, "eth_chainId")
		if !errors.Is(err, chain.ErrRedirected) || !strings.Contains(err.Error(), other.URL) || strings.Contains(err.Error(), "secretkey") {
			t.Errorf("%d: got %v, want an ErrRedirected that names %s and no key", status, err, other.URL)
		}
		if h := p.Health()[0]; h.State != chain.StateBackoff {
			t.Errorf("%d: the node is %s, want it in backoff", status, h.State)
		}
	}
	expect.Equal(t, heard.Load(), 0, "redirects were followed:")
}
