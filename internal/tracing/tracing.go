// Package tracing makes spans of OpenTelemetry traces. A context carries the tracer, so that code
// without a span costs only a look-up when tracing is off.
//
// Spans have no bodies, queries, headers, URLs or statements, and no text from outside, because these
// may hold secrets.
package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Name is the instrumentation scope of the service's spans.
const Name = "github.com/quittance/quittance"

type tracerKey struct{}

// none is a span that is not recorded.
var none = trace.SpanFromContext(context.Background())

// WithTracer returns a context that carries a tracer, or ctx if the tracer is nil.
func WithTracer(ctx context.Context, tracer trace.Tracer) context.Context {
	if tracer == nil {
		return ctx
	}
	return context.WithValue(ctx, tracerKey{}, tracer)
}

// Start starts a span under ctx's span, or the first span of a trace. The caller ends it with End.
func Start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	tracer, ok := ctx.Value(tracerKey{}).(trace.Tracer)
	if !ok {
		return ctx, none
	}
	return tracer.Start(ctx, name, trace.WithSpanKind(kind))
}

// Begin starts a span of a function, which defers end with its error.
func Begin(ctx context.Context, name string, attributes ...attribute.KeyValue) (_ context.Context, end func(*error)) {
	ctx, span := Start(ctx, name, trace.SpanKindInternal)
	span.SetAttributes(attributes...)
	return ctx, func(err *error) { End(span, *err) }
}

// Chain is the attribute of a span about a chain.
func Chain(key string) attribute.KeyValue { return attribute.String("quittance.chain", key) }

// StartRoot starts the first span of a trace, for work that several traces share.
func StartRoot(ctx context.Context, name string) (context.Context, trace.Span) {
	tracer, ok := ctx.Value(tracerKey{}).(trace.Tracer)
	if !ok {
		return ctx, none
	}
	return tracer.Start(ctx, name, trace.WithNewRoot())
}

// StartChild is Start if ctx has a span that is recorded. Otherwise it starts no span, so that work
// that runs every few seconds makes no traces.
func StartChild(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, none
	}
	return Start(ctx, name, kind)
}

// End ends a span. If err is not nil, the span's status is an error, without its text.
func End(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
