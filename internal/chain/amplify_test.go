package chain

import (
	"errors"
	"io"
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

// TestAmplification has a node answer many short values. The memory stays below ten times the text, and each call fails.
func TestAmplification(t *testing.T) {
	const text = 8 << 20
	call := func(c *Client) error { return c.call(t.Context(), new(any), "eth_call") }
	for name, test := range map[string]struct {
		before, value, after string
		status               int
		ask                  func(*Client) error
	}{
		"data of an error":         {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `[],`, `0]}}`, 200, call},
		"data, text and bare ones": {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `"\",[",{},`, `0]}}`, 200, call},
		"error page":               {`{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":[`, `[],`, `0]}}`, 500, call},
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
