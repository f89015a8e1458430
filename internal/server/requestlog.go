package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/web/api"
)

// requestRecord is what the handlers of a request add to its log line.
type requestRecord struct {
	keyID string
	// owner is the owner of the request's key, if the request is one of the API.
	owner *access.Principal
	// problem is the problem that refused the request, if any.
	problem apitypes.Problem
	// refusedBy is the limit that refused the request's key, if any.
	refusedBy string
}

type requestRecordKey struct{}

// observeRequests returns a handler that gives each request an id, and that logs and
// measures it. next must not pass a copy of the request to ServeMux, which sets its
// Pattern.
func (s *Server) observeRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun := time.Now() // a duration needs the monotonic clock
		addr, trusted := s.cfg.Proxies.Client(r), s.cfg.Proxies.Trust(r)
		client := addr.String()
		id := requestID(r, trusted, s.newRequestID)
		record := &requestRecord{}
		ctx := access.WithOrigin(limits.NewContext(r.Context(), addr), access.Origin{Client: client, RequestID: id})
		if s.cfg.Proxies.Secure(r) {
			ctx = limits.WithSecure(ctx)
		}
		if len(s.cfg.Proxies.Trusted) > 0 {
			ctx = limits.WithProxied(ctx)
		}
		ctx, span := s.startRequestSpan(ctx, r, trusted)
		r = r.WithContext(context.WithValue(ctx, requestRecordKey{}, record))
		r.Method = knownMethod(r.Method)
		w.Header().Set(requestIDHeader, id)
		response := &responseRecorder{ResponseWriter: w, status: http.StatusOK}
		defer func() {
			took := time.Since(begun)
			_, route, found := strings.Cut(r.Pattern, " ")
			if !found {
				route = r.Pattern
			}
			line := requestLine{
				method: r.Method, route: route, status: response.status,
				bytes: response.bytes, client: client, keyID: record.keyID, id: id, took: took,
			}
			s.metrics.duration.WithLabelValues(route, strconv.Itoa(line.status)).Observe(took.Seconds())
			if record.refusedBy != "" {
				s.refused.add(refusal{record.refusedBy, client})
			} else {
				s.logRequest(r.Context(), line)
				s.keepRequest(r, line, record)
			}
			endRequestSpan(span, line)
		}()
		next.ServeHTTP(response, r)
	})
}

// otherMethod takes the place of a method that no route has.
const otherMethod = "OTHER"

// knownMethod returns the method of a request, or otherMethod: a client may send any word,
// also a secret, and methods are logged.
func knownMethod(method string) string {
	if method == http.MethodOptions || slices.Contains(methods, method) {
		return method
	}
	return otherMethod
}

// newRequestID returns a new request id.
func (s *Server) newRequestID() string { return s.ids.New(prefixRequest) }

// requestLine is the part of a request that the log and the trace get. It has no part of the query,
// the headers and the bodies, which may hold secrets.
type requestLine struct {
	method, route string
	status        int
	bytes         int64 // of the response's body
	client        string
	keyID         string // empty without a key
	id            string
	took          time.Duration
}

// isMonitoring reports whether requests for a path, or of a route, come from monitoring.
func (s *Server) isMonitoring(path string) bool {
	return s.byPattern[http.MethodGet+" "+path].Monitoring
}

// logRequest logs a request, at debug level if it comes from monitoring.
func (s *Server) logRequest(ctx context.Context, line requestLine) {
	level := slog.LevelInfo
	if s.isMonitoring(line.route) {
		level = slog.LevelDebug
	}
	if !s.cfg.Logger.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", line.method), slog.String("route", line.route), slog.Int("status", line.status),
		slog.Duration("took", line.took), slog.Int64("bytes", line.bytes), slog.String("client", line.client),
	}
	if line.keyID != "" {
		attrs = append(attrs, slog.String("key", line.keyID))
	}
	s.cfg.Logger.LogAttrs(ctx, level, "request", attrs...)
}

// keepRequest adds a request of the API to the log that its owner reads.
func (s *Server) keepRequest(r *http.Request, line requestLine, record *requestRecord) {
	if record.owner == nil || s.requests == nil {
		return
	}
	e := access.LoggedRequest{
		MerchantID: record.owner.MerchantID, KeyID: line.keyID, At: s.cfg.Now().Add(-line.took), Method: line.method, Route: line.route, Path: r.URL.EscapedPath(),
		Status: line.status, Code: string(record.problem.Code), Detail: record.problem.Detail, Duration: line.took, Client: line.client, RequestID: line.id,
	}
	if s.byPattern[r.Pattern].Idempotent {
		given := r.Header.Get(api.HeaderIdempotencyKey) != ""
		e.Idempotent = &given
	}
	s.requests.Add(e)
}

// recordProblem notes the problem that refused a request.
func recordProblem(ctx context.Context, p apitypes.Problem) {
	if record, ok := ctx.Value(requestRecordKey{}).(*requestRecord); ok {
		record.problem = p
	}
}

// recordOwner returns a handler that notes the owner of the request's key.
func recordOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if record, ok := r.Context().Value(requestRecordKey{}).(*requestRecord); ok {
			by := access.FromContext(r.Context())
			record.owner = &by
		}
		next.ServeHTTP(w, r)
	})
}

// recordKey returns a handler that notes the key of the request's principal for the log.
func recordKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if record, ok := r.Context().Value(requestRecordKey{}).(*requestRecord); ok {
			record.keyID = access.FromContext(r.Context()).KeyID
		}
		next.ServeHTTP(w, r)
	})
}

// responseRecorder records the status and the length of a response.
type responseRecorder struct {
	http.ResponseWriter
	status int
	bytes  int64 // of the body
}

// WriteHeader implements http.ResponseWriter.
func (w *responseRecorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *responseRecorder) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (w *responseRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
