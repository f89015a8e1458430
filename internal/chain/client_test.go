package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

var (
	token    = invoice.Address{0x70}
	registry = invoice.Address{0x4e}
	alice    = invoice.Address{0xa1}
	bob      = invoice.Address{0xb0}
)

func newClient(t *testing.T, url string) *chain.Client {
	t.Helper()
	return newClientOf(t, chain.ClientConfig{URL: url})
}

func newClientOf(t *testing.T, conf chain.ClientConfig) *chain.Client {
	t.Helper()
	e, err := chain.NewClient(conf)
	expect.OK(t, err)
	t.Cleanup(e.Close)
	return e
}

func TestNewClientRefuses(t *testing.T) {
	for _, url := range []string{"", "localhost:8545", "/path", "ipc:///geth.ipc", "http://", "ftp://host", "http://bad host/"} {
		if _, err := chain.NewClient(chain.ClientConfig{URL: url}); err == nil {
			t.Errorf("NewEndpoint(%q) did not fail", url)
		}
	}
}

// TestClient calls every method of a node.
func TestClient(t *testing.T) {
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
	e := newClient(t, node.URL)
	ctx := t.Context()
	if h, err := e.Head(ctx); err != nil || h.Number != 3 || h.Hash != invoice.Hash(c.Head().Hash) {
		t.Errorf("%s: Head = %+v, %v", e, h, err)
	}
	_, h, err := e.HeadAndTagged(ctx, chain.TagSafe)
	want := chain.Header{Header: invoice.Header{Number: 1, Hash: invoice.Hash(b.Hash), Parent: invoice.Hash(b.Parent), Time: invoice.Unix(b.Time)}, Bloom: h.Bloom, Txs: 1}
	if err != nil || h != want {
		t.Errorf("%s: tagged is %+v, %v; want %+v", e, h, err, want)
	}
	if !filter.MayMatch(h.Bloom) {
		t.Errorf("%s: the bloom filter of block 1 does not mention its log", e)
	}
	headers, err := e.Headers(ctx, []uint64{2, 0, 1})
	if err != nil || len(headers) != 3 || headers[0].Number != 2 || headers[1].Number != 0 || headers[2] != want {
		t.Errorf("%s: Headers = %+v, %v", e, headers, err)
	}
	if filter.MayMatch(headers[0].Bloom) {
		t.Errorf("%s: the bloom filter of an empty block mentions a log", e)
	}
	expect.Error(t, chain.ErrNotFound, "%s: Headers past the head", e)(e.Headers(ctx, []uint64{1, 4}))
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
	_, inputs, err := e.Evidence(ctx, []common.Hash{tx.Hash})
	if err != nil || len(inputs) != 1 || string(inputs[0]) != "\x01\x02\x03" {
		t.Errorf("%s: Evidence has the input %v, %v", e, inputs, err)
	}
}

// TestClientBatches asks for more items than one batch holds.
func TestClientBatches(t *testing.T) {
	c := chaintest.New(5)
	c.MineEmpty(2 * chain.MaxBatch)
	node := c.Serve(t)
	e := newClient(t, node.URL)
	numbers := make([]uint64, 2*chain.MaxBatch+1)
	for i := range numbers {
		numbers[i] = uint64(i)
	}
	headers, err := e.Headers(t.Context(), numbers)
	if err != nil || len(headers) != len(numbers) {
		t.Fatalf("Headers: %d of %d, %v", len(headers), len(numbers), err)
	}
	expect.Equal(t, node.Calls("eth_getBlockByNumber"), len(numbers), "calls were made:")
	if headers, err := e.Headers(t.Context(), nil); err != nil || len(headers) != 0 {
		t.Errorf("Headers of nothing = %v, %v", headers, err)
	}
}

// TestHeadAndTagged asks nodes for both blocks in one request, with and without a tagged block.
func TestHeadAndTagged(t *testing.T) {
	c := chaintest.New(5)
	c.MineEmpty(3)
	c.Tag("safe", 2)
	node := c.Serve(t)
	e := newClient(t, node.URL)
	for tag, want := range map[string]uint64{"": 0, chain.TagSafe: 2, chain.TagFinalized: 0} {
		before := node.Calls("eth_getBlockByNumber")
		head, tagged, err := e.HeadAndTagged(t.Context(), tag)
		if err != nil || head.Number != 3 || tagged.Number != want || (tagged.Hash == invoice.Hash{}) != (want == 0) {
			t.Errorf("tag %q: %d, %d, %v; want 3, %d", tag, head.Number, tagged.Number, err, want)
		}
		if calls := node.Calls("eth_getBlockByNumber") - before; calls > 2 {
			t.Errorf("tag %q: %d calls", tag, calls)
		}
	}

	// geth returns an error instead of null
	header := `"result":{"number":"0x3","hash":"` + common.Hash{3}.Hex() + `","parentHash":"` + common.Hash{2}.Hex() + `","timestamp":"0x1"}`
	const lacks, broken = `"error":{"code":-32000,"message":"finalized block not found"}`, `"error":{"code":-32603,"message":"internal error"}`
	for _, c := range []struct {
		latest, finalized string
		fails             bool
	}{{header, lacks, false}, {header, broken, true}, {lacks, lacks, true}, {lacks, header, true}, {`"result":null`, lacks, true}} {
		head, tagged, err := scriptedTags(t, map[string]string{"latest": c.latest, "finalized": c.finalized}).HeadAndTagged(t.Context(), "finalized")
		if (err != nil) != c.fails || !c.fails && (head.Number != 3 || tagged != chain.Header{}) {
			t.Errorf("%+v: %d, %d, %v", c, head.Number, tagged.Number, err)
		}
	}
}

// scriptedTags returns a node that answers a batch of requests for blocks by tag.
func scriptedTags(t *testing.T, results map[string]string) *chain.Client {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		type question struct {
			ID     int
			Params []any
		}
		body, err := io.ReadAll(r.Body)
		expect.NoError(t, err)
		var calls []question
		if json.Unmarshal(body, &calls) != nil {
			calls = make([]question, 1)
			expect.NoError(t, json.Unmarshal(body, &calls[0]))
		}
		var answers []string
		for _, c := range calls {
			answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, c.ID, results[c.Params[0].(string)]))
		}
		answer := strings.Join(answers, ",")
		if body[0] == '[' {
			answer = "[" + answer + "]"
		}
		w.Write([]byte(answer)) //nolint:errcheck // the client may hang up
	}))
	t.Cleanup(node.Close)
	return newClient(t, node.URL)
}

// maxAnswer is the answer limit of endpoints in the tests of that limit.
const maxAnswer = 100_000

// TestBatchOfLongAnswers halves a batch with answers that are too long together.
func TestBatchOfLongAnswers(t *testing.T) {
	server := rpc.NewServer()
	expect.OK(t, server.RegisterName("eth", &halfAnswer{}))
	t.Cleanup(server.Stop)
	node := httptest.NewServer(server)
	t.Cleanup(node.Close)
	var results [3]string
	batch := make([]rpc.BatchElem, len(results))
	for i := range batch {
		batch[i] = rpc.BatchElem{Method: "eth_blockNumber", Result: &results[i]}
	}
	e := newClientOf(t, chain.ClientConfig{URL: node.URL, MaxAnswer: maxAnswer})
	expect.OK(t, e.BatchCallContext(t.Context(), batch))
	for i, r := range results {
		expect.Equal(t, len(r), maxAnswer/2, "answer %d has … bytes:", i)
	}
}

// halfAnswer has a method eth_blockNumber; two of its answers exceed the limit.
type halfAnswer struct{}

func (*halfAnswer) BlockNumber() string { return strings.Repeat("x", maxAnswer/2) }

// TestCompression expects no compression from a local node.
func TestCompression(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expect.Equal(t, r.Header.Get("Accept-Encoding"), "", "a node on this machine is asked for")
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(node.Close)
	if _, err := newClient(t, node.URL).Head(t.Context()); err == nil {
		t.Error("404 is no error")
	}
}

// longAnswer has a method eth_blockNumber with an answer that is too long.
type longAnswer struct{}

func (longAnswer) BlockNumber() string { return strings.Repeat("x", maxAnswer) }

func TestResponseTooLarge(t *testing.T) {
	server := rpc.NewServer()
	expect.OK(t, server.RegisterName("eth", longAnswer{}))
	t.Cleanup(server.Stop)
	node := httptest.NewServer(server)
	t.Cleanup(node.Close)
	e := newClientOf(t, chain.ClientConfig{URL: node.URL, MaxAnswer: maxAnswer})
	var s string
	if err := e.CallContext(t.Context(), &s, "eth_blockNumber"); !errors.Is(err, chain.ErrResponseTooLarge) || !chain.IsRefusal(err) {
		t.Errorf("read %d bytes, %.200v; want ErrResponseTooLarge", len(s), err)
	}
}

func TestCheck(t *testing.T) {
	c := chaintest.New(5)
	c.Token(token, 6)
	c.Contract(registry)
	e := newClient(t, c.Serve(t).URL)
	good := chain.Chain{Key: "test", ID: 5, Tokens: []chain.Token{{Currency: "USDC", Address: token, Decimals: 6}}, Registry: registry}
	expect.NoError(t, e.Check(t.Context(), good))
	for want, change := range map[string]func(*chain.Chain){
		"chain id 5, but chain test has chain id 6":        func(c *chain.Chain) { c.ID = 6 },
		"its token USDC should be":                         func(c *chain.Chain) { c.Tokens = []chain.Token{{Currency: "USDC", Address: alice, Decimals: 6}} },
		"token USDC has 18":                                func(c *chain.Chain) { c.Tokens = []chain.Token{{Currency: "USDC", Address: token, Decimals: 18}} },
		"token USDC has 6":                                 func(c *chain.Chain) { c.Tokens = []chain.Token{{Currency: "USDC", Address: registry, Decimals: 6}} },
		"its registry should be":                           func(c *chain.Chain) { c.Registry = bob },
		"its depositFactory should be; correct":            func(c *chain.Chain) { c.DepositFactory = bob },
		"its depositFactory should be, has other code":     func(c *chain.Chain) { c.DepositFactory = registry },
		"its authorizationRelay should be; correct":        func(c *chain.Chain) { c.AuthorizationRelay = bob },
		"its authorizationRelay should be, has other code": func(c *chain.Chain) { c.AuthorizationRelay = registry },
	} {
		bad := good
		change(&bad)
		if err := e.Check(t.Context(), bad); !errors.Is(err, chain.ErrMismatch) || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: %v; want an ErrMismatch with %q", err, want)
		}
	}
}

// TestErrorsHideTheKey makes calls fail at every stage, and searches the errors' texts for the key in the URL.
func TestErrorsHideTheKey(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		w.Write([]byte("no " + r.URL.String() + strings.Repeat("x", 100_000))) //nolint:errcheck // the client may hang up
	}))
	url := node.URL + "/v3/s3cret?token=s3cret+too"
	e := newClient(t, url)
	_, err := e.Head(t.Context())
	if err == nil || !strings.Contains(err.Error(), "429") || len(err.Error()) > 500 || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error of a refused call is %d bytes: %.600v", len(err.Error()), err)
	}
	e.Close()
	node.Close()
	if _, err := newClient(t, url).Head(t.Context()); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error of an unreachable node is %v", err)
	}
	if _, err := chain.NewClient(chain.ClientConfig{URL: "http://host:bad/s3cret"}); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("error of an unreadable URL is %v", err)
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
	if err := h.UnmarshalJSON([]byte(encode(""))); err != nil || h.Number != 1 || h.Time.Unix() != 2 {
		t.Fatalf("full block: %+v, %v", h, err)
	}
	if !(chain.LogFilter{Addresses: []common.Address{{1}}, Topics: []common.Hash{{1}}}).MayMatch(h.Bloom) || h.Bloom == (types.Bloom{}) {
		t.Error("a block without a bloom filter must be looked into")
	}
	full["timestamp"] = `"0xffffffffffffffff"`
	if err := h.UnmarshalJSON([]byte(encode(""))); err != nil || h.Time != invoice.Unix(math.MaxInt64) {
		t.Errorf("the last time there is became %s, %v", h.Time, err)
	}
	for k := range full {
		if err := h.UnmarshalJSON([]byte(encode(k))); err == nil {
			t.Errorf("a block without %s was accepted", k)
		}
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://shop.example/hook":         "",
		"https://shop.example:443/hook?a=b": "",
		"https://shop.example:65535":        "",
		"https://[2001:db8::1]:8443/":       "",
		"https://shop.example/%20":          "",
		"https://shop.example/é":            "",
		"https://shop.example/hook ":        "has a blank",
		" https://shop.example/hook":        "has a blank",
		"https://shop.example/a b":          "has a blank",
		"https://shop.example/\u00a0":       "has a blank",
		"https://shop.example/\t":           "has a blank",
		"https://shop.example/\n":           "has a blank",
		"https://shop.example/\x7f":         "has a blank",
		"https://shop.example:99999/hook":   "has the port 99999; want 1 to 65535",
		"https://shop.example:65536":        "has the port 65536",
		"https://shop.example:0/":           "has the port 0",
		"https://[2001:db8::1]:70000/":      "has the port 70000",
	} {
		switch err := chain.CheckURL(text); {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// codeNode answers eth_getCode with JSON, or hangs.
type codeNode struct {
	code string
	err  error
	hang bool
}

func (n codeNode) BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error {
	if n.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if batch[0].Method != "eth_getCode" || n.err != nil {
		return n.err
	}
	return json.Unmarshal([]byte(n.code), batch[0].Result)
}

func TestAccount(t *testing.T) {
	c, _ := inspectBase(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		key  string
		node codeNode
		want invoice.AccountKind
	}{
		"no code":       {t.Context(), "base", codeNode{code: `"0x"`}, invoice.AccountWithKey},
		"code":          {t.Context(), "base", codeNode{code: `"0x6080"`}, invoice.AccountContract},
		"a delegation":  {t.Context(), "base", codeNode{code: `"0xef01005aaeb6053f3e94c9b9a09f33669435e7ef1beaed"`}, invoice.AccountWithKey},
		"null":          {t.Context(), "base", codeNode{code: `null`}, invoice.AccountUnknown},
		"an error":      {t.Context(), "base", codeNode{err: errors.New("down")}, invoice.AccountUnknown},
		"no answer":     {ended, "base", codeNode{hang: true}, invoice.AccountUnknown},
		"another chain": {t.Context(), "mars", codeNode{code: `"0x"`}, invoice.AccountUnknown},
	} {
		i := chain.NewInspector([]chain.Source{{Chain: c, Node: test.node}})
		expect.Equal(t, i.Account(test.ctx, test.key, payer), test.want, "%s:", name)
	}
}

func (codeNode) Nodes() int { return 1 }

func (n codeNode) Each(ctx context.Context, _ int, ask func(context.Context, chain.BatchCaller) error) (all bool, err error) {
	err = ask(ctx, n)
	return err == nil, err
}

func TestExplorer(t *testing.T) {
	for text, want := range map[string]string{
		"none": "", "https://etherscan.io": "https://etherscan.io", "https://scan.example/base/": "https://scan.example/base",
	} {
		if got, err := chain.ParseExplorer(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "etherscan.io", "http://etherscan.io", "https://", "https://a:b@x.example", "https://x.example/?q=", "javascript:alert(1)", `https://x.example/"`} {
		if _, err := chain.ParseExplorer(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	c, _ := chain.Lookup("base")
	if got, want := c.TransactionURL(invoice.Hash{31: 1}), "https://basescan.org/tx/0x0000000000000000000000000000000000000000000000000000000000000001"; got != want {
		t.Errorf("%s", got)
	}
	if got, want := c.AddressURL(invoice.Address{19: 1}), "https://basescan.org/address/0x0000000000000000000000000000000000000001"; got != want {
		t.Errorf("%s", got)
	}
	local, _ := chain.Lookup(chain.Local)
	if got := local.TransactionURL(invoice.Hash{}) + local.AddressURL(invoice.Address{}); got != "" {
		t.Errorf("a chain without an explorer links to %s", got)
	}
}
