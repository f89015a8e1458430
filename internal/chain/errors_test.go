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
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// classification is how the program classifies an error.
type classification string

const (
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
	case errors.Is(err, ErrNotFound):
		return notFound
	case errors.Is(err, ErrUnsupported):
		return unsupported
	case isNodeFailure(err):
		return trouble
	}
	return refused
}

// rpcError writes a JSON-RPC error answer.
func rpcError(code int, message string, data ...string) string {
	if len(data) > 0 {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q,"data":%s}}`, code, message, data[0])
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":%q}}`, code, message)
}

// replying is a node that gives the same answer to every request. For a batch it answers only the first call, in a
// list.
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
	expect.OK(t, err)
	t.Cleanup(e.Close)
	return e
}

// TestClassify calls nodes with known ways to refuse. Codes and statuses count, texts do not.
func TestClassify(t *testing.T) {
	for _, c := range []struct {
		by     string
		method string
		status int
		body   string
		want   classification
	}{
		{"geth", blockByNumber, 200, rpcError(-32000, "finalized block not found"), trouble},
		{"Besu", blockByNumber, 200, rpcError(-39001, "Unknown block"), notFound},
		{"anyone", blockByNumber, 200, `{"jsonrpc":"2.0","id":1,"result":null}`, notFound},
		{"geth", receiptsOfBlock, 200, rpcError(-32601, "the method eth_getBlockReceipts does not exist/is not available"), unsupported},
		{"proxyd", receiptsOfBlock, 200, rpcError(-32601, "rpc method is not whitelisted"), unsupported},
		{"Alchemy", receiptsOfBlock, 400, rpcError(-32600, "Unsupported method: eth_getBlockReceipts"), refused},
		{"EIP-1474", blockByNumber, 200, rpcError(-32005, "Limit exceeded"), tooOften},
		{"anyone", blockByNumber, 429, "<html>", tooOften},
		{"anyone", blockByNumber, 200, rpcError(-32000, "Zu viele Anfragen"), trouble},
		{"a gateway", blockByNumber, 502, "<html>Bad Gateway</html>", trouble},
		{"an unpaid account", blockByNumber, 402, "Payment Required", trouble},
		{"garbage", blockByNumber, 200, `{"jsonrpc":"2.0","id":1,"resu`, trouble},
		{"a list", blockByNumber, 200, `[]`, trouble},
		{"nothing", blockByNumber, 200, ``, trouble},
		{"null", blockByNumber, 200, `null`, trouble},
		{"words", blockByNumber, 500, `{"error":"text"}`, trouble},
		{"words", blockByNumber, 200, `{"error":"text"}`, trouble},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "nonce too low: next nonce 7, tx nonce 6"), refused},
		{"geth", "eth_sendRawTransaction", 200, rpcError(-32000, "already known"), refused},
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
		if got := classificationOf(err); got != c.want || !IsRefusal(err) {
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

// TestTimeout distinguishes a slow node from a caller that gave up.
func TestTimeout(t *testing.T) {
	asked := make(chan struct{}, 10) // larger than the number of requests, which may time out before they arrive
	node := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		io.Copy(io.Discard, r.Body) //nolint:errcheck // until the client hangs up
		<-r.Context().Done()
	}))
	t.Cleanup(node.Close)
	e, err := NewClient(ClientConfig{URL: node.URL})
	expect.OK(t, err)
	t.Cleanup(e.Close)

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := e.Head(ctx); !errors.Is(err, context.Canceled) || isNodeFailure(err) {
		t.Errorf("a caller that gave up: %v", err)
	}
	slow, err := NewClient(ClientConfig{URL: node.URL, Timeout: 10 * time.Millisecond})
	expect.OK(t, err)
	t.Cleanup(slow.Close)
	_, err = slow.LogsInRange(t.Context(), 1, 2, LogFilter{})
	if !errors.Is(err, ErrTimeout) || !isNodeFailure(err) || !IsRefusal(err) {
		t.Errorf("a slow node, asked for logs: %v", err)
	}
	expect.Equal(t, slow.Limit(KindRange).Next(), 1, "a slow node is asked for … blocks next:")
}

// TestLongErrorTexts has a node return a longer text than is shown.
func TestLongErrorTexts(t *testing.T) {
	long := strings.Repeat("ö", maxErrorText)
	for status, body := range map[int]string{200: rpcError(-32000, long), 400: rpcError(-32000, long), 500: long} {
		_, err := replying(t, status, nil, body).Head(t.Context())
		if err == nil || len(err.Error()) > maxErrorText+100 || !utf8.ValidString(err.Error()) {
			t.Errorf("status %d: %d bytes: %v", status, len(err.Error()), err)
		}
	}
	for n, want := range map[int]int{maxErrorText: maxErrorText, maxErrorText + 1: maxErrorText + len("…")} {
		expect.Equal(t, len(truncate(strings.Repeat("x", n))), want, "of %d bytes … are shown:", n)
	}
}

// FuzzClassify has nodes refuse in any way, and checks that the classification is consistent.
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
			if pause, _ := IsRateLimit(err); pause < 0 || pause > MaxRetryAfter || !IsRefusal(err) {
				t.Errorf("%v: for %s, refused %t", err, pause, IsRefusal(err))
			}
			if len(err.Error()) > maxErrorText+100 {
				t.Errorf("%d bytes are shown: %v", len(err.Error()), err)
			}
		}
	})
}

// TestResponseLimit reads answers around the limit, in large and small pieces.
func TestResponseLimit(t *testing.T) {
	const limit = 10
	for size, want := range map[int]error{0: nil, limit - 1: nil, limit: nil, limit + 1: ErrResponseTooLarge, 100 * limit: ErrResponseTooLarge} {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", size)) //nolint:errcheck // the client may hang up
		}))
		client := http.Client{Transport: transport{&http.Transport{DisableKeepAlives: true}, limit}}
		for name, pieces := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "bytewise": iotest.OneByteReader,
		} {
			resp, err := client.Get(node.URL)
			expect.OK(t, err)
			read, err := io.ReadAll(pieces(resp.Body))
			if !errors.Is(err, want) || len(read) != min(size, limit) {
				t.Errorf("%d bytes, %s: read %d, %v; want %v", size, name, len(read), err, want)
			}
			expect.NoError(t, resp.Body.Close())
		}
		node.Close()
	}
}

func TestIsLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "::1": true, "10.1.2.3": true, "192.168.0.7": true, "fd00::1": true,
		"": false, "8.8.8.8": false, "2001:db8::1": false, "node.example": false, "localhost.example": false,
	} {
		expect.Equal(t, isLocal(host), want, "isNear(%q) =", host)
	}
}
