package chain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// maxErrorBody is how much is read of an error that replaces a batch's answers, in
// bytes.
const maxErrorBody = 64 << 10

// exchange passes data between a call and its HTTP transport, through the
// request's context.
type exchange struct {
	batch      bool          // asks several questions
	forLogs    bool          // asks for logs, and nothing else
	logs       []types.Log   // decoded on the way, if forLogs; else they are in the answer
	retryAfter time.Duration // that the node asked for
}

type exchangeKey struct{}

// transport is the HTTP transport of a client. It fails answers of more than max
// bytes, so that no node can exhaust the memory, records Retry-After, keeps an error
// that replaces a batch's answers readable, and decodes logs itself, because
// go-ethereum's client reads each answer three times. A redirect is an
// ErrRedirected.
type transport struct {
	http.RoundTripper
	max int64
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if to := redirect(resp); to != "" {
		return nil, closing(resp.Body, fmt.Errorf("%w: it answered %d with %s", ErrRedirected, resp.StatusCode, to))
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, left: t.max}
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return resp, nil
	}
	x.retryAfter = retryAfter(resp.Header, time.Now())
	if resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	body := bufio.NewReader(resp.Body)
	replaced := struct {
		io.Reader
		io.Closer
	}{body, resp.Body}
	switch {
	case x.batch:
		err = batchError(body)
	case x.forLogs:
		replaced.Reader, err = x.takeLogs(body, resp.ContentLength)
	}
	if err != nil {
		return nil, closing(resp.Body, err)
	}
	resp.Body = replaced
	return resp, nil
}

// redirect returns the scheme and host that an answer redirects to, or "".
func redirect(resp *http.Response) string {
	if resp.StatusCode < 300 || resp.StatusCode > 399 {
		return ""
	}
	to, err := resp.Location()
	if err != nil {
		return "no address"
	}
	return (&url.URL{Scheme: to.Scheme, Host: to.Host}).String()
}

// takeLogs decodes an answer of logs, and returns the body that go-ethereum's client
// reads instead: an empty result, or the answer if it is something else.
func (x *exchange) takeLogs(body io.Reader, length int64) (io.Reader, error) {
	var read bytes.Buffer
	read.Grow(int(min(max(length, 0), MaxResponse)) + bytes.MinRead)
	if _, err := read.ReadFrom(body); err != nil {
		return nil, err
	}
	logs, ok := parseAnswer(read.Bytes())
	if !ok {
		return &read, nil
	}
	x.logs = logs
	return strings.NewReader(`{"jsonrpc":"2.0","id":0,"result":null}`), nil
}

// closing closes the body of an answer that ends in err.
func closing(body io.Closer, err error) error {
	if closeErr := body.Close(); closeErr != nil {
		return fmt.Errorf("%w (and closing the answer: %w)", err, closeErr)
	}
	return err
}

// batchError returns the error that replaces a batch's answers. It is nil, and the
// body is not consumed, when the answer is a list.
func batchError(body *bufio.Reader) error {
	first, err := body.Peek(1)
	if err != nil || first[0] != '{' {
		return nil //nolint:nilerr // the next read returns the error
	}
	read, err := io.ReadAll(io.LimitReader(body, maxErrorBody))
	if err != nil {
		return err
	}
	if refusal := parseRPCError(read); refusal != nil {
		return refusal
	}
	return fmt.Errorf("a batch was answered with something other than a list: %s", read)
}

// jsonRPCError is a JSON-RPC error with an HTTP error status, or that replaces the
// answers of a batch.
type jsonRPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
	status  int
}

// parseRPCError reads a JSON-RPC error. It is nil when body is something else.
func parseRPCError(body []byte) *jsonRPCError {
	var answer struct {
		Error *jsonRPCError `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		return nil //nolint:nilerr // a page of HTML is no JSON-RPC error
	}
	return answer.Error
}

func (e *jsonRPCError) Error() string {
	if e.status != 0 {
		return fmt.Sprintf("HTTP %d: %s", e.status, e.Message)
	}
	return e.Message
}

// ErrorCode and ErrorData make it an rpc.Error and rpc.DataError.
func (e *jsonRPCError) ErrorCode() int { return e.Code }
func (e *jsonRPCError) ErrorData() any { return e.Data }

// retryAfter reads the header of RFC 9110, section 10.2.3: a number of seconds
// or a date. It is 0 without a readable header.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// limitedBody is an io.LimitedReader whose limit is an error, so that a truncated
// answer is not taken for a short one.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrResponseTooLarge
	}
	// One byte more than allowed distinguishes an answer of that length from a longer
	// one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrResponseTooLarge
	}
	return n, err
}
