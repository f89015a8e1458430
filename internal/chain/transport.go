package chain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
)

// maxErrorBody is how much is read of an error that is returned instead of a batch's answers, in bytes.
const maxErrorBody = 64 << 10

// exchange passes data between a call and its HTTP transport, through the request's context.
type exchange struct {
	batch      bool          // the request is a batch
	forLogs    bool          // the request only asks for logs
	logs       []types.Log   // decoded by the transport, if forLogs; otherwise they are in the answer
	retryAfter time.Duration // requested by the node
	read       int64         // bytes of the answer
	reading    *atomic.Int64 // bytes of all answers of the node that are being read for this kind of caller
	most       int64         // upper bound of reading
}

type exchangeKey struct{}

// transport is the HTTP transport of a client. It bounds each answer, and all answers that are read at a time, so that
// no node can exhaust the memory; see boundedBody. It records Retry-After, and keeps an error that is returned instead
// of a batch's answers readable. It decodes logs itself, because go-ethereum's client reads each answer three times. A
// redirect is an ErrRedirected.
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
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: t.max, x: x}
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

// Limits of the memory that answers take when they are decoded.
const (
	// minValueBytes is how long a JSON value in an answer must be on average. Values of two bytes, such as {}, take 50
	// times as much memory as text. Headers, receipts and logs have 25 bytes and more a value.
	minValueBytes = 16
	// errorWeight is how many such lengths a value outside of a result must have. go-ethereum's client reads the data
	// of an error as maps, each of which takes 340 bytes.
	errorWeight = 4
	// maxShortValues is how many shorter values an answer may have, such as a batch of nulls.
	maxShortValues = 4096
	// maxAnswers is how many answers of full length may be read from a node at a time, except for requests, which share
	// one.
	maxAnswers = 3
)

var (
	// errTooManyValues is the error of an answer with shorter values than allowed. It is a failure of the node.
	errTooManyValues = errors.New("the node's answer has too many values for its length")
	// errTooManyAnswers is the error of an answer beyond maxAnswers. It is no failure of the node, and does not mean
	// that this answer is too long.
	errTooManyAnswers = errors.New("too many long answers of the node are read at a time")
)

// boundedBody fails an answer beyond one of the limits, so that a truncated answer is not mistaken for a complete one.
type boundedBody struct {
	io.ReadCloser
	left, read, values        int64
	inText, escaped, inResult bool
	depth, outer              int       // of open brackets; of those around an answer: 1 in a batch
	name                      []byte    // of the last member of an answer, cut
	x                         *exchange // nil outside of Client.do
	err                       error     // that ended it
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	// One byte more than allowed distinguishes an answer of exactly that length from a longer one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.count(p[:n])
	b.left, b.read = b.left-int64(n), b.read+int64(n)
	switch {
	case b.left < 0:
		b.err = ErrResponseTooLarge
	case !b.x.take(int64(n)):
		b.err = errTooManyAnswers
	case b.values > maxShortValues+b.read/minValueBytes:
		b.err = errTooManyValues
	default:
		return n, err
	}
	return max(0, n-1), b.err
}

// count counts the values in a part of the answer: each follows a comma or an opening bracket.
func (b *boundedBody) count(part []byte) {
	for _, c := range part {
		switch {
		case b.escaped:
			b.escaped = false
		case c == '"':
			b.inText = !b.inText
		case !b.inText:
			b.punctuate(c)
		default:
			if b.escaped = c == '\\'; b.depth == b.outer+1 && len(b.name) <= len("result") {
				b.name = append(b.name, c)
			}
		}
	}
}

// punctuate counts a value that follows c, which is outside of texts.
func (b *boundedBody) punctuate(c byte) {
	switch c {
	case ':':
		if b.depth == b.outer+1 {
			b.inResult = string(b.name) == "result"
		}
	case ']', '}':
		b.depth--
	case ',', '[', '{':
		if b.values++; b.depth > b.outer && !b.inResult {
			b.values += errorWeight - 1
		}
		if b.depth == 0 && c == '[' {
			b.outer = 1
		}
		if b.name = b.name[:0]; c != ',' {
			b.depth++
		}
	}
}

// take adds n bytes to those that are being read, and reports whether they are within the limit.
func (x *exchange) take(n int64) bool {
	if x == nil {
		return true
	}
	x.read += n
	return x.reading.Add(n) <= x.most
}
