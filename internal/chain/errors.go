package chain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Codes of JSON-RPC errors: those of JSON-RPC 2.0 and EIP-1474, HTTP's within
// an answer, and that of the engine API for an unknown block.
const (
	codeReverted        = 3
	codeTooManyRequests = http.StatusTooManyRequests
	codeNotSupported    = -32004
	codeLimitExceeded   = -32005
	codeNoMethod        = -32601
	codeInternal        = -32603
	codeUnknownBlock    = -39001
)

// Error texts of nodes, in lower case. Codes and HTTP statuses differ between
// nodes and over time, so known texts decide.
var (
	// A smaller request would be answered.
	tooLargePattern = regexp.MustCompile(`block range|blocks range|range limit|limited to (a )?[\d,.]+|` +
		`ranges? (over|is too|exceeds)|range \d+ (is|exceeds)|(query|response|result) (returned|exceeds|size|set|is too)|` +
		`too many (results|logs|blocks)|logs? response size|logs matched|max(imum)? (block )?range|max results|` +
		`response (too large|size)|requested blocks|at most [\d,.]+ blocks|blocks distance|smaller than size|` +
		`(query|logs?) .*(timed out|timeout)|range between .* too large|is greater than the limit|` +
		`limit the query|exceeds the range|more than [\d,.]+ (results|logs|blocks)`)

	// The caller is rate limited.
	ratePattern = regexp.MustCompile(`rate.?limit|too many requests|request rate|requests? (count|limit)|(requests|units) per |` +
		`compute units?|throughput|(rps|cups) limit|quota|credits (limit|exceeded|exhausted)|out of credits|usage limit|` +
		`(daily|monthly) .*(limit|exceeded)|throttl|retry in \d|try again in`)

	// The node lacks the block.
	unknownBlockPattern = regexp.MustCompile(`(^|\W)(finalized |safe )?block( [\w: ]+)? not found|unknown block|` +
		`header (for hash )?not found|(cannot|could not) find block|missing block|block .*not available|resource not found`)

	// The node lacks the method.
	noMethodPattern = regexp.MustCompile(`method .*(not (found|supported|available|allowed|whitelisted|exist|implemented)|` +
		`unsupported|disabled)|unsupported method`)

	// A batch is longer than the node takes.
	batchPattern = regexp.MustCompile(`batch .*(too large|too big|limit|exceed|not allowed|maximum|more than)|` +
		`(too many|maximum|max).* batch|batch size`)

	// The node's own fault, whatever the request.
	nodeFaultPattern = regexp.MustCompile(`internal (server )?error|temporar|unavailable|upstream|backend|` +
		`timed? ?out|overloaded|unhealthy|handler crashed|gateway|not authenticated|unauthorized|api key|` +
		`project id|forbidden|no response|connection|syncing|please retry`)
)

// callError is a failed call, with its node and method.
type callError struct {
	node, method string
	redactor     *strings.Replacer // nil when the text is ours
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

// failure is what classify reads from a call's error.
type failure struct {
	method     string
	status     int    // of HTTP; 0 for none
	code       int    // of JSON-RPC
	rpcError   bool   // the node answered with a JSON-RPC error
	text       string // of the JSON-RPC error, in lower case
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
		f.status, f.text = page.StatusCode, normalize(string(page.Body))
	}
	var early *jsonRPCError
	if errors.As(err, &early) {
		f.status = early.status
	}
	var answer rpc.Error
	if !errors.As(err, &answer) {
		return f
	}
	f.rpcError, f.code, f.text = true, answer.ErrorCode(), normalize(answer.Error())
	var with rpc.DataError
	if errors.As(err, &with) && with.ErrorData() != nil {
		data := with.ErrorData()
		f.text += " " + normalize(fmt.Sprint(data))
		f.retryAfter = max(f.retryAfter, infuraBackoff(data))
	}
	return f
}

// normalize prepares a text for matching.
func normalize(words string) string {
	return strings.ToLower(words[:min(len(words), maxClassifiedText)])
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

// sizeDependsOnArgs reports whether a smaller request has a smaller answer.
func (f failure) sizeDependsOnArgs() bool {
	return f.method == getLogs || f.method == receiptsOfBlock
}

// tooLarge reports whether the node refused the request for its size.
func (f failure) tooLarge() bool {
	return f.sizeDependsOnArgs() && !f.rateLimited() &&
		(f.status == http.StatusRequestEntityTooLarge || f.code == codeLimitExceeded || tooLargePattern.MatchString(f.text))
}

// reverted reports whether a contract reverted the call, with whatever text.
func (f failure) reverted() bool {
	return f.code == codeReverted || strings.HasPrefix(f.text, "execution reverted")
}

func (f failure) rateLimited() bool {
	switch {
	case f.status == http.StatusTooManyRequests:
		return true
	case !f.rpcError || f.reverted():
		return false
	}
	return f.code == codeTooManyRequests || ratePattern.MatchString(f.text) ||
		f.code == codeLimitExceeded && !f.sizeDependsOnArgs()
}

func (f failure) unknownBlock() bool {
	return f.rpcError && !f.reverted() && (f.code == codeUnknownBlock || unknownBlockPattern.MatchString(f.text))
}

func (f failure) unsupported() bool {
	return f.rpcError && !f.reverted() &&
		(f.code == codeNoMethod || f.code == codeNotSupported || noMethodPattern.MatchString(f.text))
}

// nodeFault reports whether the node, not the request, is at fault.
func (f failure) nodeFault() bool {
	if !f.rpcError {
		return true
	}
	return f.status >= http.StatusInternalServerError || f.status == http.StatusUnauthorized || f.status == http.StatusForbidden ||
		!f.reverted() && (f.code == codeInternal || nodeFaultPattern.MatchString(f.text))
}

// withSentinel wraps the sentinel error that the node's text means, if any.
func (e *callError) withSentinel() *callError {
	f := classify(e)
	switch {
	case f.rateLimited(), f.tooLarge():
	case f.unknownBlock():
		e.err = fmt.Errorf("%w: %w", ErrNotFound, e.err)
	case f.unsupported():
		e.err = fmt.Errorf("%w: %w", ErrUnsupported, e.err)
	}
	return e
}

// IsTooLarge reports whether a node refused a request for logs and may answer a
// smaller one. Every refusal counts that is not known to have another reason, since
// texts change and a smaller request does no harm. A timeout counts as well.
func IsTooLarge(err error) bool {
	f := classify(err)
	switch {
	case errors.Is(err, ErrResponseTooLarge), f.tooLarge():
		return true
	case !f.sizeDependsOnArgs():
		return false
	}
	return errors.Is(err, ErrTimeout) || f.rpcError && !f.rateLimited() && !f.unknownBlock() && !f.unsupported()
}

// Block ranges that nodes suggest: [0x…, 0x…], and reth's first-last.
var (
	hexRange     = regexp.MustCompile(`\[0x([0-9a-f]{1,16}), ?0x([0-9a-f]{1,16})\]`)
	decimalRange = regexp.MustCompile(`range (\d{1,19})-(\d{1,19})`)
)

// SuggestedRange returns the block range that a node suggested when it refused a
// larger one. ok is false when it suggested none.
func SuggestedRange(err error) (from, to uint64, ok bool) {
	f := classify(err)
	if !f.rpcError {
		return 0, 0, false
	}
	found, base := hexRange.FindStringSubmatch(f.text), 16
	if found == nil {
		found, base = decimalRange.FindStringSubmatch(f.text), 10
	}
	if found == nil {
		return 0, 0, false
	}
	from, fromErr := strconv.ParseUint(found[1], base, 64)
	to, toErr := strconv.ParseUint(found[2], base, 64)
	return from, to, fromErr == nil && toErr == nil && from <= to
}

// IsRateLimit reports whether a node rate limited the caller, and the backoff that
// it asked for, or 0.
func IsRateLimit(err error) (retryAfter time.Duration, ok bool) {
	f := classify(err)
	if !f.rateLimited() {
		return 0, false
	}
	return f.retryAfter, true
}

// isBatchTooLarge reports whether a node refused a batch for its size.
func isBatchTooLarge(err error) bool {
	f := classify(err)
	return f.status == http.StatusRequestEntityTooLarge || f.rpcError && batchPattern.MatchString(f.text)
}

// isCallerDone reports whether a call ended with its caller's context.
func isCallerDone(err error) bool {
	return !errors.Is(err, ErrTimeout) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// minSecretLen is the shortest part of a URL that is redacted, in bytes.
const minSecretLen = 6

// redactorOf returns a replacer that removes the parts of a URL that may hold an
// access key: error pages often repeat the path.
func redactorOf(u *url.URL) *strings.Replacer {
	parts := strings.Split(u.Path, "/")
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	if password, ok := u.User.Password(); ok {
		parts = append(parts, password)
	}
	var pairs []string
	for _, part := range parts {
		if len(part) >= minSecretLen {
			pairs = append(pairs, part, "…", url.QueryEscape(part), "…", url.PathEscape(part), "…")
		}
	}
	return strings.NewReplacer(pairs...)
}

// websocketTooLong is the WebSocket library's error for an answer longer than
// MaxAnswer.
const websocketTooLong = "websocket: read limit exceeded"

// sanitize returns an error that can be logged: without the URL, which may hold an
// access key, and with HTTP error pages truncated.
func sanitize(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return withURL.Err
	}
	if err.Error() == websocketTooLong {
		return ErrResponseTooLarge
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
