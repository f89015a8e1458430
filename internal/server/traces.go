package server

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
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

// tracedLedger is a ledger.Service with a span for each use case.
type tracedLedger struct{ *ledger.Service }

// traced runs a use case in a span.
func traced[T any](ctx context.Context, name string, do func(context.Context) (T, error)) (T, error) {
	ctx, span := tracing.Start(ctx, name, trace.SpanKindInternal)
	result, err := do(ctx)
	tracing.End(span, err)
	return result, err
}

// tracedChange is traced for a use case that returns only an error.
func tracedChange(ctx context.Context, name, chainKey string, do func(context.Context) error) error {
	ctx, span := tracing.Start(ctx, name, trace.SpanKindInternal)
	span.SetAttributes(attribute.String("quittance.chain", chainKey))
	err := do(ctx)
	tracing.End(span, err)
	return err
}

// tracedPart is tracedChange for a change that may leave more work.
func tracedPart(ctx context.Context, name, chainKey string, do func(context.Context) (bool, error)) (more bool, err error) {
	err = tracedChange(ctx, name, chainKey, func(ctx context.Context) error {
		more, err = do(ctx)
		return err
	})
	return more, err
}

// Create creates an invoice.
func (l tracedLedger) Create(ctx context.Context, r ledger.CreateRequest) (invoice.Invoice, error) {
	return traced(ctx, "create invoice", func(ctx context.Context) (invoice.Invoice, error) { return l.Service.Create(ctx, r) })
}

// Finalize issues a draft.
func (l tracedLedger) Finalize(ctx context.Context, by access.Principal, id string) (invoice.Invoice, error) {
	return traced(ctx, "finalize invoice", func(ctx context.Context) (invoice.Invoice, error) { return l.Service.Finalize(ctx, by, id) })
}

// Void makes an invoice void.
func (l tracedLedger) Void(ctx context.Context, by access.Principal, id string) (invoice.Invoice, error) {
	return traced(ctx, "void invoice", func(ctx context.Context) (invoice.Invoice, error) { return l.Service.Void(ctx, by, id) })
}

// AttributeManually attributes a payment to an invoice.
func (l tracedLedger) AttributeManually(ctx context.Context, m ledger.ManualAttribution) (invoice.Payment, error) {
	return traced(ctx, "attribute payment", func(ctx context.Context) (invoice.Payment, error) { return l.Service.AttributeManually(ctx, m) })
}

// Claim records a payer's claim.
func (l tracedLedger) Claim(ctx context.Context, c ledger.Claim) (ledger.ClaimResult, error) {
	return traced(ctx, "claim payment", func(ctx context.Context) (ledger.ClaimResult, error) { return l.Service.Claim(ctx, c) })
}

// ReceiveNotice stores a notice.
func (l tracedLedger) ReceiveNotice(ctx context.Context, n invoice.Notice) error {
	return tracedChange(ctx, "receive notice", n.ChainKey, func(ctx context.Context) error { return l.Service.ReceiveNotice(ctx, n) })
}

// Observe records blocks.
func (l tracedLedger) Observe(ctx context.Context, chainKey string, blocks []ledger.Block) error {
	return tracedChange(ctx, "observe blocks", chainKey, func(ctx context.Context) error { return l.Service.Observe(ctx, chainKey, blocks) })
}

// Rollback orphans everything above a block.
func (l tracedLedger) Rollback(ctx context.Context, chainKey string, to invoice.Header) error {
	return tracedChange(ctx, "roll back blocks", chainKey, func(ctx context.Context) error { return l.Service.Rollback(ctx, chainKey, to) })
}

// Confirm makes blocks final.
func (l tracedLedger) Confirm(ctx context.Context, chainKey string, finalized invoice.Header, revision int64, unfinal uint64) (more bool, err error) {
	return tracedPart(ctx, "confirm blocks", chainKey, func(ctx context.Context) (bool, error) {
		return l.Service.Confirm(ctx, chainKey, finalized, revision, unfinal)
	})
}

// Expire has invoices expire.
func (l tracedLedger) Expire(ctx context.Context, chainKey string) (more bool, err error) {
	return tracedPart(ctx, "expire invoices", chainKey, func(ctx context.Context) (bool, error) { return l.Service.Expire(ctx, chainKey) })
}

// Fill records blocks of the gap.
func (l tracedLedger) Fill(ctx context.Context, chainKey string, next uint64, blocks []ledger.Block, through invoice.Header) error {
	return tracedChange(ctx, "fill gap", chainKey, func(ctx context.Context) error { return l.Service.Fill(ctx, chainKey, next, blocks, through) })
}
