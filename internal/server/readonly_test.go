package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/web/api"
)

// setReadOnly makes a database read-only (on) or writable (off), and closes its
// connections, as a failover to a standby and back does.
func setReadOnly(t *testing.T, database, value string) {
	t.Helper()
	u, err := url.Parse(database)
	expect.OK(t, err)
	name := strings.TrimPrefix(u.Path, "/")
	u.Path = "/postgres"
	conn, err := pgx.Connect(t.Context(), u.String())
	expect.OK(t, err)
	for _, statement := range []string{
		"ALTER DATABASE " + pgx.Identifier{name}.Sanitize() + " SET default_transaction_read_only = " + value,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + name + "'",
	} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Error(err)
		}
	}
	expect.NoError(t, conn.Close(t.Context()))
}

// notice is the body of a transfer provider's notice.
const notice = `{"type":"transfers.created","data":{"id":"tr_1","amount":{"amount":"1.00","currency":"USD"},
	"destination":{"type":"blockchain","address":"0x1111111111111111111111111111111111111111","chain":"HOUSE"}}}`

// TestReadOnlyDatabase makes PostgreSQL read-only. Every route that writes answers 503 with Retry-After, routes that
// read answer 200, and all work again when the database is writable.
func TestReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	blocks := chaintest.New(7)
	blocks.Token(testToken, 6)
	blocks.MineEmpty(3)
	c := Chain{PollInterval: 5 * time.Millisecond, Chain: chain.Chain{
		Key: "house", ID: 7, RPC: []string{blocks.Serve(t).URL}, Finality: chain.Finality{Depth: 1},
		Tokens: []chain.Token{{Currency: chain.USDC, Address: testToken, Decimals: 6}},
	}}
	const secret = "secret of the provider"
	database := dbtest.MigratedPostgres(t)
	log := new(logtest.Buffer)
	base := startServer(t, Config{
		Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}, Keyring: keyringtest.New(t),
		KeepEvents: time.Hour, KeepAttempts: time.Hour,
		Providers: []api.Provider{{Name: "circle", Secret: secret, Chains: map[string]string{"HOUSE": "house"}, Currencies: map[string]string{"USD": "USDC"}}},
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
	}).url
	await(t, base, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	made := create(t, base, "house")
	if made.status != http.StatusCreated {
		t.Fatalf("create: %d %s", made.status, made.body)
	}
	hook := base + "/api/merchants/m/webhook"
	if a := ask(t, http.MethodPut, hook, `{"url":"https://m.example/"}`); a.status != http.StatusCreated && a.status != http.StatusOK {
		t.Fatalf("set an endpoint: %d %s", a.status, a.body)
	}

	setReadOnly(t, database, "on")
	begun := len(log.String())
	blocks.MineEmpty(3) // so that the indexer has something to write
	for _, request := range []struct{ method, url, body string }{
		{http.MethodPut, hook, `{"url":"https://m.example/other"}`},
		{http.MethodPost, hook + "/secret", ""},
		{http.MethodPost, base + "/api/webhooks/circle", notice},
	} {
		a := ask(t, request.method, request.url, request.body, func(r *http.Request) {
			now := time.Now().Unix()
			mac := hmac.New(sha256.New, []byte(secret))
			fmt.Fprintf(mac, "%d.%s", now, request.body)
			r.Header.Set("X-Provider-Signature", fmt.Sprintf("t=%d,v1=%x", now, mac.Sum(nil)))
		})
		if a.status != http.StatusServiceUnavailable || a.code != "unavailable" || a.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %s, Retry-After %q", request.method, request.url, a.status, a.body, a.header.Get("Retry-After"))
		}
	}
	if a := create(t, base, "house"); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("create: %d %s", a.status, a.body)
	}
	for _, path := range []string{"/api/invoices", "/api/payments", "/api/events", "/api/merchants/m/webhook", "/healthz"} {
		if a := ask(t, http.MethodGet, base+path, ""); a.status != http.StatusOK {
			t.Errorf("GET %s: %d %s\n%s", path, a.status, a.body, log.String()[begun:])
		}
	}
	// The indexer's state shows the error until the indexer loses its lease.
	await(t, base, "the indexer's error", func(int, health) bool { return strings.Contains(log.String()[begun:], "sync failed") })
	await(t, base, "the state of the database", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && !h.Ready && h.Database == "takes no writes"
	})
	refusesToStart(t, database)
	setReadOnly(t, database, "off")
	await(t, base, "the end of the error", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Indexed >= 6 })
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Errorf("create afterwards: %d %s", a.status, a.body)
	}
	for _, message := range []string{"sync failed", "lease of deliveries failed", "resync of the delivery queues failed", "request failed"} {
		if n := strings.Count(log.String()[begun:], message); n > 2 {
			t.Errorf("%q was logged %d times:\n%s", message, n, log.String()[begun:])
		}
	}
}

// refusesToStart expects a service on a read-only database to fail at its start.
func refusesToStart(t *testing.T, database string) {
	t.Helper()
	listener, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	err = Run(t.Context(), Config{
		Listeners: []*Listener{listener}, Database: database, Merchants: Merchants{AcceptAll: true}, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "takes no writes: default_transaction_read_only is on") {
		t.Errorf("a service on a read-only database: %v", err)
	}
}
