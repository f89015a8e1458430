package server

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/tracing"
)

// startRequestSpan starts the span of a request. It continues the trace of a trusted proxy (W3C Trace
// Context). Headers from others are ignored, because anybody could have every request recorded.
// Requests from monitoring have no span.
func (s *Server) startRequestSpan(ctx context.Context, r *http.Request, trusted bool) (context.Context, trace.Span) {
	if s.cfg.Tracer == nil || s.isMonitoring(r.URL.Path) {
		return ctx, trace.SpanFromContext(context.Background())
	}
	if trusted {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header))
	}
	return tracing.Start(tracing.WithTracer(ctx, s.cfg.Tracer), "request", trace.SpanKindServer)
}

// endRequestSpan ends the span of a request.
func endRequestSpan(span trace.Span, line requestLine) {
	if span.IsRecording() {
		span.SetName(line.method + " " + line.route)
		span.SetAttributes(attribute.String("http.request.method", line.method), attribute.String("http.route", line.route),
			attribute.Int("http.response.status_code", line.status), attribute.String("quittance.request.id", line.id))
		if line.keyID != "" {
			span.SetAttributes(attribute.String("quittance.key.id", line.keyID))
		}
		if line.status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	}
	span.End()
}
