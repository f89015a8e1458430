package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Error codes: the codes of JSON-RPC 2.0 and EIP-1474, HTTP status codes within an answer, and the engine API's code
// for an unknown block.
const (
	codeReverted        = 3
	codeTooManyRequests = http.StatusTooManyRequests
	codeNotSupported    = -32004
	codeLimitExceeded   = -32005
	codeNoMethod        = -32601
	codeInternal        = -32603
	codeUnknownBlock    = -39001
)

// callError is a failed call, with its node and method.
type callError struct {
	node, method string
	redactor     *strings.Replacer // nil if the text is ours
	retryAfter   time.Duration
	err          error
}

func (e *callError) Error() string {
	words := e.err.Error()
	if e.redactor != nil {
		words = e.redactor.Replace(words)
	}
	return e.node + ": " + e.method + ": " + truncate(words)
}

// truncate cuts a text to maxErrorText.
func truncate(words string) string {
	if len(words) <= maxErrorText {
		return words
	}
	return strings.ToValidUTF8(words[:maxErrorText], "") + "…"
}

func (e *callError) Unwrap() error { return e.err }

// failure is what classify reads from a call's error. It ignores the node's error text, which differs between nodes and
// changes.
type failure struct {
	method     string
	status     int  // of HTTP; 0 if there is no status
	code       int  // of JSON-RPC
	rpcError   bool // the node answered with a JSON-RPC error
	retryAfter time.Duration
}

func classify(err error) failure {
	var f failure
	var call *callError
	if errors.As(err, &call) {
		f.method, f.retryAfter = call.method, call.retryAfter
	}
	var page rpc.HTTPError
	if errors.As(err, &page) {
		f.status = page.StatusCode
	}
	var early *jsonRPCError
	if errors.As(err, &early) {
		f.status = early.status
	}
	var answer rpc.Error
	if !errors.As(err, &answer) {
		return f
	}
	f.rpcError, f.code = true, answer.ErrorCode()
	var with rpc.DataError
	if errors.As(err, &with) && with.ErrorData() != nil {
		f.retryAfter = max(f.retryAfter, infuraBackoff(with.ErrorData()))
	}
	return f
}

// infuraBackoff returns the backoff in the data of Infura's rate limit errors, or 0.
func infuraBackoff(data any) time.Duration {
	members, _ := data.(map[string]any)
	rate, _ := members["rate"].(map[string]any)
	seconds, _ := rate["backoff_seconds"].(float64)
	if !(seconds > 0 && seconds < MaxRetryAfter.Seconds()) {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// mayBeRefused are the methods with JSON-RPC errors that may be about the request: the call would revert, the
// transaction is not valid, or the node does not offer the method, which is optional. An error of any other method is a
// failure of the node, because its request gives no reason to refuse it.
var mayBeRefused = map[string]bool{
	"eth_call": true, "eth_estimateGas": true, broadcast: true,
	"eth_feeHistory": true, "eth_maxPriorityFeePerGas": true, receiptsOfBlock: true,
}

// rateLimited reports whether the node refused the call because of the caller's rate, with a code that has no other
// meaning.
func (f failure) rateLimited() bool {
	return f.status == http.StatusTooManyRequests || f.rpcError && (f.code == codeTooManyRequests || f.code == codeLimitExceeded)
}

func (f failure) unknownBlock() bool { return f.rpcError && f.code == codeUnknownBlock }

func (f failure) unsupported() bool {
	return f.rpcError && mayBeRefused[f.method] && (f.code == codeNoMethod || f.code == codeNotSupported)
}

// nodeFault reports whether the node, not the request, is at fault.
func (f failure) nodeFault() bool {
	return !f.rpcError || !mayBeRefused[f.method] || f.rateLimited() || f.code == codeInternal ||
		f.status >= http.StatusInternalServerError || f.status == http.StatusUnauthorized || f.status == http.StatusForbidden
}

// withSentinel wraps the sentinel error for the node's code, if there is one.
func (e *callError) withSentinel() *callError {
	f := classify(e)
	switch {
	case f.unknownBlock():
		e.err = fmt.Errorf("%w: %w", ErrNotFound, e.err)
	case f.unsupported():
		e.err = fmt.Errorf("%w: %w", ErrUnsupported, e.err)
	}
	return e
}

// IsRefusal reports whether a node failed a request in a way after which a smaller request, or another request for the
// same data, may succeed. A contradiction is not a refusal, and neither is the end of the caller's context.
func IsRefusal(err error) bool {
	var call *callError
	return errors.As(err, &call) && !isCallerDone(err)
}

// IsRateLimit reports whether a node's code means that it was called too often, and returns the backoff that the node
// asked for, or 0.
func IsRateLimit(err error) (retryAfter time.Duration, ok bool) {
	f := classify(err)
	return f.retryAfter, f.rateLimited()
}

// IsErrorAnswer reports whether a node answered a request with an error, by JSON-RPC or HTTP, other than that it was
// called too often.
func IsErrorAnswer(err error) bool {
	f := classify(err)
	return (f.rpcError || f.status != 0) && !f.rateLimited() && f.retryAfter == 0 && IsRefusal(err) && !errors.Is(err, ErrTimeout)
}

// IsClientError reports whether a node refused a request with an HTTP status from 400 to 499, other than that it was
// called too often. It then did not carry out the request.
func IsClientError(err error) bool {
	f := classify(err)
	return f.status/100 == 4 && !f.rateLimited() && f.retryAfter == 0
}

// IsRevert reports whether a node's code means that a call would be reverted. Not all nodes have such a code.
func IsRevert(err error) bool {
	f := classify(err)
	return f.rpcError && f.code == codeReverted
}

// isCallerDone reports whether a call ended because its caller's context ended.
func isCallerDone(err error) bool {
	return !errors.Is(err, ErrTimeout) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// minSecretLen is the shortest part of a URL that is redacted, in bytes.
const minSecretLen = 6

// redactorOf returns a replacer that removes the values of headers and the parts of a URL that may contain an access
// key, because error pages often repeat the path.
func redactorOf(u *url.URL, headers http.Header) *strings.Replacer {
	parts := strings.Split(u.Path, "/")
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	if password, ok := u.User.Password(); ok {
		parts = append(parts, password)
	}
	for _, values := range headers {
		for _, value := range values {
			parts = append(append(parts, value), strings.Fields(value)...)
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) }) // the first match is replaced
	var pairs []string
	for _, part := range parts {
		if len(part) >= minSecretLen {
			pairs = append(pairs, part, "…", url.QueryEscape(part), "…", url.PathEscape(part), "…")
		}
	}
	return strings.NewReplacer(pairs...)
}

// sanitize returns an error that can be logged: without the URL, which may contain an access key, and with HTTP error
// pages truncated.
func sanitize(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	var withBody rpc.HTTPError
	if errors.As(err, &withBody) {
		if answer := parseRPCError(withBody.Body); answer != nil {
			answer.status = withBody.StatusCode
			return answer
		}
		withBody.Body = []byte(truncate(string(withBody.Body)))
		return withBody
	}
	return err
}
