// Package otlp exports traces over OTLP (HTTP and Protocol Buffers), configured by the
// environment variables of OpenTelemetry.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/tracing"
)

// stopTimeout bounds the export of the last spans when the service stops.
const stopTimeout = 2 * time.Second

// failureLogInterval is how often failures to export are logged at most.
const failureLogInterval = time.Minute

// endpointVariables are the variables that turn traces on.
var endpointVariables = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// Config configures Start. Logger is required.
type Config struct {
	Version string // of the service
	Logger  *slog.Logger
}

// Start returns a tracer with spans that are exported in the background, and a function that exports
// the last ones and stops. The queue of spans is bounded: while the collector is away, spans are
// dropped. The tracer is nil if the environment names no collector.
func Start(ctx context.Context, cfg Config) (tracer trace.Tracer, stop func(), err error) {
	wanted, err := isConfigured(os.Getenv)
	if err != nil || !wanted {
		return nil, func() {}, err
	}
	// No retries: they would only hold up the queue while the collector is away.
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}))
	if err != nil {
		return nil, nil, fmt.Errorf("OTLP exporter of traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "quittance"), attribute.String("service.version", cfg.Version)), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	failures := &failureLog{logger: cfg.Logger}
	otel.SetErrorHandler(failures)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider.Tracer(tracing.Name), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			failures.Handle(err)
		}
	}, nil
}

// isConfigured reports whether the environment names a collector. It returns an error for values that
// the exporter would silently replace by others.
func isConfigured(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false, nil
	}
	for _, name := range endpointVariables {
		value := getenv(name)
		if value == "" {
			continue
		}
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return false, fmt.Errorf("%s is not usable; want the URL of a collector, such as http://127.0.0.1:4318", name)
		}
		if u.User != nil {
			return false, fmt.Errorf("%s has a user; name it in OTEL_EXPORTER_OTLP_HEADERS", name)
		}
		for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
			if p := getenv(name); p != "" && p != "http/protobuf" {
				return false, fmt.Errorf("%s is %.40q; only http/protobuf is supported", name, p)
			}
		}
		return true, nil
	}
	return false, nil
}

// failureLog logs failures of OpenTelemetry, at most one per failureLogInterval.
type failureLog struct {
	logger *slog.Logger

	mu      sync.Mutex
	logged  time.Time
	omitted int // since then
}

// Handle implements otel.ErrorHandler.
func (f *failureLog) Handle(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.logged.IsZero() && time.Since(f.logged) < failureLogInterval {
		f.omitted++
		return
	}
	omitted := f.omitted
	f.logged, f.omitted = time.Now(), 0
	var withURL *url.Error
	if errors.As(err, &withURL) { // the rest of the text repeats the URL
		err = withURL.Err
	}
	const maxText = 300 // the collector's answer is part of the error
	text := err.Error()
	f.logger.Warn("export of traces failed, spans are dropped", "err", strings.ToValidUTF8(text[:min(len(text), maxText)], ""), "omitted", omitted)
}
