package server

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// discarded is a http.ResponseWriter that keeps only the status.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(status int)      { d.status = status }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkGuess measures the handler of a listener with a guess beyond the limit. The log
// is a file.
func BenchmarkGuess(b *testing.B) {
	log, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // it is thrown away
	l, err := Listen(b.Context(), Address{Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // no client connects
	s, err := newServer(Config{
		Listeners: []*Listener{l}, Access: Access{Mode: access.Live}, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Proxies: limits.Proxies{Trusted: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Header: limits.XForwardedFor},
	})
	if err != nil {
		b.Fatal(err)
	}
	s.store = dbtest.Open(b, dbtest.SQLite(b))
	if err := s.build(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := s.buildAccess(); err != nil {
		b.Fatal(err)
	}
	handler := s.handlers()(l)
	headers := make([]http.Header, 1000)
	for i := range headers {
		key, err := access.NewKey(access.Live, rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		headers[i] = http.Header{"Authorization": {"Bearer " + key.Reveal()}, limits.XForwardedFor: {"203.0.113.7"}}
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://localhost/api/invoices/inv_x", nil)
	if err != nil {
		b.Fatal(err)
	}
	r.RemoteAddr, r.RequestURI = "192.0.2.1:1234", r.URL.RequestURI()
	n, limited := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		w := &discarded{header: make(http.Header)}
		r.Header = headers[n%len(headers)]
		handler.ServeHTTP(w, r)
		if n++; w.status == http.StatusTooManyRequests {
			limited++
		}
	}
	b.ReportMetric(float64(limited)/float64(n), "limited/op")
}
