package server

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"

	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/access"
)

// requestIDHeader is the header of a request's id, in requests of trusted proxies and in
// all responses.
const requestIDHeader = "X-Request-Id"

// prefixRequest begins the ids that the service makes.
const prefixRequest = "req_"

// requestIDPattern is the form of a request id that a proxy may give.
var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.:-]{7,63}$`)

// requestID returns the id that a trusted proxy gave the request. It returns a new one if
// the header is missing, repeated or not of that form.
func requestID(r *http.Request, trusted bool, newID func() string) string {
	if given := r.Header.Values(requestIDHeader); trusted && len(given) == 1 && requestIDPattern.MatchString(given[0]) {
		return given[0]
	}
	return newID()
}

// addRequest adds the id of the request to a log line, and the id of the trace if it is recorded.
func addRequest(ctx context.Context, r slog.Record) (_ slog.Record, keep bool) {
	if id := access.OriginFrom(ctx).RequestID; id != "" {
		r = r.Clone()
		r.AddAttrs(slog.String("request_id", id))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()))
	}
	return r, true
}
