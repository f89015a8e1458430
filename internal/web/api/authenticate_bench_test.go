package api_test

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/web/api"
)

// BenchmarkAuthentication measures GET /api/invoices/{id} with and without a key in turn, on the same
// service. It reports the cost of the key in percent: of a call of the handler, and of a request over
// the loopback interface.
func BenchmarkAuthentication(b *testing.B) {
	for name, url := range dbtest.MigratedDatabases() {
		b.Run(name, func(b *testing.B) {
			s := dbtest.Open(b, url(b))
			handler, path, key := authenticated(b, s)
			b.Run("handler", func(b *testing.B) {
				compare(b, func(authorization string) {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
					r.Header.Set("Authorization", authorization)
					if authorization == "" {
						r.Header.Del("Authorization")
					}
					if w := httptest.NewRecorder(); true {
						if handler.ServeHTTP(w, r); w.Code != http.StatusOK {
							b.Fatalf("answered %d %s", w.Code, w.Body)
						}
					}
				}, key)
			})
			b.Run("request", func(b *testing.B) {
				server := httptest.NewServer(handler)
				defer server.Close()
				compare(b, func(authorization string) { fetchWith(b, server, path, authorization) }, key)
			})
		})
	}
}

// authenticated returns a handler of the API that is open to all but accepts keys too, the path of an
// invoice, and the header with a key.
func authenticated(b *testing.B, s *db.DB) (handler http.Handler, path, key string) {
	b.Helper()
	base, _ := chain.Lookup("base")
	chains := []chain.Chain{base}
	service := ledger.New(ledger.Config{Store: s, Chains: chains, Merchants: merchants{}, Now: time.Now, Rand: rand.Reader})
	draft, err := api.ParseDraft([]byte(request()))
	if err != nil {
		b.Fatal(err)
	}
	draft.ExpiresAt = time.Now().Add(time.Hour)
	inv, err := service.Create(b.Context(), ledger.CreateRequest{Draft: draft})
	if err != nil {
		b.Fatal(err)
	}
	manager := access.NewKeyManager(access.KeyManagerConfig{Store: s, Mode: access.Live, Known: func(string) bool { return true }, Now: time.Now, Rand: rand.Reader})
	_, made, err := manager.Create(b.Context(), access.Open(), access.KeyRequest{Name: "bench", MerchantID: inv.MerchantID, Scopes: access.Standard})
	if err != nil {
		b.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	a := api.New(api.Config{
		Ledger: service, Reader: api.NewReader(s), Chains: chains, Now: time.Now, Logger: logger,
		Authenticator: access.NewAuthenticator(access.AuthenticatorConfig{Store: access.NewTables(s), Mode: access.Live, Open: true, Now: time.Now, Logger: logger}),
	})
	mux := http.NewServeMux()
	for _, r := range a.Routes() {
		if r.Scope != "" {
			mux.Handle(r.Pattern, a.WithPrincipal(a.WithScope(r, r.Handler)))
		}
	}
	return mux, "/api/invoices/" + inv.ID, "Bearer " + made.Reveal()
}

// fetchWith makes a request over the network.
func fetchWith(b *testing.B, server *httptest.Server, path, authorization string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("answered %d, %v", answer.StatusCode, err)
	}
	if err := answer.Body.Close(); err != nil {
		b.Fatal(err)
	}
}

// compare runs call without and with a key in turn, and reports the difference of the
// medians.
func compare(b *testing.B, call func(authorization string), key string) {
	b.Helper()
	var without, with []time.Duration
	for b.Loop() {
		begun := time.Now()
		call("")
		between := time.Now()
		call(key)
		without, with = append(without, between.Sub(begun)), append(with, time.Since(between))
	}
	slices.Sort(without)
	slices.Sort(with)
	open, keyed := without[len(without)/2], with[len(with)/2]
	b.ReportMetric(float64(open.Nanoseconds()), "open-ns")
	b.ReportMetric(float64(keyed.Nanoseconds()), "key-ns")
	b.ReportMetric(100*(float64(keyed)/float64(open)-1), "added-%")
}
