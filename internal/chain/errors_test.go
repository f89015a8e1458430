package chain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// A verdict is what the program makes of an error, as the letters of verdicts.
type classification string

const (
	tooMuch     classification = "asked for too much"
	tooOften    classification = "asked too often"
	notFound    classification = "not found"
	unsupported classification = "unsupported"
	trouble     classification = "the node's trouble"
	refused     classification = "an answer"
)

func classificationOf(err error) classification {
	_, often := IsRateLimit(err)
	switch {
	case often:
		return tooOften
	case classify(err).tooLarge() || errors.Is(err, ErrResponseTooLarge):
		return tooMuch
	case errors.Is(err, ErrNotFound):
		return notFound
	case errors.Is(err, ErrUnsupported):
		return unsupported
	case isNodeFailure(err):
		return trouble
	}
	return refused
}

// rpcError writes a JSON-RPC answer that is an error.
func rpcError(code int, message string, data ...string) string {
	if len(data) > 0 {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q,"data":%s}}`, code, message, data[0])
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q}}`, code, message)
}

// replying is a node that gives one answer to everything. To a batch it gives
// the answer for the first call alone, in a list.
func replying(t *testing.T, status int, header http.Header, body string) *Client {
	t.Helper()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for k, v := range header {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body) //nolint:errcheck // the client may hang up
	}))
	t.Cleanup(node.Close)
	e, err := NewClient(ClientConfig{URL: node.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// TestClassifyLogErrors asks for logs of nodes that refuse as nodes do. What
// they say in words is known as too much; the rest is at least tried smaller.
func TestClassifyLogErrors(t *testing.T) {
	type suggestion struct{ from, to uint64 }
	for _, c := range []struct {
		by        string
		status    int
		body      string
		want      classification
		suggested suggestion
	}{
		{"Alchemy", 200, rpcError(-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0xd043b8]"), tooMuch, suggestion{0, 0xd043b8}},
		{"Alchemy, free", 400, rpcError(-32600, "You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x123c9b2, 0x123cba5]"), tooMuch, suggestion{0x123c9b2, 0x123cba5}},
		{"Alchemy, by status", 400, rpcError(-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response. Based on your parameters and the response size limit, this block range should work: [0x0, 0xd043b8]"), tooMuch, suggestion{0, 0xd043b8}},
		{"Alchemy, throttled", 429, rpcError(429, "Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message."), tooOften, suggestion{}},
		{"Infura", 200, rpcError(-32005, "query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].", `{"from":"0xBDE5F8","limit":10000,"to":"0x102DBCC"}`), tooMuch, suggestion{0xbde5f8, 0x102dbcc}},
		{"Infura, by range", 200, rpcError(-32602, "range 1000000 exceeds limit of 10000"), tooMuch, suggestion{}},
		{"Infura, slow", 200, rpcError(-32005, "query timeout exceeded"), tooMuch, suggestion{}},
		{"Infura, daily", 429, rpcError(-32005, "daily request count exceeded, request rate limited"), tooOften, suggestion{}},
		{"Infura, by second", 429, rpcError(-32005, "project ID request rate exceeded", `{"see":"https://infura.io/dashboard"}`), tooOften, suggestion{}},
		{"QuickNode", 413, rpcError(-32614, "eth_getLogs is limited to a 10,000 range"), tooMuch, suggestion{}},
		{"QuickNode, former", 200, rpcError(-32602, "eth_getLogs and eth_newFilter are limited to a 10,000 blocks range"), tooMuch, suggestion{}},
		{"QuickNode, throttled", 200, rpcError(-32007, "100/second request limit reached - reduce calls per second or upgrade your account at quicknode.com"), tooOften, suggestion{}},
		{"Ankr", 200, rpcError(-32600, "block range is too wide"), tooMuch, suggestion{}},
		{"Ankr, by distance", 200, rpcError(-32600, "maximum [from, to] blocks distance: 1000"), tooMuch, suggestion{}},
		{"Ankr, throttled", 429, rpcError(-32090, "Too many requests, reason: call rate limit exhausted, retry in 10s"), tooOften, suggestion{}},
		{"Chainstack", 200, rpcError(-32602, "Block range limit exceeded. See more details at https://docs.chainstack.com/docs/limits#evm-range-limits."), tooMuch, suggestion{}},
		{"Chainstack, throttled", 429, rpcError(-32005, "You've exceeded the RPS limit available on the current plan."), tooOften, suggestion{}},
		{"dRPC", 200, rpcError(35, "ranges over 10000 blocks are not supported on freetier"), tooMuch, suggestion{}},
		{"dRPC, slow", 408, rpcError(30, "Request timeout on the free tier, please upgrade your tier to the paid one"), trouble, suggestion{}},
		{"dRPC, at fault", 500, rpcError(19, "Temporary internal error. Please retry, trace-id: 0f"), trouble, suggestion{}},
		{"Cloudflare", 200, rpcError(-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800"), tooMuch, suggestion{}},
		{"PublicNode", 200, rpcError(-32701, "exceed maximum block range: 50000"), tooMuch, suggestion{}},
		{"BlastAPI", 200, rpcError(-32600, "eth_getLogs is limited to a 10000 range"), tooMuch, suggestion{}},
		{"BlastAPI, paid", 200, rpcError(-32600, "eth_getLogs exceeds the range allowed for your plan (10001 > 10000)"), tooMuch, suggestion{}},
		{"Tenderly", 200, rpcError(-32602, "invalid params", `{"error_id":"4ed9","payload":"range 9009594 is bigger than range limit 2000"}`), tooMuch, suggestion{}},
		{"Tenderly, throttled", 429, rpcError(-32005, "rate limit exceeded"), tooOften, suggestion{}},
		{"BlockPI", 200, rpcError(-32602, "eth_getLogs is limited to 1024 block range. Please check the parameter requirements at https://docs.blockpi.io/documentations/api-reference"), tooMuch, suggestion{}},
		{"Coinbase", 200, rpcError(-32602, "please limit the query to at most 1000 blocks"), tooMuch, suggestion{}},
		{"thirdweb", 200, rpcError(-32005, "Maximum allowed number of requested blocks is 1000"), tooMuch, suggestion{}},
		{"1RPC", 200, rpcError(-32602, "response size should not greater than 10000000 bytes"), tooMuch, suggestion{}},
		{"merkle", 200, rpcError(-32603, "eth_getLogs range is too large, max is 1k blocks"), tooMuch, suggestion{}},
		{"Avalanche", 200, rpcError(-32000, "requested too many blocks from 0 to 10000, maximum is set to 2048"), tooMuch, suggestion{}},
		{"Arbitrum", 200, rpcError(-32000, "logs matched by query exceeds limit of 10000"), tooMuch, suggestion{}},
		{"OP, proxyd", 200, rpcError(-32020, "backend response too large"), tooMuch, suggestion{}},
		{"OP, proxyd by range", 200, rpcError(-32000, "Block range is too large"), tooMuch, suggestion{}},
		{"Base, throttled", 200, rpcError(-32016, "over rate limit"), tooOften, suggestion{}},
		{"Base, down", 503, rpcError(-32011, "no backend is currently healthy to serve traffic"), trouble, suggestion{}},
		{"Polygon zkEVM", 200, rpcError(-32000, "query returned more than 10000 results"), tooMuch, suggestion{}},
		{"geth", 200, rpcError(-32000, "exceed maximum block range: 1000"), tooMuch, suggestion{}},
		{"geth, slow", 200, rpcError(-32002, "request timed out"), trouble, suggestion{}},
		{"geth, long", 200, rpcError(-32003, "response too large"), tooMuch, suggestion{}},
		{"erigon", 200, rpcError(-32602, "block range limit exceeded (5000)"), tooMuch, suggestion{}},
		{"nethermind", 200, rpcError(-32005, "Too many logs requested. Max logs per response is 20000."), tooMuch, suggestion{}},
		{"reth", 200, rpcError(-32602, "query exceeds max block range 100000"), tooMuch, suggestion{}},
		{"reth, by results", 200, rpcError(-32602, "query exceeds max results 20000, retry with the range 24383075-24383096"), tooMuch, suggestion{24383075, 24383096}},
		{"scroll", 200, rpcError(-32000, "block range is bigger than maxBlockRange"), tooMuch, suggestion{}},
		{"moonbeam", 200, rpcError(-32603, "block range is too wide (maximum 1024)"), tooMuch, suggestion{}},
		{"BNB Chain", 200, rpcError(-32005, "limit exceeded"), tooMuch, suggestion{}},
		{"a proxy", 413, "<html>413 Request Entity Too Large</html>", tooMuch, suggestion{}},
		{"a proxy, throttling", 429, "<html>Too Many Requests</html>", tooOften, suggestion{}},
		{"a proxy, down", 502, "<html>Bad Gateway</html>", trouble, suggestion{}},
		{"an unpaid account", 402, "Payment Required", trouble, suggestion{}},
		{"a wrong key", 401, rpcError(-32000, "Must be authenticated!"), trouble, suggestion{}},
		{"garbage", 200, `{"jsonrpc":"2.0","id":1,"resu`, trouble, suggestion{}},
		{"a page", 200, `<html>hello</html>`, trouble, suggestion{}},
		{"a free plan", 200, rpcError(-32600, "method eth_getLogs with a block range over 500 is not available on the free plan"), tooMuch, suggestion{}},
		{"a strange word", 200, rpcError(-32099, "nope"), refused, suggestion{}},
		{"an old head", 200, rpcError(-32602, "block range extends beyond current head block"), tooMuch, suggestion{}},
	} {
		e := replying(t, c.status, nil, c.body)
		_, err := e.LogsInRange(t.Context(), 1, 9999, LogFilter{})
		if got := classificationOf(err); got != c.want {
			t.Errorf("%s: %q, want %q: %v", c.by, got, c.want, err)
		}
		if c.want == tooMuch && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported)) {
			t.Errorf("%s: taken for something else as well: %v", c.by, err)
		}
		if from, to, ok := SuggestedRange(err); (suggestion{from, to}) != c.suggested || ok != (c.suggested.to != 0) {
			t.Errorf("%s: suggested %d to %d, %t; want %+v", c.by, from, to, ok, c.suggested)
		}
		_, often := IsRateLimit(err)
		if smaller := IsTooLarge(err); smaller != (c.want != tooOften && classify(err).rpcError || c.status == http.StatusRequestEntityTooLarge) {
			t.Errorf("%s: to be asked for less: %t, less often: %t", c.by, smaller, often)
		}
	}
}

// TestClassify asks for a block and sends a transaction to nodes that refuse
// as nodes do.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		by     string
		method string
		status int
		body   string
		want   classification
	}{
		{"geth", blockByNumber, 200, rpcError(-32000, "finalized block not found"), notFound},
		{"geth", blockByNumber, 200, rpcError(-32000, "safe block not found"), notFound},
		{"geth", "eth_call", 200, rpcError(-32000, "header not found"), notFound},
		{"geth", "eth_getLogs", 200, rpcError(-32000, "unknown block"), notFound},
		{"Besu", blockByNumber, 200, rpcError(-39001, "Unknown block"), notFound},
		{"erigon", blockByNumber, 200, rpcError(-32000, `block "finalized" not available (head block: 21459236)`), notFound},
		{"reth", "eth_call", 200, rpcError(-32001, "block not found: finalized"), notFound},
		{"nethermind", blockByNumber, 200, rpcError(-32001, "Cannot find block 0x1"), notFound},
		{"anyone", blockByNumber, 200, `{"jsonrpc":"2.0","id":1,"result":null}`, notFound},
		{"geth", receiptsOfBlock, 200, rpcError(-32601, "the method eth_getBlockReceipts does not exist/is not available"), unsupported},
		{"nethermind", receiptsOfBlock, 200, rpcError(-32601, "Method eth_getBlockReceipts is not supported"), unsupported},
		{"proxyd", receiptsOfBlock, 200, rpcError(-32601, "rpc method is not whitelisted"), unsupported},
		{"Alchemy", receiptsOfBlock, 400, rpcError(-32600, "Unsupported method: eth_getBlockReceipts. See available methods at https://docs.alchemy.com/alchemy/documentation/apis"), unsupported},
		{"EIP-1474", blockByNumber, 200, rpcError(-32005, "Limit exceeded"), tooOften},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "nonce too low: next nonce 7, tx nonce 6"), refused},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "already known"), refused},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1"), refused},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "replacement transaction underpriced"), refused},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "transaction type not supported"), refused},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "in-flight transaction limit reached for delegated accounts"), refused},
		{"Base", "eth_sendRawTransaction", 200, rpcError(-32000, `429 Too Many Requests: {"jsonrpc":"2.0","error":{"code":-32016,"message":"over rate limit"},"id":2239375}`), tooOften},
		{"geth", "eth_call", 200, rpcError(3, "execution reverted: rate limit exceeded, timeout, block not found", `"0x08"`), refused},
		{"others", "eth_call", 200, rpcError(-32000, "execution reverted: method not found, rate limit"), refused},
		{"geth", "eth_call", 200, rpcError(-32603, "method handler crashed"), trouble},
		{"anyone", "eth_call", 500, rpcError(-32000, "nope"), trouble},
		{"anyone", "eth_call", 403, rpcError(-32000, "origin is not on the whitelist"), trouble},
	} {
		e := replying(t, c.status, nil, c.body)
		var err error
		switch c.method {
		case blockByNumber:
			_, err = e.Head(t.Context())
		case receiptsOfBlock:
			_, err = e.BlockReceipts(t.Context(), invoice.Hash{1})
		default:
			err = e.CallContext(t.Context(), new(any), c.method)
		}
		if got := classificationOf(err); got != c.want {
			t.Errorf("%s, %s: %q, want %q: %v", c.by, c.method, got, c.want, err)
		}
	}
}

// TestRetryAfter reads the pause that a node asks for.
func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-1": 0, "soon": 0, "1.5": 0, "99999999999": 0,
		time.Now().Add(time.Hour).UTC().Format(http.TimeFormat):  time.Hour,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		e := replying(t, http.StatusTooManyRequests, http.Header{"Retry-After": {value}}, "slow down")
		_, err := e.Head(t.Context())
		got, ok := IsRateLimit(err)
		if !ok || got < want-5*time.Second || got > want+5*time.Second || (want == 0) != (got == 0) {
			t.Errorf("Retry-After %q: %s, %t; want %s", value, got, ok, want)
		}
	}
	for data, want := range map[string]time.Duration{
		`{"rate":{"allowed_rps":5,"backoff_seconds":30,"current_rps":5.2}}`: 30 * time.Second,
		`{"rate":{"backoff_seconds":-1}}`:                                   0,
		`{"rate":{"backoff_seconds":1e99}}`:                                 0,
		`{"rate":[]}`:                                                       0,
	} {
		_, err := replying(t, 200, nil, rpcError(-32005, "exceeded project rate limit", data)).Head(t.Context())
		if got, ok := IsRateLimit(err); !ok || got != want {
			t.Errorf("data %s: %s, %t; want %s", data, got, ok, want)
		}
	}
	_, err := replying(t, http.StatusServiceUnavailable, http.Header{"Retry-After": {"7"}}, "").Head(t.Context())
	if _, ok := IsRateLimit(err); ok || !isNodeFailure(err) {
		t.Errorf("503 is taken for a rate limit: %v", err)
	}
}

// TestBatchRefused has nodes refuse a batch for its length, in the ways that
// they do, until it is short enough.
func TestBatchRefused(t *testing.T) {
	const most = 3
	for name, refuse := range map[string]func(w http.ResponseWriter, id string){
		"an object in place of a list": func(w http.ResponseWriter, _ string) {
			io.WriteString(w, rpcError(31, "Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account")) //nolint:errcheck // the client may hang up
		},
		"with an HTTP status": func(w http.ResponseWriter, _ string) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, rpcError(31, "Batch of more than 3 requests are not allowed on free tier")) //nolint:errcheck // the client may hang up
		},
		"in the first answer": func(w http.ResponseWriter, id string) {
			io.WriteString(w, "["+strings.Replace(rpcError(-32600, "batch too large"), `"id":1`, `"id":`+id, 1)+"]") //nolint:errcheck // the client may hang up
		},
		"413": func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusRequestEntityTooLarge) },
	} {
		requests := 0
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			requests++
			ids := strings.Split(string(body), `"id":`)[1:]
			for i := range ids {
				ids[i], _, _ = strings.Cut(ids[i], ",")
			}
			if len(ids) > most {
				refuse(w, ids[0])
				return
			}
			var answers []string
			for _, id := range ids {
				answers = append(answers, `{"jsonrpc":"2.0","id":`+id+`,"result":{"number":"0x1","hash":"`+invoice.Hash{}.String()+
					`","parentHash":"`+invoice.Hash{}.String()+`","timestamp":"0x1"}}`)
			}
			io.WriteString(w, "["+strings.Join(answers, ",")+"]") //nolint:errcheck // the client may hang up
		}))
		t.Cleanup(node.Close)
		e, err := NewClient(ClientConfig{URL: node.URL})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		numbers := make([]uint64, 12)
		for i := range numbers {
			numbers[i] = 1
		}
		for _, most := range []int{2 + 4, 4} { // 12 and 6 are refused, then 3 at a time; later 3 at once
			requests = 0
			headers, err := e.Headers(t.Context(), numbers)
			if err != nil || len(headers) != len(numbers) || requests != most {
				t.Errorf("%s: %d headers in %d requests, %v; want %d requests", name, len(headers), requests, err, most)
			}
		}
	}
}

// TestTimeout distinguishes a slow node from a caller that gave up.
func TestTimeout(t *testing.T) {
	asked := make(chan struct{}, 10) // more than there are requests, which may time out before they arrive
	node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		io.Copy(io.Discard, r.Body) //nolint:errcheck // until the client hangs up
		<-r.Context().Done()
	}))
	t.Cleanup(node.Close)
	e, err := NewClient(ClientConfig{URL: node.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := e.Head(ctx); !errors.Is(err, context.Canceled) || isNodeFailure(err) {
		t.Errorf("a caller that gave up: %v", err)
	}
	slow, err := NewClient(ClientConfig{URL: node.URL, Timeout: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slow.Close)
	_, err = slow.LogsInRange(t.Context(), 1, 2, LogFilter{})
	if !errors.Is(err, ErrTimeout) || !isNodeFailure(err) || !IsTooLarge(err) {
		t.Errorf("a slow node, asked for logs: %v", err)
	}
	if _, err := slow.Head(t.Context()); !errors.Is(err, ErrTimeout) || IsTooLarge(err) {
		t.Errorf("a slow node, asked for a block: %v", err)
	}
}

// TestLongErrorTexts has a node say more than is shown.
func TestLongErrorTexts(t *testing.T) {
	long := strings.Repeat("ö", maxErrorText)
	for status, body := range map[int]string{200: rpcError(-32000, long), 400: rpcError(-32000, long), 500: long} {
		_, err := replying(t, status, nil, body).Head(t.Context())
		if err == nil || len(err.Error()) > maxErrorText+100 || !utf8.ValidString(err.Error()) {
			t.Errorf("status %d: %d bytes: %v", status, len(err.Error()), err)
		}
	}
	for n, want := range map[int]int{maxErrorText: maxErrorText, maxErrorText + 1: maxErrorText + len("…")} {
		if got := len(truncate(strings.Repeat("x", n))); got != want {
			t.Errorf("of %d bytes %d are shown, want %d", n, got, want)
		}
	}
}

// FuzzClassify has nodes refuse in any way: what is made of it fits together.
func FuzzClassify(f *testing.F) {
	f.Add(200, []byte(rpcError(-32005, "query returned more than 10000 results. Try with this block range [0x1, 0x2].", `{"rate":{"backoff_seconds":3}}`)))
	f.Add(429, []byte("<html>"))
	f.Add(413, []byte(`{"error":{"code":1e9,"message":null,"data":[]}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		var err error = rpc.HTTPError{StatusCode: status, Status: http.StatusText(status), Body: body}
		if status == http.StatusOK {
			answer := parseRPCError(body)
			if answer == nil {
				return
			}
			err = answer
		}
		for _, method := range []string{getLogs, blockByNumber} {
			err := error((&callError{node: "node", method: method, err: sanitize(err)}).withSentinel())
			pause, often := IsRateLimit(err)
			if often && IsTooLarge(err) || pause < 0 || pause > MaxRetryAfter {
				t.Errorf("%v: too often: %t, for %s; too much: %t", err, often, pause, IsTooLarge(err))
			}
			if from, to, ok := SuggestedRange(err); ok && from > to {
				t.Errorf("%v: suggested %d to %d", err, from, to)
			}
			if often && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrUnsupported)) {
				t.Errorf("%v: asked too often, and something else", err)
			}
			if len(err.Error()) > maxErrorText+100 {
				t.Errorf("%d bytes are shown: %v", len(err.Error()), err)
			}
		}
	})
}
