package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// CallError is the error of a call. Find it, and the error that it wraps, with [errors.As]: an [*Error], a
// [*ConnectionError] or an [*InvalidResponseError]. If the call or an attempt took too long, errors.Is(err,
// context.DeadlineExceeded) is true.
//
// After any error except an *Error, the service may have carried out a write.
type CallError struct {
	Method   string
	Path     string // of the URL, without its query
	Attempts int    // number of attempts made
	Err      error
}

// Error returns the method, the path, the cause and, if there were several, the number of attempts.
func (e *CallError) Error() string {
	text := fmt.Sprintf("client: %s %s: %s", e.Method, e.Path, strings.TrimPrefix(e.Err.Error(), "client: "))
	if e.Attempts > 1 {
		text += fmt.Sprintf(" (%d attempts)", e.Attempts)
	}
	return text
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// failed returns the error of a request after n attempts.
func failed(r request, n int, err error) error {
	return &CallError{Method: r.method, Path: r.path(), Attempts: n, Err: err}
}

// ConnectionError means that there was no complete response.
type ConnectionError struct {
	Err error
	// Unsent is set if no part of the request reached the service, because there was no connection.
	Unsent bool
}

// broken returns the error of a connection, without the URL that package net/http adds.
func broken(err error) error {
	cause := err
	if withURL := (*url.Error)(nil); errors.As(err, &withURL) {
		cause = withURL.Err
	}
	return &ConnectionError{Err: cause, Unsent: unsent(err)}
}

// Error returns why there was no complete response.
func (e *ConnectionError) Error() string { return "client: no complete response: " + e.Err.Error() }

// Unwrap returns why there was no complete response.
func (e *ConnectionError) Unwrap() error { return e.Err }

// InvalidResponseError is a success that the service would not send, such as a proxy's page.
type InvalidResponseError struct {
	Status    int
	RequestID string // if the response has one
	Reason    string // what is wrong with the response
	final     bool   // another attempt would get the same response
}

// Error returns the status and the reason.
func (e *InvalidResponseError) Error() string {
	return fmt.Sprintf("client: answered %d, but not as the service does: %s", e.Status, e.Reason)
}

// invalid returns the error for a response that the service cannot have sent.
func invalid(response *http.Response, reason string) *InvalidResponseError {
	return &InvalidResponseError{Status: response.StatusCode, RequestID: response.Header.Get("X-Request-Id"), Reason: reason}
}

// Error is an error response. Find it with [errors.As].
type Error struct {
	// Problem has the Status, the Code, which is empty if a proxy answered, the invalid Field with
	// [apitypes.CodeInvalidField], a Detail for people, the RequestID to give to the operator of the service, and
	// additions for some codes: the InvoiceID that has the reference with [apitypes.CodeReferenceTaken], the ApprovalID
	// with [apitypes.CodeApprovalRequired], or the Reason.
	apitypes.Problem
	// RetryAfter is the time to wait before a retry, or 0 if the service did not send one.
	RetryAfter time.Duration
}

// Error returns the status, the code and the detail.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("client: answered %d %s", e.Status, e.Title)
	}
	return fmt.Sprintf("client: answered %d %s: %s", e.Status, e.Code, e.Detail)
}

func parseError(response *http.Response, text []byte, now time.Time) error {
	e := new(Error)
	if err := json.Unmarshal(text, &e.Problem); err != nil || e.Code == "" { // not a response of the service
		e.Problem = apitypes.Problem{Title: http.StatusText(response.StatusCode)}
	}
	e.Status = response.StatusCode
	if e.RequestID == "" {
		e.RequestID = response.Header.Get("X-Request-Id")
	}
	e.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now)
	return e
}

// retryAfter parses a Retry-After header (RFC 9110, section 10.2.3), a number of seconds or a date. It limits the
// result to 2^31-1 seconds, and returns 0 for invalid text.
func retryAfter(text string, now time.Time) time.Duration {
	n, err := strconv.ParseUint(text, 10, 31)
	if errors.Is(err, strconv.ErrRange) { // a number that is too large
		n, err = math.MaxInt32, nil
	}
	if err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
