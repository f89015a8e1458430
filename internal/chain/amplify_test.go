package chain

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestAmplification has a node answer many short values. The memory stays below ten times the text, and each call
// fails.
func TestAmplification(t *testing.T) {
	const text = 8 << 20
	nested := strings.Repeat(`{"":            `, 1000) + "0" + strings.Repeat("}", 1000) + ","
	call := func(c *Client) error { return c.call(t.Context(), new(any), "eth_call") }
	for name, test := range map[string]struct {
		before, value, after string
		status               int
		ask                  func(*Client) error
	}{
		"data of an error":                {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `[],`, `0]}}`, 200, call},
		"data, text and bare ones":        {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `"\",[",{},`, `0]}}`, 200, call},
		"data in a member's name":         {`{"jsonrpc":"2.0","result":1,"Error":{"code":3,"message":"x","data":[`, `{"result":0     },`, `0]}}`, 200, call},
		"nested data of just enough text": {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, strings.ReplaceAll(nested, " ", "      "), `0]}}`, 200, call},
		"nested data of an error":         {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, nested, `0]}}`, 200, call},
		"data of just enough text":        {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `{"":[0],"a":"` + strings.Repeat("x", 242) + `"},`, `0]}}`, 200, call},
		"error page":                      {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `[],`, `0]}}`, 500, call},
		"nested data in a batch": {`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"error":{"data":[`, nested, `0]}}]`, 200, func(c *Client) error {
			return c.BatchCallContext(t.Context(), []rpc.BatchElem{{Method: "eth_call", Result: new(any)}, {Method: "eth_call", Result: new(any)}})
		}},
		"batch": {`[`, `{},`, `{}]`, 200, func(c *Client) error {
			return c.BatchCallContext(t.Context(), []rpc.BatchElem{{Method: "eth_call", Result: new(any)}, {Method: "eth_call", Result: new(any)}})
		}},
		"receipts": {`{"jsonrpc":"2.0","id":1,"result":[`, `{                },`, `{}]}`, 200, func(c *Client) error {
			_, err := c.BlockReceipts(t.Context(), invoice.Hash{1})
			return err
		}},
		"transactions": {`{"jsonrpc":"2.0","id":1,"result":{"transactions":[`, `{},`, `{}]}}`, 200, func(c *Client) error {
			_, err := c.BlockInputs(t.Context(), invoice.Hash{1})
			return err
		}},
	} {
		answer := test.before + strings.Repeat(test.value, text/len(test.value)) + test.after
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, answer) // the client may disconnect
		}))
		c, err := NewClient(ClientConfig{URL: node.URL})
		expect.OK(t, err)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		if err := test.ask(c); err == nil {
			t.Errorf("%s: no error", name)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 10*text {
			t.Errorf("%s: %d MiB of text took %d MiB and %s", name, text>>20, used>>20, time.Since(began))
		}
		expect.Equal(t, c.reading.Load(), 0, "%s: bytes are being read:", name)
		c.Close()
		node.Close()
	}
}

// TestNormalAnswers has answers with many short values or objects, which are all read.
func TestNormalAnswers(t *testing.T) {
	word := `"0x` + strings.Repeat("0", 64) + `"`
	address := `"0x` + strings.Repeat("0", 40) + `"`
	list := func(n int, value string) string { return "[" + strings.Repeat(value+",", n-1) + value + "]" }
	log := `{"address":` + address + `,"topics":[` + word + `],"data":"0x","blockNumber":"0x1","transactionHash":` + word +
		`,"transactionIndex":"0x0","blockHash":` + word + `,"logIndex":"0x0","removed":false}`
	transaction := `{"type":"0x2","chainId":"0x1","nonce":"0x0","gas":"0x0","gasPrice":"0x0","maxFeePerGas":"0x0","maxPriorityFeePerGas":"0x0",` +
		`"to":` + address + `,"value":"0x0","accessList":%s,"input":"0x","r":"0x0","s":"0x0","yParity":"0x0","v":"0x0","hash":` + word +
		`,"blockHash":` + word + `,"blockNumber":"0x1","transactionIndex":"0x0","from":` + address + `}`
	entry := `{"address":` + address + `,"storageKeys":[]}`
	for name, answer := range map[string]string{
		"transactions":  list(1000, fmt.Sprintf(transaction, "[]")),
		"access lists":  list(2, fmt.Sprintf(transaction, list(15_000, entry))),
		"hashes":        list(1000, word),
		"logs":          list(30_000, log),
		"receipts":      list(1000, `{"logs":`+list(30, log)+`}`),
		"withdrawals":   list(1600, `{"index":"0x0","validatorIndex":"0x0","address":`+address+`,"amount":"0x1"}`),
		"batch":         list(100, `{"jsonrpc":"2.0","id":1,"result":null}`),
		"rate limits":   list(100, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"data":{"rate":{"allowed_rps":1,"backoff_seconds":30,"current_rps":1},"see":"x"},"message":"x"}}`),
		"fee histories": list(100, `{"jsonrpc":"2.0","id":1,"result":{"gasUsedRatio":`+list(10, "0.5")+`,"reward":`+list(10, `["0x0"]`)+`}}`),
	} {
		if !strings.Contains(answer, "jsonrpc") {
			answer = `{"jsonrpc":"2.0","id":1,"result":` + answer + "}"
		}
		if _, err := io.ReadAll(&boundedBody{ReadCloser: io.NopCloser(strings.NewReader(answer)), left: MaxResponse}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFailoverOfTooManyAnswers has two nodes. So many answers of the first are being read that the second is called.
func TestFailoverOfTooManyAnswers(t *testing.T) {
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"0x5"}`)
	}))
	t.Cleanup(node.Close)
	conf := PoolConfig{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	for range 2 {
		c, err := NewClient(ClientConfig{URL: node.URL})
		expect.OK(t, err)
		t.Cleanup(c.Close)
		conf.Clients = append(conf.Clients, c)
	}
	pool := NewPool(conf)
	for _, node := range pool.Nodes() {
		node.setConfigured(nil)
	}
	full := conf.Clients[0]
	full.reading.Store(maxAnswers * full.conf.MaxAnswer)
	full.readingForRequests.Store(full.conf.MaxAnswer)
	var id string
	expect.OK(t, pool.Writer().CallContext(t.Context(), &id, "eth_call"))
	expect.OK(t, pool.Requests().CallContext(OnBehalfOf(ForRoute(t.Context(), "POST /x402/verify"), "acme"), &id, "eth_call"))
	if err := full.call(t.Context(), &id, "eth_call"); !errors.Is(err, errTooManyAnswers) {
		t.Errorf("the first node: %v, want %v", err, errTooManyAnswers)
	}
	for _, h := range pool.Health() {
		expect.Equal(t, h.FailingSince.IsZero(), true, "%s works:", h.Node)
	}
}

// TestAnswersAtATime has answers that are within the limit one by one, but not together.
func TestAnswersAtATime(t *testing.T) {
	c, err := NewClient(ClientConfig{URL: "http://node.example"})
	expect.OK(t, err)
	t.Cleanup(c.Close)
	for i, want := range []error{nil, nil, errTooManyAnswers} {
		x := &exchange{reading: &c.reading, most: 20}
		_, err := io.ReadAll(&boundedBody{ReadCloser: io.NopCloser(strings.NewReader(`"12345678"`)), left: 10, x: x})
		expect.Error(t, want, "answer %d", i)(err)
		if errors.Is(err, ErrResponseTooLarge) || isNodeFailure(err) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
}
