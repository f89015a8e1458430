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

// maxErrorBody is how much is read of an error that is returned instead of a batch's answers, in bytes.
const maxErrorBody = 64 << 10

// exchange passes data between a call and its HTTP transport, through the
// request's context.
type exchange struct {
	batch      bool          // the request is a batch
	forLogs    bool          // the request only asks for logs
	logs       []types.Log   // decoded by the transport, if forLogs; otherwise they are in the answer
	retryAfter time.Duration // requested by the node
}

type exchangeKey struct{}

// transport is the HTTP transport of a client. It fails answers of more than max bytes, so that no node can exhaust the
// memory. It records Retry-After, and keeps an error that is returned instead of a batch's answers readable. It decodes
// logs itself, because go-ethereum's client reads each answer three times. A redirect is an ErrRedirected.
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

// takeLogs decodes an answer with logs, and returns the body for go-ethereum's client: an empty result, or the answer
// if it does not hold logs.
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

// closing closes the body of an answer that ends with err.
func closing(body io.Closer, err error) error {
	if closeErr := body.Close(); closeErr != nil {
		return fmt.Errorf("%w (and closing the answer: %w)", err, closeErr)
	}
	return err
}

// batchError returns the error that a node sent instead of a batch's answers. If the answer is a list, it returns nil
// and does not consume the body.
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

// jsonRPCError is a JSON-RPC error with an HTTP error status, or one in place of a batch's answers.
type jsonRPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
	status  int
}

// parseRPCError parses a JSON-RPC error. It returns nil if body is not one.
func parseRPCError(body []byte) *jsonRPCError {
	var answer struct {
		Error *jsonRPCError `json:"error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		return nil //nolint:nilerr // an HTML page is not a JSON-RPC error
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

// retryAfter parses the header of RFC 9110, section 10.2.3: a number of seconds or a date. It returns 0 if the header
// is missing or invalid.
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

// limitedBody is like io.LimitedReader, but exceeding the limit is an error, so that a truncated answer is not mistaken
// for a complete one.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrResponseTooLarge
	}
	// One byte more than allowed distinguishes an answer of exactly that length from a longer one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, ErrResponseTooLarge
	}
	return n, err
}
