package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/quittance/quittance/apitypes"
)

// Error is an error response. Find it with [errors.As].
type Error struct {
	// Problem has the Status, the Code, which is empty if a proxy answered, the invalid
	// Field with [apitypes.CodeInvalidField], a Detail for people, and the RequestID to
	// quote to the operator of the service.
	apitypes.Problem
	// RetryAfter is the time to wait before a retry, or 0 if the service did not say.
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
	if err := json.Unmarshal(text, &e.Problem); err != nil { // not a response of the service
		e.Problem = apitypes.Problem{Title: http.StatusText(response.StatusCode)}
	}
	e.Status = response.StatusCode
	if e.RequestID == "" {
		e.RequestID = response.Header.Get("X-Request-Id")
	}
	e.RetryAfter = retryAfter(response.Header.Get("Retry-After"), now)
	return e
}

// retryAfter returns the time of a Retry-After header (RFC 9110, section 10.2.3), a
// number of seconds or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
