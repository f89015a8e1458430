package webhooks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quittance/quittance/internal/access"
)

// Limits of the headers of an endpoint.
const (
	// MaxHeaders is the maximum number of custom headers of an endpoint.
	MaxHeaders = 10
	// MaxHeaderName and MaxHeaderValue are the lengths of the longest name and value, in bytes.
	MaxHeaderName  = 64
	MaxHeaderValue = 1000
)

// ownHeaders are the headers that the service sets, and the headers of the connection (RFC 9110, section 7.6.1), in
// lower case.
var ownHeaders = []string{
	"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "date", "expect", "host", "keep-alive", "te", "trailer",
	"traceparent", "tracestate", "transfer-encoding", "upgrade", "user-agent",
}

// ownPrefixes begin the names of other headers of the service and of proxies, in lower case.
var ownPrefixes = []string{"x-service-", "webhook-", "quittance-", "proxy-"}

// HeaderError is the reason why a header is refused. It does not contain the value.
type HeaderError struct {
	Index  int // index of the header; -1 for the list
	Detail string
}

// Error returns the reason.
func (e *HeaderError) Error() string { return e.Detail }

// CheckHeaders returns a *HeaderError if an endpoint cannot have the headers.
func CheckHeaders(headers []access.WebhookHeader) error {
	if len(headers) > MaxHeaders {
		return &HeaderError{-1, fmt.Sprintf("must be at most %d; there are %d", MaxHeaders, len(headers))}
	}
	var seen []string
	for i, h := range headers {
		name := strings.ToLower(h.Name)
		problem := ""
		switch {
		case h.Name == "" || len(h.Name) > MaxHeaderName || strings.ContainsFunc(h.Name, notInToken):
			problem = fmt.Sprintf("must have a name of 1 to %d letters, digits and hyphens; it has %.80q", MaxHeaderName, h.Name)
		case slices.Contains(ownHeaders, name) || slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }):
			problem = "must not be " + h.Name + ", which the service or the connection sets"
		case slices.Contains(seen, name):
			problem = h.Name + " is given twice"
		case h.Value == "" || len(h.Value) > MaxHeaderValue || strings.TrimSpace(h.Value) != h.Value || strings.ContainsFunc(h.Value, notVisible):
			problem = fmt.Sprintf("%s must have a value of 1 to %d visible ASCII characters, and blanks between them alone", h.Name, MaxHeaderValue)
		}
		if problem != "" {
			return &HeaderError{i, problem}
		}
		seen = append(seen, name)
	}
	return nil
}

// notInToken reports whether a character is forbidden in names of headers. RFC 9110 allows more characters, but servers
// treat them differently.
func notInToken(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
}

// notVisible reports whether a character is forbidden in values of headers.
func notVisible(c rune) bool { return c < ' ' || c > '~' }
