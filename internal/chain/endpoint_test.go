package chain_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/invoice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	token    = invoice.Address{0x70}
	registry = invoice.Address{0x4e}
	alice    = invoice.Address{0xa1}
	bob      = invoice.Address{0xb0}
)

func endpoint(t *testing.T, url string) *chain.Endpoint {
	t.Helper()
	e, err := chain.NewEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestNewEndpointRefuses(t *testing.T) {
	for _, url := range []string{"", "localhost:8545", "/path", "ipc:///geth.ipc", "http://", "ftp://host", "http://bad host/"} {
		if _, err := chain.NewEndpoint(url); err == nil {
			t.Errorf("NewEndpoint(%q) did not fail", url)
		}
	}
}

// TestEndpoint asks a node by both transports for everything.
func TestEndpoint(t *testing.T) {
	c := chaintest.New(5)
	tx := chaintest.NewTx(
		chaintest.Transfer(token, alice, bob, invoice.NewAmount(7)),
		chaintest.Transfer(registry, alice, bob, invoice.NewAmount(8)),
	).WithInput([]byte{1, 2, 3})
	b := c.Mine(tx)
	c.MineEmpty(2)
	c.Tag("safe", 1)
	node := c.Serve(t)
	filter := chain.LogFilter{
		Addresses: []common.Address{common.Address(token)},
		Topics:    []common.Hash{common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")},
	}
	for _, url := range []string{node.URL, node.WSURL} {
		e := endpoint(t, url)
		ctx := t.Context()
		if h, err := e.Head(ctx); err != nil || h.Number != 3 || h.Hash != invoice.Hash(c.Head().Hash) {
			t.Errorf("%s: Head = %+v, %v", e, h, err)
		}
		h, err := e.Tagged(ctx, chain.TagSafe)
		want := chain.Header{Number: 1, Hash: invoice.Hash(b.Hash), Parent: invoice.Hash(b.Parent), Time: b.Time, Bloom: h.Bloom}
		if err != nil || h != want {
			t.Errorf("%s: Tagged = %+v, %v; want %+v", e, h, err, want)
		}
		if !filter.Mentioned(h.Bloom) {
			t.Errorf("%s: the bloom filter of block 1 does not mention its log", e)
		}
		if _, err := e.Tagged(ctx, chain.TagFinalized); !errors.Is(err, chain.ErrNotFound) {
			t.Errorf("%s: Tagged(finalized): %v, want ErrNotFound", e, err)
		}
		headers, err := e.Headers(ctx, []uint64{2, 0, 1})
		if err != nil || len(headers) != 3 || headers[0].Number != 2 || headers[1].Number != 0 || headers[2] != want {
			t.Errorf("%s: Headers = %+v, %v", e, headers, err)
		}
		if filter.Mentioned(headers[0].Bloom) {
			t.Errorf("%s: the bloom filter of an empty block mentions a log", e)
		}
		if _, err := e.Headers(ctx, []uint64{1, 4}); !errors.Is(err, chain.ErrNotFound) {
			t.Errorf("%s: Headers past the head: %v, want ErrNotFound", e, err)
		}
		byHash, err := e.LogsOfBlocks(ctx, []invoice.Hash{h.Hash, h.Parent}, filter)
		if err != nil || len(byHash) != 2 || len(byHash[0]) != 1 || len(byHash[1]) != 0 {
			t.Errorf("%s: LogsOfBlocks = %+v, %v", e, byHash, err)
		}
		ranged, err := e.LogsInRange(ctx, 0, 3, filter)
		if err != nil || len(ranged) != 1 || ranged[0].TxHash != tx.Hash || ranged[0].Address != common.Address(token) {
			t.Errorf("%s: LogsInRange = %+v, %v", e, ranged, err)
		}
		receipts, err := e.Receipts(ctx, []common.Hash{tx.Hash})
		if err != nil || len(receipts) != 1 || !receipts[0].Succeeded() || len(receipts[0].Logs) != 2 || receipts[0].BlockHash != b.Hash {
			t.Errorf("%s: Receipts = %+v, %v", e, receipts, err)
		}
		if _, err := e.Receipts(ctx, []common.Hash{tx.Hash, {1}}); !errors.Is(err, chain.ErrNotFound) {
			t.Errorf("%s: Receipts of an unknown transaction: %v, want ErrNotFound", e, err)
		}
		inputs, err := e.Inputs(ctx, []common.Hash{tx.Hash})
		if err != nil || len(inputs) != 1 || string(inputs[0]) != "\x01\x02\x03" {
			t.Errorf("%s: Inputs = %v, %v", e, inputs, err)
		}
	}
}

// TestEndpointBatches asks for more than one batch holds.
func TestEndpointBatches(t *testing.T) {
	c := chaintest.New(5)
	c.MineEmpty(2 * chain.MaxBatch)
	e := endpoint(t, c.Serve(t).URL)
	calls := map[string]int{}
	e.Observe = func(method string, took time.Duration, err error) {
		if err != nil || took < 0 {
			t.Errorf("%s took %s: %v", method, took, err)
		}
		calls[method]++
	}
	numbers := make([]uint64, 2*chain.MaxBatch+1)
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	headers, err := e.Headers(t.Context(), numbers)
	if err != nil || len(headers) != len(numbers) {
		t.Fatalf("Headers: %d of %d, %v", len(headers), len(numbers), err)
	}
	if n := calls["eth_getBlockByNumber"]; n != len(numbers) {
		t.Errorf("%d calls were observed, want %d", n, len(numbers))
	}
	if headers, err := e.Headers(t.Context(), nil); err != nil || len(headers) != 0 {
		t.Errorf("Headers of nothing = %v, %v", headers, err)
	}
}

func TestCheck(t *testing.T) {
	c := chaintest.New(5)
	c.Token(token, 6)
	c.Contract(registry)
	e := endpoint(t, c.Serve(t).URL)
	good := chain.Chain{Key: "test", ID: 5, Tokens: []chain.Token{{Currency: "USDC", Address: token, Decimals: 6}}, Registry: registry}
	if err := e.Check(t.Context(), good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*chain.Chain){
		"chain id 5, but chain test has chain id 6": func(c *chain.Chain) { c.ID = 6 },
		"its token USDC should be":                  func(c *chain.Chain) { c.Tokens = []chain.Token{{Currency: "USDC", Address: alice, Decimals: 6}} },
		"token USDC has 18":                         func(c *chain.Chain) { c.Tokens = []chain.Token{{Currency: "USDC", Address: token, Decimals: 18}} },
		"token USDC has 6":                          func(c *chain.Chain) { c.Tokens = []chain.Token{{Currency: "USDC", Address: registry, Decimals: 6}} },
		"its registry should be":                    func(c *chain.Chain) { c.Registry = bob },
	} {
		bad := good
		change(&bad)
		if err := e.Check(t.Context(), bad); !errors.Is(err, chain.ErrMismatch) || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v; want an ErrMismatch with %q", err, want)
		}
	}
}

// TestErrorsHideTheKey has calls fail at every stage, and looks for the key in
// the URL among the errors' words.
func TestErrorsHideTheKey(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		w.Write([]byte(strings.Repeat("x", 100_000))) //nolint:errcheck // the client may hang up
	}))
	url := node.URL + "/v3/s3cret"
	e := endpoint(t, url)
	_, err := e.Head(t.Context())
	if err == nil || !strings.Contains(err.Error(), "429") || len(err.Error()) > 500 {
		t.Errorf("error of a refused call is %d bytes: %.600v", len(err.Error()), err)
	}
	e.Close()
	node.Close()
	for _, url := range []string{url, strings.Replace(url, "http", "ws", 1)} {
		_, err := endpoint(t, url).Head(t.Context())
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error of an unreachable node is %v", err)
		}
	}
	if _, err := chain.NewEndpoint("http://host:bad/s3cret"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error of an unreadable URL is %v", err)
	}
}

// TestListen wakes by every head, ends with its context, and is refused over
// HTTP.
func TestListen(t *testing.T) {
	c := chaintest.New(5)
	node := c.Serve(t)
	if err := endpoint(t, node.URL).Listen(t.Context(), nil); !errors.Is(err, chain.ErrNoSubscription) {
		t.Errorf("Listen over HTTP: %v, want ErrNoSubscription", err)
	}
	e := endpoint(t, node.WSURL)
	subscribed := make(chan struct{})
	node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_subscribe" {
			close(subscribed)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	woken := make(chan struct{}, 100)
	ended := make(chan error)
	go func() { ended <- e.Listen(ctx, func() { woken <- struct{}{} }) }()
	<-subscribed
	// The node counts a subscription before it is served, so mine until it is.
	for done := false; !done; {
		c.Mine()
		select {
		case <-woken:
			done = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Listen ended with %v", err)
	}
}

func TestHeaderRefusesAPartialBlock(t *testing.T) {
	full := map[string]string{
		"number": `"0x1"`, "hash": `"` + common.Hash{1}.Hex() + `"`, "parentHash": `"` + common.Hash{2}.Hex() + `"`, "timestamp": `"0x2"`,
	}
	encode := func(without string) string {
		var members []string
		for k, v := range full {
			if k != without {
				members = append(members, `"`+k+`":`+v)
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	var h chain.Header
	if err := h.UnmarshalJSON([]byte(encode(""))); err != nil || h.Number != 1 || h.Time != 2 {
		t.Fatalf("full block: %+v, %v", h, err)
	}
	if !(chain.LogFilter{Addresses: []common.Address{{1}}, Topics: []common.Hash{{1}}}).Mentioned(h.Bloom) || h.Bloom == (types.Bloom{}) {
		t.Error("a block without a bloom filter must be looked into")
	}
	for k := range full {
		if err := h.UnmarshalJSON([]byte(encode(k))); err == nil {
			t.Errorf("a block without %s was accepted", k)
		}
	}
}
