package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/test/otlptest"
	"github.com/quittance/quittance/internal/tracing"
)

// TestExport exports spans with the service's name, under the names and headers of the environment.
func TestExport(t *testing.T) {
	collector := otlptest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20token")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	tracer, stop, err := Start(t.Context(), Config{Version: "v1.2.3", Logger: slog.New(slog.DiscardHandler)})
	if err != nil || tracer == nil {
		t.Fatal(tracer, err)
	}
	ctx, parent := tracing.Start(tracing.WithTracer(t.Context(), tracer), "parent", trace.SpanKindServer)
	_, child := tracing.StartChild(ctx, "child", trace.SpanKindClient)
	_, root := tracing.StartRoot(ctx, "root")
	tracing.End(child, errors.New("a secret"))
	tracing.End(root, nil)
	tracing.End(parent, nil)
	if _, orphan := tracing.StartChild(tracing.WithTracer(t.Context(), tracer), "orphan", trace.SpanKindClient); orphan.IsRecording() {
		t.Error("a child without a parent is recorded")
	}
	stop()
	got := make(map[string]otlptest.Span)
	for _, s := range collector.Spans() {
		got[s.GetName()] = s
	}
	if len(got) != 3 || string(got["child"].GetParentSpanId()) != string(got["parent"].GetSpanId()) || got["root"].TraceID() == got["parent"].TraceID() ||
		got["child"].GetStatus().GetCode() != 2 || strings.Contains(collector.Raw(), "secret") {
		t.Errorf("exported %v", got)
	}
	about := got["parent"].Resource
	if about["service.name"] != "quittance" || about["service.version"] != "v1.2.3" || about["deployment.environment.name"] != "test" {
		t.Errorf("the resource is %v", about)
	}
	for _, auth := range collector.Authorizations() {
		if auth != "Bearer token" {
			t.Errorf("the collector was sent Authorization: %s", auth)
		}
	}
}

// TestServiceName takes the service's name from the environment.
func TestServiceName(t *testing.T) {
	collector := otlptest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL+"/v1/traces")
	t.Setenv("OTEL_SERVICE_NAME", "pay")
	tracer, stop, err := Start(t.Context(), Config{Logger: slog.New(slog.DiscardHandler)})
	expect.OK(t, err)
	_, span := tracer.Start(t.Context(), "x")
	span.End()
	stop()
	if spans := collector.Spans(); len(spans) != 1 || spans[0].Resource["service.name"] != "pay" {
		t.Errorf("exported %v", spans)
	}
}

// TestDeadCollector makes more spans than the queue holds while the collector refuses connections or
// does not answer. Only the stop waits for it, for a bounded time.
func TestDeadCollector(t *testing.T) {
	released := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(released) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	refusing := "http://" + listener.Addr().String()
	expect.OK(t, listener.Close())
	for name, endpoint := range map[string]string{"silent": silent.URL, "refusing": refusing} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret")
			log := new(logtest.Buffer)
			tracer, stop, err := Start(t.Context(), Config{Logger: slog.New(slog.NewTextHandler(log, nil))})
			expect.OK(t, err)
			const spans = 50_000
			begun := time.Now()
			ctx := tracing.WithTracer(t.Context(), tracer)
			for range spans {
				_, span := tracing.Start(ctx, "x", trace.SpanKindInternal)
				span.End()
			}
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%d spans took %s", spans, took)
			}
			begun = time.Now()
			stop()
			if took := time.Since(begun); took > stopTimeout+5*time.Second {
				t.Errorf("the stop took %s", took)
			}
			if text := log.String(); strings.Count(text, "export of traces failed") != 1 || strings.Contains(text, "secret") {
				t.Errorf("logged %s", text)
			}
		})
	}
}

// TestIsConfigured reads the environment.
func TestIsConfigured(t *testing.T) {
	const endpoint, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	for _, c := range []struct {
		env  map[string]string
		on   bool
		fail string
	}{
		{env: nil},
		{env: map[string]string{"OTEL_SERVICE_NAME": "x"}},
		{env: map[string]string{endpoint: "http://127.0.0.1:4318"}, on: true},
		{env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://otel.example/v1/traces"}, on: true},
		{env: map[string]string{endpoint: "http://127.0.0.1:4318", protocol: "http/protobuf"}, on: true},
		{env: map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}},
		{env: map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}},
		{env: map[string]string{endpoint: "127.0.0.1:4318"}, fail: endpoint},
		{env: map[string]string{endpoint: "grpc://127.0.0.1:4317"}, fail: endpoint},
		{env: map[string]string{endpoint: "http://user:secret@otel.example"}, fail: "OTEL_EXPORTER_OTLP_HEADERS"},
		{env: map[string]string{endpoint: "http://127.0.0.1:4318", protocol: "grpc"}, fail: protocol},
	} {
		on, err := isConfigured(func(name string) string { return c.env[name] })
		if on != c.on || (err != nil) != (c.fail != "") || err != nil && (!strings.Contains(err.Error(), c.fail) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%v: %t, %v", c.env, on, err)
		}
	}
}

// TestFailureLog logs without the collector's URL, and once a minute.
func TestFailureLog(t *testing.T) {
	log := new(logtest.Buffer)
	f := &failureLog{logger: slog.New(slog.NewTextHandler(log, nil))}
	for range 5 {
		f.Handle(fmt.Errorf("traces export: %w", &url.Error{Op: "Post", URL: "https://otel.example/secret", Err: context.DeadlineExceeded}))
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || strings.Contains(text, "otel.example") || f.omitted != 4 {
		t.Errorf("logged %s", text)
	}
}

// TestOff checks that spans allocate no memory without a tracer.
func TestOff(t *testing.T) {
	tracer, stop, err := Start(t.Context(), Config{})
	if err != nil || tracer != nil {
		t.Fatal(tracer, err)
	}
	stop()
	ctx := tracing.WithTracer(t.Context(), tracer)
	if n := testing.AllocsPerRun(100, func() {
		inner, span := tracing.Start(ctx, "x", trace.SpanKindInternal)
		_, child := tracing.StartChild(inner, "x", trace.SpanKindClient)
		tracing.End(child, nil)
		tracing.End(span, nil)
	}); n != 0 {
		t.Errorf("two spans allocate %v times without a tracer", n)
	}
}
