package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/test/alerttest"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/test/logtest"
	"github.com/quittance/quittance/internal/web/api"
	"github.com/quittance/quittance/internal/webhooks"
)

// metricsOf polls /metrics until they contain all of the lines, and returns them.
func metricsOf(t *testing.T, base string, lines ...string) string {
	t.Helper()
	poll, deadline := time.NewTicker(5*time.Millisecond), time.After(30*time.Second)
	defer poll.Stop()
	for {
		text, missing := ask(t, http.MethodGet, base+"/metrics", "").body, ""
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				missing = line
			}
		}
		if missing == "" {
			return text
		}
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("the metrics lack %s:\n%s", missing, text)
		}
	}
}

// TestExtraAlertsOfAHealthyService expects that no alert fires, except for the head of the chain, which
// does not move here.
func TestExtraAlertsOfAHealthyService(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	receiver, received := newReceiver(t)
	base := startServer(t, Config{
		Chains: []Chain{c}, WebhookAllow: webhooks.Loopback(), Build: Build{Version: "v1.2.3", Commit: "abc"},
		Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: receiver, WebhookSecret: "whsec_of_merchant_m"}}},
	}).url
	if a := create(t, base, "house"); a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	<-received
	text := metricsOf(t, base, "quittance_ready 1", "quittance_database_up 1", `quittance_chain_block{block="indexed",chain="house"} 3`,
		`quittance_events_total{type="invoice.created"} 1`, `quittance_events_total{type="invoice.paid"} 0`)
	if !strings.Contains(text, `quittance_build_info{commit="abc",goversion="go1.`) || !strings.Contains(text, `,version="v1.2.3"} 1`) {
		t.Errorf("the metrics lack the build:\n%s", text)
	}
	alerttest.Fire(t, text, "QuittanceChainHeadStuck")
}

// TestExtraAlertsOfATroubledService checks that alerts fire for a chain without a usable node, a halted
// chain, an endpoint that is gone, and a merchant without an endpoint.
func TestExtraAlertsOfATroubledService(t *testing.T) {
	t.Parallel()
	house, _ := scripted(t, "house", 7)
	halted, _ := scripted(t, "halted", 8)
	down, _ := scripted(t, "down", 9)
	down.RPC = []string{"http://127.0.0.1:1"}
	gone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	t.Cleanup(gone.Close)
	database := dbtest.Migrated(t)
	first := startServer(t, Config{Chains: []Chain{halted}, Database: database})
	await(t, first.url, "readiness", func(status int, h health) bool { return status == http.StatusOK && h.Chains[0].Indexed > 0 })
	first.stop()
	expect.OK(t, <-first.ended)
	halt(t, database, "halted", "finalized block replaced")
	base := startServer(t, Config{
		Chains: []Chain{house, halted, down}, Database: database, WebhookAllow: webhooks.Loopback(),
		Merchants: Merchants{Configured: map[string]access.MerchantSettings{"m": {WebhookURL: gone.URL, WebhookSecret: "whsec_of_merchant_m"}, "n": {}}},
	}).url
	statusOf(t, base, "troubles", func(st admin.Status) bool {
		return st.Chains[1].Halted != "" && st.Chains[2].Providers[0].State == chain.StateBackoff && st.Chains[2].Error != ""
	})
	for _, merchant := range []string{"m", "n"} {
		if a := createFor(t, base, merchant, "house"); a.status != http.StatusCreated {
			t.Fatalf("create: %d %s", a.status, a.body)
		}
	}
	text := metricsOf(t, base, "quittance_ready 0", "quittance_database_up 1", `quittance_chain_halted{chain="halted"} 1`,
		`quittance_webhook_endpoints{breaker="gone"} 1`, "quittance_webhook_waiting_merchants 1",
		`quittance_provider_state{chain="down",node="1",provider="http://127.0.0.1:1",state="backoff"} 1`)
	alerttest.Fire(t, text, "QuittanceNotReady", "QuittanceChainHalted", "QuittanceChainHeadStuck", "QuittanceNoUsableNode", "QuittanceNodeBackoff",
		"QuittanceEndpointDown", "QuittanceMerchantWithoutEndpoint")
}

// smallDisk is a PostgreSQL server with a disk that can be filled.
type smallDisk struct {
	t    *testing.T
	url  string
	fill string // a file on its separate disk; empty without one
}

// newSmallDisk starts a server on a disk in memory. If the system permits no mount, the server refuses
// temporary files instead.
func newSmallDisk(t *testing.T) smallDisk {
	t.Helper()
	dir, err := os.MkdirTemp("", "quittance-disk-") //nolint:usetesting // the user of the server must be able to enter it
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, os.Remove(dir)) })
	d := smallDisk{t: t}
	opts := dbtest.Options{Settings: []string{"min_wal_size=32MB", "max_wal_size=64MB"}}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200m,mode=1777"); err == nil {
		opts.Dir, d.fill = dir, filepath.Join(dir, "fill")
		t.Cleanup(func() { expect.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
	} else if !errors.Is(err, syscall.EPERM) {
		t.Fatal(err)
	}
	cluster, err := dbtest.StartCluster(t.Context(), opts)
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, cluster.Stop()) })
	d.url = cluster.DSN("postgres")
	return d
}

// full fills the disk, or makes room.
func (d smallDisk) full(is bool) {
	d.t.Helper()
	var err error
	switch {
	case d.fill == "":
		d.limitFiles(map[bool]string{true: "0", false: "-1"}[is])
	case is:
		var file *os.File
		if file, err = os.Create(d.fill); err != nil {
			break
		}
		for chunk := make([]byte, 1<<16); err == nil && len(chunk) > 0; {
			if _, err = file.Write(chunk); errors.Is(err, syscall.ENOSPC) {
				chunk, err = chunk[:len(chunk)/2], nil
			}
		}
		err = errors.Join(err, file.Close())
	default:
		err = os.Remove(d.fill)
	}
	expect.OK(d.t, err)
}

func (d smallDisk) limitFiles(to string) {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.url)
	expect.OK(d.t, err)
	for _, statement := range []string{"ALTER SYSTEM SET temp_file_limit = " + to, "SELECT pg_reload_conf()"} {
		expect.Success(d.t)(conn.Exec(d.t.Context(), statement))
	}
	expect.OK(d.t, conn.Close(d.t.Context()))
}

// TestExtraFullDiskOfPostgres fills PostgreSQL's disk. The next reading of the clock, after 5 seconds at most, shows it
// to load balancers and to the alert.
func TestExtraFullDiskOfPostgres(t *testing.T) {
	t.Parallel()
	disk := newSmallDisk(t)
	c, _ := scripted(t, "house", 7)
	base := startServer(t, Config{Database: disk.url, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}}).url
	await(t, base, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	disk.full(true)
	await(t, base, "a full disk", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && h.Database != databaseOK
	})
	metricsOf(t, base, "quittance_database_up 0", "quittance_ready 0")
	disk.full(false)
	await(t, base, "room", func(status int, h health) bool { return status == http.StatusOK && h.Database == databaseOK })
	metricsOf(t, base, "quittance_database_up 1")
}

// TestExtraListsOfStandby runs two services, and lists through each what was just created through the
// other. The standby serves the lists, until it is killed.
func TestExtraListsOfStandby(t *testing.T) {
	t.Parallel()
	primary, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	expect.OK(t, err)
	t.Cleanup(func() { stopCluster(t, primary) })
	standby, err := dbtest.StartReplica(t.Context(), primary)
	expect.OK(t, err)
	t.Cleanup(func() { stopCluster(t, standby) })
	var bases []string
	for range 2 {
		c, _ := scripted(t, "house", 7)
		bases = append(bases, startServer(t, Config{
			Database: primary.DSN("postgres"), ReadOnly: standby.DSN("postgres"), Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		}).url)
	}
	createAndList := func(n int) {
		t.Helper()
		made := create(t, bases[n%2], "house")
		var inv struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal([]byte(made.body), &inv); err != nil || made.status != http.StatusCreated {
			t.Fatalf("create: %d %s", made.status, made.body)
		}
		listed := ask(t, http.MethodGet, bases[(n+1)%2]+"/api/invoices", "")
		if listed.status != http.StatusOK || !strings.Contains(listed.body, fmt.Sprintf("%q", inv.ID)) {
			t.Fatalf("the list lacks %s: %d %s", inv.ID, listed.status, listed.body)
		}
	}
	const replayed = `quittance_list_reads_total{reason="replayed",server="standby"} `
	for n := 0; n < 20 || strings.Contains(metricsOf(t, bases[0])+metricsOf(t, bases[1]), "\n"+replayed+"0\n"); n++ {
		createAndList(n)
	}
	expect.OK(t, standby.Kill(t.Context()))
	for n := range 4 {
		createAndList(n)
	}
	for _, base := range bases {
		if a := ask(t, http.MethodGet, base+"/readyz", ""); a.status != http.StatusOK {
			t.Errorf("without the standby: %d %s", a.status, a.body)
		}
		metricsOf(t, base, "quittance_ready 1")
	}
}

func stopCluster(t *testing.T, c *dbtest.Cluster) {
	t.Helper()
	expect.NoError(t, c.Stop())
}

// setReadOnly makes a database read-only (on) or writable (off), and closes its
// connections, as a failover to a standby and back does.
func setReadOnly(t *testing.T, database, value string) {
	t.Helper()
	u := expect.Must(url.Parse(database))
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
