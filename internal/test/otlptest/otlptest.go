// Package otlptest is a collector of traces for tests.
package otlptest

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is an exported span.
type Span struct {
	*v1.Span
	Attributes map[string]string
	Resource   map[string]string
}

// TraceID returns the id of the trace, in hex.
func (s Span) TraceID() string { return hex.EncodeToString(s.GetTraceId()) }

// Collector is a collector of traces. It is safe for concurrent use.
type Collector struct {
	URL string

	mu    sync.Mutex
	raw   bytes.Buffer
	spans []Span
	auth  []string
}

// New returns a collector that serves until the test ends.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request coltrace.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &request) != nil {
			t.Errorf("the collector was sent %s %s, %d bytes of %s, %v", r.Method, r.URL, len(body), r.Header.Get("Content-Type"), err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.add(r, body, &request)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

func (c *Collector) add(r *http.Request, body []byte, request *coltrace.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw.Write(body)
	c.auth = append(c.auth, r.Header.Get("Authorization"))
	for _, resource := range request.GetResourceSpans() {
		about := make(map[string]string)
		for _, a := range resource.GetResource().GetAttributes() {
			about[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				attributes := make(map[string]string)
				for _, a := range span.GetAttributes() {
					attributes[a.GetKey()] = a.GetValue().GetStringValue()
				}
				c.spans = append(c.spans, Span{span, attributes, about})
			}
		}
	}
}

// Spans returns the spans that were exported so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Raw returns all that was exported so far, as it was sent.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// Authorizations returns the header of that name of each request.
func (c *Collector) Authorizations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.auth...)
}
