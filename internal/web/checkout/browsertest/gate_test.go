package browsertest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// gate is a proxy between pages and the service.
type gate struct {
	*httptest.Server
	polls    atomic.Int32  // requests for a status
	streams  chan struct{} // a token for each request for a stream
	refuse   atomic.Bool   // answer 503 to requests for streams
	withhold atomic.Bool   // do not send the events of streams
	broken   atomic.Bool   // answer 503 to all other requests
	// refusal, if not empty, is the reason given for refusing authorizations.
	refusal atomic.Value

	mu   sync.Mutex
	cuts []context.CancelFunc // of the streams so far
}

// newGate starts a gate to a world.
func newGate(t *testing.T, w *browsertest.World) *gate {
	t.Helper()
	target, err := url.Parse(w.Info.BaseURL)
	expect.OK(t, err)
	const many = 100
	g := &gate{streams: make(chan struct{}, many)}
	proxy := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // a stream was cut
	}
	g.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch name := path.Base(r.URL.Path); {
		case name == "events":
			g.stream(rw, r, proxy)
			return
		case name == "status":
			g.polls.Add(1)
		}
		reason, _ := g.refusal.Load().(string)
		switch {
		case g.broken.Load():
			rw.WriteHeader(http.StatusServiceUnavailable)
		case reason != "" && path.Base(r.URL.Path) == "authorization":
			rw.Header().Set("Content-Type", "application/problem+json")
			rw.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprintf(rw, `{"code": "authorization_refused", "reason": %q}`, reason)
		default:
			proxy.ServeHTTP(rw, r)
		}
	}))
	t.Cleanup(func() {
		g.cut()
		g.Close()
	})
	return g
}

// stream passes a stream on until it is cut.
func (g *gate) stream(rw http.ResponseWriter, r *http.Request, proxy http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	g.mu.Lock()
	g.cuts = append(g.cuts, cancel)
	g.mu.Unlock()
	g.streams <- struct{}{}
	switch {
	case g.refuse.Load():
		rw.WriteHeader(http.StatusServiceUnavailable)
	case g.withhold.Load():
		rw.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(rw).Flush()
		<-ctx.Done()
	default:
		proxy.ServeHTTP(rw, r.WithContext(ctx))
	}
}

// cut ends all streams.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, cancel := range g.cuts {
		cancel()
	}
}

// awaitStream waits until a page asks for a stream.
func (g *gate) awaitStream(t *testing.T) {
	t.Helper()
	select {
	case <-g.streams:
	case <-time.After(browsertest.Patience):
		t.Fatal("no page asks for a stream")
	}
}
