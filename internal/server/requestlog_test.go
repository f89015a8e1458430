package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/test/otlptest"
	"github.com/quittance/quittance/internal/tracing/otlp"
	"github.com/quittance/quittance/internal/webhooks"
)

// logLines decodes the JSON lines of a log.
func logLines(t *testing.T, log *logtest.Buffer) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log.String()) {
		var decoded map[string]any
		if err := json.Unmarshal([]byte(line), &decoded); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, decoded)
	}
	return lines
}

// TestRequestLog compares the log of a service with the requests sent to it.
func TestRequestLog(t *testing.T) {
	log := new(logtest.Buffer)
	s := startServer(t, Config{Merchants: Merchants{AcceptAll: true}, Logger: slog.New(slog.NewJSONHandler(log, nil))})
	const secret = "qk_live_do_not_log_me"
	ids := make(map[string]bool)
	for _, call := range []struct {
		method, path, route string
		status              float64
	}{
		{"GET", "/api/invoices?merchantId=" + secret, "/api/invoices", 401},
		{"GET", "/api/invoices/" + secret, "/api/invoices/{id}", 401},
		{"POST", "/api/invoices", "/api/invoices", 401},
		{"PUT", "/api/invoices", "/api/invoices", 405},
		{"GET", "/checkout/" + secret, "/checkout/{id}", 404},
		{"GET", "/" + secret, "/", 404},
		{secret, "/", "/", 404},
	} {
		before := len(logLines(t, log))
		r := expect.Must(http.NewRequestWithContext(t.Context(), call.method, s.url+call.path, strings.NewReader(`{"memo": "`+secret+`"}`)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept-Encoding", "identity") // the log has the sent value
		r.Header.Set("Authorization", "Bearer "+secret)
		r.Header.Set("X-Request-Id", secret) // from a peer that is not a trusted proxy
		answer, err := http.DefaultClient.Do(r)
		expect.OK(t, err)
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.Body.Close() != nil {
			t.Fatal(err)
		}
		id := answer.Header.Get("X-Request-Id")
		if !regexp.MustCompile(`^req_[0-9a-hjkmnp-tv-z]{26}$`).MatchString(id) || ids[id] {
			t.Errorf("%s %s has the request id %q", call.method, call.path, id)
		}
		ids[id] = true
		var problem struct{ RequestID string }
		if err := json.Unmarshal(body, &problem); answer.Header.Get("Content-Type") == "application/problem+json" && (err != nil || problem.RequestID != id) {
			t.Errorf("%s %s: the problem has the request id %q, the header %q: %v", call.method, call.path, problem.RequestID, id, err)
		}
		line := awaitLine(t, log, before)
		for key, want := range map[string]any{
			"level": "INFO", "msg": "request", "method": strings.Replace(call.method, secret, "OTHER", 1), "route": call.route,
			"status": call.status, "bytes": float64(len(body)), "client": "127.0.0.1", "request_id": id,
		} {
			if line[key] != want {
				t.Errorf("%s %s is logged with %s %v, want %v", call.method, call.path, key, line[key], want)
			}
		}
		if took, ok := line["took"].(float64); !ok || took <= 0 || len(line) != 10 {
			t.Errorf("%s %s is logged as %v", call.method, call.path, line)
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log has a secret of a request:\n%s", log)
	}
}

// awaitLine returns the line of a log that follows some lines. A request is logged after its response.
func awaitLine(t *testing.T, log *logtest.Buffer, before int) map[string]any {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if lines := logLines(t, log); len(lines) > before {
			if len(lines) > before+1 {
				t.Fatalf("a request has the lines %v", lines[before:])
			}
			return lines[before]
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("there is no line %d in the log:\n%s", before+1, log)
		}
	}
}

// newObserved returns a server with only the fields that observeRequests needs.
func newObserved(level slog.Level) (*Server, *logtest.Buffer) {
	log := new(logtest.Buffer)
	logger := slog.New(logFilter{slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level}), addRequest})
	return &Server{
		cfg: Config{Logger: logger}, metrics: newMetrics(prometheus.NewRegistry()), ids: invoice.NewIDs(time.Now, rand.Reader),
	}, log
}

// TestRequestLogOfHealthChecks expects them to be logged only at level debug.
func TestRequestLogOfHealthChecks(t *testing.T) {
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/status"} {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
			s, log := newObserved(level)
			table, _ := testTable(t)
			s.setRoutes(table)
			mux := http.NewServeMux()
			mux.HandleFunc("GET "+path, live)
			s.observeRequests(mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
			want := 1
			if level == slog.LevelInfo && path != "/status" {
				want = 0
			}
			if lines := logLines(t, log); len(lines) != want {
				t.Errorf("%s is logged at level %s as %v", path, level, lines)
			}
		}
	}
}

// TestRequestLogOfKeys expects the id of the key in the line of an authenticated request, and the
// request id in all log lines of a request.
func TestRequestLogOfKeys(t *testing.T) {
	s, log := newObserved(slog.LevelInfo)
	handler := recordKey(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		s.cfg.Logger.InfoContext(r.Context(), "something")
		panic(http.ErrAbortHandler)
	}))
	observed := s.observeRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := access.WithPrincipal(r.Context(), access.Principal{KeyID: "key_1"})
		handler.ServeHTTP(w, r.WithContext(ctx))
	}))
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // as net/http compares it
				t.Errorf("the handler's panic became %v", p)
			}
		}()
		observed.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
	}()
	lines := logLines(t, log)
	if len(lines) != 2 || lines[1]["key"] != "key_1" || lines[0]["msg"] != "something" || lines[0]["request_id"] == nil || lines[0]["request_id"] != lines[1]["request_id"] {
		t.Errorf("logged %v", lines)
	}
}

// TestRequestID accepts well-formed ids only from trusted proxies.
func TestRequestID(t *testing.T) {
	const made = "req_new"
	for _, c := range []struct {
		given   []string
		trusted bool
		want    string
	}{
		{nil, true, made},
		{[]string{"7f3a2c1e-6b1d-4c1f-9a55-0f6e3f1c2d3e"}, true, "7f3a2c1e-6b1d-4c1f-9a55-0f6e3f1c2d3e"},
		{[]string{"7f3a2c1e-6b1d-4c1f-9a55-0f6e3f1c2d3e"}, false, made},
		{[]string{"Root:1-67891233-abcdef012345678912345678"}, true, "Root:1-67891233-abcdef012345678912345678"},
		{[]string{strings.Repeat("a", 64)}, true, strings.Repeat("a", 64)},
		{[]string{strings.Repeat("a", 65)}, true, made},
		{[]string{"short"}, true, made},
		{[]string{""}, true, made},
		{[]string{"12345678", "12345678"}, true, made},
		{[]string{"12345678, 12345678"}, true, made},
		{[]string{"12345678\n"}, true, made},
		{[]string{"12345678 level=ERROR"}, true, made},
		{[]string{`12345678"`}, true, made},
		{[]string{"ümlautümlaut"}, true, made},
		{[]string{"........."}, true, made},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header[requestIDHeader] = slices.Clone(c.given)
		if got := requestID(r, c.trusted, func() string { return made }); got != c.want {
			t.Errorf("%q, trusted %t: the id is %q, want %q", c.given, c.trusted, got, c.want)
		}
	}
}

// TestSchemeBehindProxy expects the public URL of a service behind a proxy that terminates HTTPS.
func TestSchemeBehindProxy(t *testing.T) {
	s, _ := newObserved(slog.LevelError)
	s.cfg.Proxies = limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}, Header: limits.XForwardedFor}
	for peer, want := range map[string]string{"192.0.2.1:1": "https://pay.example.com", "198.51.100.1:1": "http://pay.example.com"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.Host = peer, "pay.example.com"
		r.Header.Set("X-Forwarded-Proto", "https")
		s.observeRequests(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if got := limits.BaseURL(r); got != want {
				t.Errorf("from %s: %s, want %s", peer, got, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}

// TestNetLog expects lines of net/http to be truncated and escaped.
func TestNetLog(t *testing.T) {
	var text bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
	std := log.New(NetLog(logger, slog.LevelWarn), "", 0)
	std.Printf("Unsolicited response: %s\nlevel=ERROR msg=forged\x1b[2J", strings.Repeat("x", 10_000))
	if lines := strings.Count(text.String(), "\n"); lines != 1 || text.Len() > 2*maxNetLog || strings.ContainsRune(text.String(), '\x1b') {
		t.Errorf("%d lines, %d bytes: %s", lines, text.Len(), text.String())
	}
	text.Reset()
	std.Print("line one\nlevel=ERROR msg=forged \x1b[2J")
	if lines := strings.Count(text.String(), "\n"); lines != 1 || !strings.Contains(text.String(), `\n`) {
		t.Errorf("%d lines: %s", lines, text.String())
	}
	text.Reset()
	std.Print("http: panic serving 127.0.0.1:1: boom")
	if !strings.Contains(text.String(), "level=ERROR") {
		t.Errorf("a panic is logged as %s", text.String())
	}
}

func TestNoSniffing(t *testing.T) {
	base := startServer(t, Config{}).url
	for _, path := range []string{"/status", "/readyz", "/healthz", "/metrics", "/api/invoices", "/checkout/x", "/nothing"} {
		if a := ask(t, http.MethodGet, base+path, ""); a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s answers without nosniff", path)
		}
	}
}

func TestOutagesAreLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(logtest.Buffer)
		logger := limitOutageLogs(slog.New(slog.NewTextHandler(log, nil)))
		outage := fmt.Errorf("lease deliveries: %w", db.ErrTimeout)
		node := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		for range 100 {
			logger.With("chain", "house").Error("leasing failed", "err", outage)
			logger.WithGroup("request").Error("request failed", "err", outage)
			logger.Error("request failed", "err", errors.New("another fault"))
			logger.Warn("a node failed", "err", node)
		}
		if n := strings.Count(log.String(), "leasing failed"); n != 1 {
			t.Errorf("an outage was logged %d times; want once", n)
		}
		if n := strings.Count(log.String(), "another fault"); n != 100 {
			t.Errorf("other errors were logged %d times; want 100", n)
		}
		if n := strings.Count(log.String(), "a node failed"); n != 100 {
			t.Errorf("a node error was logged %d times; want 100", n)
		}
		if n := strings.Count(log.String(), "request failed"); n != 101 {
			t.Errorf("request failed was logged %d times; want 101", n)
		}
		<-time.After(outageInterval)
		logger.Error("leasing failed", "err", outage)
		if !strings.Contains(log.String(), "omitted=99") {
			t.Errorf("the next line does not say how many were omitted:\n%s", log.String())
		}
	})
}

// TestRefusedLog expects one line for each client and limit, not for each request.
func TestRefusedLog(t *testing.T) {
	s, log := newObserved(slog.LevelInfo)
	s.refused = &refusedLog{logger: s.cfg.Logger}
	g := newGuessed()
	h := s.observeRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := g.auth.Authenticate(r.Context(), r.Header.Get("Authorization")); err != nil {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	ask := func(client, key string) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil)
		r.RemoteAddr = client + ":1234"
		r.Header.Set("Authorization", key)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for range maxLookups + 7 {
		ask(guesser, g.newKey(t, false))
	}
	if n := len(logLines(t, log)); n != maxLookups {
		t.Errorf("%d lines of requests before the limit, want %d", n, maxLookups)
	}
	before := len(logLines(t, log))
	for range 3 {
		s.refused.flush(t.Context())
	}
	lines := logLines(t, log)[before:]
	if len(lines) != 1 || lines[0]["msg"] != "keys refused" || lines[0]["client"] != guesser || lines[0]["limit"] != "lookup" || lines[0]["requests"] != 7.0 || lines[0]["status"] != 429.0 {
		t.Errorf("refused keys are logged as %v", lines)
	}
	ask(guesser, g.newKey(t, true))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.refused.run(ctx); err != nil || len(logLines(t, log)) != before+2 {
		t.Errorf("at the end, %v and the lines %v", err, logLines(t, log)[before:])
	}
}

// TestRefusedLogIsBounded refuses keys from more clients than are logged.
func TestRefusedLogIsBounded(t *testing.T) {
	s, log := newObserved(slog.LevelInfo)
	l := &refusedLog{logger: s.cfg.Logger}
	for i := range maxRefusedClients + 5 {
		l.add(refusal{"lookup", fmt.Sprint("client ", i)})
	}
	l.flush(t.Context())
	lines, requests := logLines(t, log), 0.0
	for _, line := range lines {
		requests += line["requests"].(float64)
	}
	if len(lines) != maxRefusedClients+1 || requests != maxRefusedClients+5 {
		t.Errorf("%d lines of %v requests", len(lines), requests)
	}
}

func TestUnattributedPaymentsAreCountedAndLogged(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_790_000_000, 0)
	registry := prometheus.NewRegistry()
	u := newUnattributed(registry, []string{"base", "optimism"}, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	p := invoice.Payment{ID: "pay_1", Transfer: invoice.Transfer{ChainKey: "base", Amount: invoice.NewAmount(33_990_000)}}
	for range 3 * unattributedLines {
		u.observe(p)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Fatalf("metrics %v, %v", families, err)
	}
	if got := families[0].GetMetric()[0].GetCounter().GetValue(); got != 3*unattributedLines {
		t.Errorf("counted are %v", got)
	}
	if got := strings.Count(log.String(), "payment=pay_1"); got != unattributedLines || !strings.Contains(log.String(), "amount=33990000") {
		t.Errorf("%d lines:\n%s", got, &log)
	}
	log.Reset()
	now = now.Add(unattributedWindow)
	u.observe(p)
	if got := log.String(); !strings.Contains(got, "payments=20") || !strings.Contains(got, "payment=pay_1") {
		t.Errorf("a minute later:\n%s", got)
	}
}

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
	node := expect.Must(url.Parse(c.RPC[0]))
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
