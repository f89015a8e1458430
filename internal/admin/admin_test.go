package admin_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/certs"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const now = 1_764_000_000

func clock() time.Time { return time.Unix(now, 0) }

func TestAsk(t *testing.T) {
	want := admin.Status{Chains: []admin.Chain{{ChainKey: "house", ChainID: 7, Ready: true, Head: 3, Providers: []admin.Provider{{State: chain.StateOK}}}}}
	for name, test := range map[string]struct {
		status int
		body   any
		want   string // in the error
	}{
		"a status":   {http.StatusOK, want, ""},
		"no chains":  {http.StatusOK, map[string]any{"chains": []any{}}, ""},
		"a stranger": {http.StatusNotFound, map[string]any{}, "answers 404 Not Found when asked for its status"},
		"other JSON": {http.StatusOK, map[string]any{"ok": true}, "no status of a Quittance service"},
		"no object":  {http.StatusOK, "hello", "no status of a Quittance service"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/pay/status" {
					t.Errorf("it asks %s %s", r.Method, r.URL)
				}
				w.WriteHeader(test.status)
				if err := json.NewEncoder(w).Encode(test.body); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			got, err := admin.FetchStatus(t.Context(), admin.Service{URL: server.URL + "/pay"}, "")
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) || errors.Is(err, admin.ErrNoService) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			if diff := cmp.Diff(test.body, any(got)); err == nil && name == "a status" && diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	if _, err := admin.FetchStatus(t.Context(), admin.Service{URL: gone.URL}, ""); !errors.Is(err, admin.ErrNoService) {
		t.Errorf("where nothing listens: %v", err)
	}
	for _, url := range []string{"", "127.0.0.1:8080", "ftp://h", "http://", "http://h:port"} {
		if _, err := admin.FetchStatus(t.Context(), admin.Service{URL: url}, ""); err == nil || errors.Is(err, admin.ErrNoService) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// world is a service that is configured with a chain of five blocks, of which it read three, and with
// a chain that has the node of another chain.
func world(t *testing.T) (admin.Config, *ledger.Service) {
	t.Helper()
	scripted := chaintest.New(7)
	scripted.Token(invoice.Address{0xc0}, 6)
	scripted.MineEmpty(5)
	node := scripted.Serve(t)
	house := chain.Chain{
		Key: "house", ID: 7, RPC: []string{node.URL, "http://127.0.0.1:1/hunter2"}, Finality: chain.Finality{Depth: 1}, Quorum: 2,
		Tokens: []chain.Token{{Currency: chain.USDC, Address: invoice.Address{0xc0}, Decimals: 6}},
	}
	moon := house
	moon.Key, moon.ID, moon.RPC, moon.Quorum = "moon", 9, []string{node.URL}, 0
	c := admin.Config{Database: dbtest.SQLite(t), Chains: []chain.Chain{house, moon}, Now: clock}
	service := ledger.New(ledger.Config{Store: dbtest.Open(t, c.Database), Chains: c.Chains, Now: clock})
	expect.OK(t, service.Start(t.Context(), "house", invoice.Header{Number: 3, Hash: invoice.Hash{3}, Time: invoice.Unix(now - 40)}, 4))
	return c, service
}

// look returns the result of Look without values that depend on the day.
func look(t *testing.T, c admin.Config) admin.Status {
	t.Helper()
	st := admin.OfflineStatus(t.Context(), c)
	for _, c := range st.Chains {
		for i, p := range c.Providers {
			if strings.Contains(p.Provider+p.Reason+p.LastError, "hunter2") {
				t.Errorf("it shows a key: %+v", p)
			}
			if failing := p.State == chain.StateBackoff; (p.LastError != "") != failing || (p.FailingSince > 0) != failing || (p.LastErrorAt > 0) != failing {
				t.Errorf("the failure of node %d of %s: %+v", i, c.ChainKey, p)
			}
			if p.Until != 0 || p.Calls == 0 || (p.Reason != "") != (p.State != chain.StateOK) {
				t.Errorf("node %d of %s: %+v", i, c.ChainKey, p)
			}
		}
	}
	return st
}

// ofTheDay are members with values that differ from run to run.
var ofTheDay = cmpopts.IgnoreFields(admin.Provider{}, "Provider", "Calls", "Errors", "LatencyMs", "HeadAt", "Until", "Reason", "FailingSince", "LastError", "LastErrorAt")

func TestLook(t *testing.T) {
	c, service := world(t)
	expect.Success(t)(service.Rescan(t.Context(), "house", 2))
	expect.OK(t, service.Halt(t.Context(), "house", "somebody must look"))
	want := admin.Status{Chains: []admin.Chain{{
		ChainKey: "house", ChainID: 7, Finality: "1", Quorum: 2, Head: 5, Indexed: 3, Confirmed: 3, Lag: admin.Lag{Blocks: 2, Seconds: 40},
		Halted: "somebody must look", Backfill: &admin.Progress{From: 2, To: 3, Next: 2},
		Providers: []admin.Provider{{State: chain.StateOK, Health: apitypes.NodeOK, Head: 5}, {State: chain.StateBackoff, Health: apitypes.NodePaused}},
		Checks:    []admin.Check{{Check: "receipts", State: "on"}, {Check: "bloom", State: "unknown"}, {Check: "logs", State: "quorum"}, {Check: "witness", State: "on"}, {Check: "agree", State: "on"}},
	}, {
		ChainKey: "moon", ChainID: 9, Finality: "1", Quorum: 1, Error: "the chain was never read",
		Providers: []admin.Provider{{State: chain.StateMisconfigured, Health: apitypes.NodePaused}},
		Checks:    []admin.Check{{Check: "receipts", State: "on"}, {Check: "bloom", State: "unknown"}, {Check: "logs", State: "off"}, {Check: "witness", State: "off"}, {Check: "agree", State: "off"}},
	}}}
	if diff := cmp.Diff(want, look(t, c), ofTheDay); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNoDatabase looks at a service that never ran, and creates no file.
func TestNoDatabase(t *testing.T) {
	c, _ := world(t)
	path := filepath.Join(t.TempDir(), "none", "quittance.db")
	c.Database = "sqlite:" + path
	for _, got := range look(t, c).Chains {
		if !strings.Contains(got.Error, "there is no database yet") {
			t.Errorf("%s: the error is %q", got.ChainKey, got.Error)
		}
	}
	if err := c.WithLedger(t.Context(), nil); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made the database's folder: %v", err)
	}
}

func TestLagAndProgress(t *testing.T) {
	for _, test := range []struct {
		head, indexed uint64
		time          int64
		want          admin.Lag
	}{
		{9, 9, now - 60, admin.Lag{}},
		{9, 4, now - 60, admin.Lag{Blocks: 5, Seconds: 60}},
		{9, 8, now + 5, admin.Lag{Blocks: 1}}, // the chain's clock is ahead
		{4, 9, now - 60, admin.Lag{}},         // the head is from a node that lags
	} {
		if got := admin.LagOf(test.head, test.indexed, invoice.Unix(test.time), clock()); got != test.want {
			t.Errorf("LagOf(%d, %d, %d) = %+v, want %+v", test.head, test.indexed, test.time, got, test.want)
		}
	}
	if got := admin.NewProgress(10, 9, 10, 0); got.Percent != 0 {
		t.Errorf("of no blocks: %+v", got)
	}
	for next, want := range map[uint64]float64{10: 0, 11: 11.11, 15: 55.56, 19: 100} {
		if got := admin.NewProgress(10, 18, next, 1/3.0); got.BlocksPerSecond != 0.33 || got.Percent != want || got.Next != next {
			t.Errorf("at %d: %+v, want %v %%", next, got, want)
		}
	}
}

// TestRetireChain retires a chain, so that its chain id can have another key. Until then a second key is refused.
func TestRetireChain(t *testing.T) {
	c, _ := world(t)
	store := dbtest.Open(t, c.Database)
	renamed := c.Chains[0]
	renamed.Key = "home"
	start := func(chains ...chain.Chain) error {
		_, _, err := ledger.Remember(t.Context(), store, ledger.Start{Configured: chain.ConfiguredChains{Chains: chains}, Now: clock(), Plan: true})
		return err
	}
	if _, err := admin.RememberedChain(t.Context(), c, "mars"); !errors.Is(err, ledger.ErrUnknownChain) {
		t.Errorf("a chain that was never configured: %v, want %v", err, ledger.ErrUnknownChain)
	}
	if _, _, err := ledger.Remember(t.Context(), dbtest.Open(t, c.Database), ledger.Start{Configured: chain.ConfiguredChains{Chains: c.Chains}, Now: clock()}); err != nil {
		t.Fatal(err)
	}
	known, err := admin.RememberedChain(t.Context(), c, "house")
	if err != nil || known.ID != 7 || known.Uses.String() != "" {
		t.Errorf("house is %+v (%v)", known, err)
	}
	var refused *chain.RefusedError
	if err := start(renamed); !errors.As(err, &refused) {
		t.Errorf("a second key: %v, want a refusal", err)
	}
	expect.OK(t, ledger.RetireChain(t.Context(), store, "house", clock()))
	if err := start(renamed); err != nil {
		t.Errorf("another key after the chain was retired: %v", err)
	}
	if err := start(c.Chains...); err == nil || !strings.Contains(err.Error(), "house was retired") {
		t.Errorf("the retired key: %v, want a refusal", err)
	}
}

// TestMerchantDifferences compares configurations without the merchant "shop", and with another company in its place.
func TestMerchantDifferences(t *testing.T) {
	t.Parallel()
	url := dbtest.Migrated(t)
	dbtest.Schedule(t, dbtest.Open(t, url), "shop", 0, 2, 1000)
	config := func(shop ...invoice.AllowedAddress) admin.MerchantsConfig {
		c := admin.MerchantsConfig{Database: url, Configured: map[string]access.MerchantSettings{}}
		if shop != nil {
			c.Configured["shop"] = access.MerchantSettings{Merchant: invoice.Merchant{Allowed: shop}}
		}
		return c
	}
	one, two := invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{1}}, invoice.AllowedAddress{ChainKey: "base", Address: invoice.Address{2}}
	for _, is := range []admin.MerchantsConfig{config(one), config()} {
		expect.OK(t, admin.WithManagers(t.Context(), is, func(m admin.Managers) error {
			_, err := m.Merchants.RecordConfigured(t.Context())
			return err
		}))
	}
	for _, test := range []struct {
		config admin.MerchantsConfig
		kind   chain.DifferenceKind
		want   string
	}{
		{config(), chain.Harmless, "it has 1 open invoices, 2 waiting events and 0 keys"},
		{config(two), chain.Dangerous, "quittance merchant resume shop"},
	} {
		got, err := admin.MerchantDifferences(t.Context(), test.config)
		if err != nil || len(got) != 1 || got[0].Kind != test.kind || !strings.Contains(got[0].Text, test.want) {
			t.Errorf("%v, %v; want %s: %s", got, err, test.kind, test.want)
		}
	}
}

// TestReseal seals the secret of an endpoint under a new key.
func TestReseal(t *testing.T) {
	old, newer := keyringtest.Key(t), keyringtest.Key(t)
	both := access.NewKeyring(newer, old)
	missing := dbtest.SQLite(t)
	if _, err := admin.Reseal(t.Context(), missing, both); err == nil || !strings.Contains(err.Error(), "there is no database yet") {
		t.Errorf("without a database: %v", err)
	}
	if _, err := os.Stat(strings.TrimPrefix(missing, "sqlite:")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made a database: %v", err)
	}
	for _, fresh := range dbtest.MigratedDatabases() {
		url := fresh(t)
		store := dbtest.Open(t, url)
		seal := func(version int64) ([]byte, string, error) {
			s := access.NewKeyring(old).Seal("cafe", version, "whsec_cafe")
			return s.Data, s.KeyID, nil
		}
		expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
			_, err := webhooks.PutEndpoint(t.Context(), tx, webhooks.EndpointRow{MerchantID: "cafe", URL: "https://cafe.example/", ChangedAt: invoice.Unix(1)}, seal)
			return err
		}))
		certificates := func(k *access.Keyring) *certs.Cache {
			return &certs.Cache{Store: store, Keyring: k, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
		}
		expect.OK(t, certificates(access.NewKeyring(old)).Put(t.Context(), "pay.example.com", []byte("certificate")))
		for want := 1; want >= 0; want-- {
			if n, err := admin.Reseal(t.Context(), url, both); err != nil || n != want {
				t.Errorf("%d sealed anew, %v; want %d", n, err, want)
			}
		}
		secrets, err := webhooks.Secrets(t.Context(), store, []string{"cafe"})
		expect.OK(t, err)
		r := secrets["cafe"][0]
		if got, err := access.NewKeyring(newer).Open("cafe", r.Version, access.Sealed{KeyID: r.KeyID, Data: r.Sealed}); got != "whsec_cafe" || err != nil || r.State != webhooks.SecretActive {
			t.Errorf("under the new key it is %q, %v", got, err)
		}
		if got, err := certificates(access.NewKeyring(newer)).Get(t.Context(), "pay.example.com"); string(got) != "certificate" || err != nil {
			t.Errorf("under the new key the certificate is %q, %v", got, err)
		}
	}
}

func TestCheckReady(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusOK:                 "",
		http.StatusServiceUnavailable: `is not ready: 503 {"ready":false,"database":"unreachable"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.String() != "/readyz?exclude=chains" {
				t.Errorf("it asks %s %s", r.Method, r.URL)
			}
			w.WriteHeader(status)
			if _, err := io.WriteString(w, `{"ready":false,"database":"unreachable"}`+"\n"); err != nil {
				t.Error(err)
			}
		}))
		err := admin.CheckReady(t.Context(), admin.Service{URL: server.URL}, "chains")
		server.Close()
		if (err != nil) != (want != "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d: the error is %v, want %q", status, err, want)
		}
		if err := admin.CheckReady(t.Context(), admin.Service{URL: server.URL}, "chains"); !errors.Is(err, admin.ErrNoService) {
			t.Errorf("where nothing listens: %v", err)
		}
	}
}

// TestDialedService connects to where a service listens although its name leads elsewhere,
// and verifies the certificate for the name.
func TestDialedService(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Host, ":9090") {
			t.Errorf("the host is %s", r.Host)
		}
		if r.URL.Path == "/status" {
			if _, err := io.WriteString(w, `{"chains":[]}`); err != nil {
				t.Error(err)
			}
		}
	}))
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	at := admin.Service{URL: "https://example.com:9090", Dial: server.Listener.Addr().String(), Roots: roots}
	if err := admin.CheckReady(t.Context(), at); err != nil {
		t.Error(err)
	}
	if _, err := admin.FetchStatus(t.Context(), at, ""); err != nil {
		t.Error(err)
	}
	other := at
	other.URL = "https://pay.test:9090"
	var name x509.HostnameError
	if err := admin.CheckReady(t.Context(), other); !errors.As(err, &name) || name.Host != "pay.test" {
		t.Errorf("with the certificate of another host: %v", err)
	}
	at.Dial, at.URL = "127.0.0.1:1", "https://me:s3cr3t@example.com:9090/s3cr3t?key=s3cr3t"
	if err := admin.CheckReady(t.Context(), at); !errors.Is(err, admin.ErrNoService) || !strings.Contains(err.Error(), "no answer at https://example.com:9090 on 127.0.0.1:1: ") || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("where nothing listens: %v", err)
	}
}
