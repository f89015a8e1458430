package server

import (
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/tracing/otlp"
	"github.com/quittance/quittance/internal/tracing/otlp/otlptest"
	"github.com/quittance/quittance/internal/webhooks"
)

// headers collects the headers of requests that a service makes.
type headers struct {
	mu  sync.Mutex
	all []http.Header
}

func (h *headers) add(r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r.Header.Clone())
}

// newTracer returns a tracer that exports to a collector, and its stop.
func newTracer(t *testing.T) (trace.Tracer, *otlptest.Collector, func()) {
	t.Helper()
	collector := otlptest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, stop, err := otlp.Start(t.Context(), otlp.Config{Logger: slog.New(slog.DiscardHandler)})
	expect.OK(t, err)
	return tracer, collector, stop
}

// TestTraces exports a service's spans to a collector: of requests, transactions, calls to nodes and
// deliveries, without secrets. Nodes and merchants see no trace.
func TestTraces(t *testing.T) {
	tracer, collector, stopTracer := newTracer(t)
	const secret = "do_not_export_me"
	var outgoing headers
	c, script, _ := scriptedChain(t, "house", 7)
	node, err := url.Parse(c.RPC[0])
	expect.OK(t, err)
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		outgoing.add(r.In)
		r.Out.URL = node
	}})
	t.Cleanup(proxy.Close)
	c.RPC = []string{proxy.URL + "/" + secret}
	delivered := make(chan struct{}, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		outgoing.add(r)
		delivered <- struct{}{}
	}))
	t.Cleanup(receiver.Close)
	log := new(logtest.Buffer)
	s := startServer(t, Config{
		Chains: []Chain{c}, WebhookAllow: webhooks.Loopback(), Tracer: tracer, Logger: slog.New(slog.NewJSONHandler(log, nil)),
		Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: receiver.URL + "/" + secret, WebhookSecret: "whsec_" + secret}}},
	})
	await(t, s.url, "the chain", func(_ int, h health) bool { return h.Chains[0].Confirmed > 0 })
	script.MineEmpty(3)
	await(t, s.url, "new blocks", func(_ int, h health) bool { return h.Chains[0].Confirmed > 3 })
	if a := create(t, s.url, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	<-delivered
	const foreign = "0af7651916cd43dd8448eb211c80319c"
	asked := ask(t, http.MethodGet, s.url+"/api/invoices/"+secret+"?x="+secret, secret, func(r *http.Request) {
		r.Header.Set("Traceparent", "00-"+foreign+"-b7ad6b7169203331-01")
		r.Header.Set("Baggage", "x="+secret)
		r.Header.Set("Authorization", "Bearer "+secret)
	})
	s.stop()
	expect.OK(t, <-s.ended)
	stopTracer()

	spans := make(map[string][]otlptest.Span)
	for _, span := range collector.Spans() {
		spans[span.GetName()] = append(spans[span.GetName()], span)
		if span.TraceID() == foreign {
			t.Errorf("%s continues the trace of a stranger", span.GetName())
		}
	}
	for _, name := range []string{
		"POST /api/invoices", "create invoice", "create invoices", "database transaction", "webhook invoice.created",
		"reading the head", "observe blocks", "confirm blocks", "expire invoices", "eth_getBlockByNumber",
	} {
		if len(spans[name]) == 0 {
			t.Errorf("no span is called %s", name)
		}
	}
	if len(spans["GET /readyz"])+len(spans["request"]) > 0 {
		t.Error("health checks have spans")
	}
	for child, parents := range map[string][]string{
		"create invoice": {"POST /api/invoices"}, "confirm blocks": {"reading the head"}, "webhook invoice.created": {""}, "create invoices": {""},
		"database transaction": {"create invoices", "observe blocks", "confirm blocks", "expire invoices", "reading the head", "POST /api/invoices", "create invoice", "manage transactions"},
	} {
		for _, span := range spans[child] {
			if got := parentOf(spans, span); !slices.Contains(parents, got) {
				t.Errorf("%s is below %q, want one of %q", child, got, parents)
			}
		}
	}
	get := spans["GET /api/invoices/{id}"]
	if len(get) != 1 || get[0].Attributes["quittance.request.id"] != asked.header.Get("X-Request-Id") || get[0].Attributes["http.route"] != "/api/invoices/{id}" {
		t.Fatalf("the spans of a request are %v", get)
	}
	if !strings.Contains(log.String(), `"trace_id":"`+get[0].TraceID()+`"`) {
		t.Error("the log does not name the trace of a request")
	}
	if strings.Contains(collector.Raw(), secret) {
		t.Error("a secret was exported")
	}
	outgoing.mu.Lock()
	defer outgoing.mu.Unlock()
	for _, h := range outgoing.all {
		for name := range h {
			if slices.Contains([]string{"Traceparent", "Tracestate", "Baggage", requestIDHeader}, name) {
				t.Errorf("a node or a merchant was sent %s", name)
			}
		}
	}
}

// parentOf returns the name of a span's parent, or "".
func parentOf(spans map[string][]otlptest.Span, of otlptest.Span) string {
	for name, all := range spans {
		for _, s := range all {
			if string(s.GetSpanId()) == string(of.GetParentSpanId()) {
				return name
			}
		}
	}
	return ""
}

// TestTraceContext continues only the traces of trusted proxies.
func TestTraceContext(t *testing.T) {
	tracer, collector, stop := newTracer(t)
	const given, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	s := &Server{cfg: Config{Tracer: tracer}}
	for _, trusted := range []bool{true, false} {
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.Header.Set("Traceparent", "00-"+given+"-"+parent+"-01")
		_, span := s.startRequestSpan(t.Context(), r, trusted)
		endRequestSpan(span, requestLine{method: "GET", route: "/x", status: 500})
	}
	stop()
	spans := collector.Spans()
	if len(spans) != 2 || spans[0].TraceID() != given || hex.EncodeToString(spans[0].GetParentSpanId()) != parent ||
		spans[1].TraceID() == given || len(spans[1].GetParentSpanId()) > 0 || spans[0].GetStatus().GetCode() != 2 {
		t.Errorf("exported %v", spans)
	}
}
