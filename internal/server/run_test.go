package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/chaintest"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/logtest"
)

// testToken is the token of the tests' chains.
var testToken = invoice.Address{0xc0}

// scripted returns the configuration and the node of a chain of three blocks.
func scripted(t *testing.T, key string, id uint64) (Chain, *chaintest.Node) {
	t.Helper()
	config, _, node := scriptedChain(t, key, id)
	return config, node
}

// scriptedChain is scripted for tests that mine.
func scriptedChain(t *testing.T, key string, id uint64) (Chain, *chaintest.Chain, *chaintest.Node) {
	t.Helper()
	c := chaintest.New(id)
	c.Token(testToken, 6)
	c.MineEmpty(3)
	node := c.Serve(t)
	return Chain{PollInterval: 5 * time.Millisecond, Chain: chain.Chain{
		Key: key, ID: id, RPC: []string{node.URL}, Finality: chain.Finality{Depth: 1},
		Tokens: []chain.Token{{Currency: chain.USDC, Address: testToken, Decimals: 6}},
	}}, c, node
}

// await polls /readyz until wanted returns true, and returns the health.
func await(t *testing.T, base, what string, wanted func(status int, h health) bool) health {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		a := ask(t, http.MethodGet, base+"/readyz", "")
		var h health
		if err := json.Unmarshal([]byte(a.body), &h); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
		if wanted(a.status, h) {
			return h
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("no %s; /readyz answers %d %s", what, a.status, a.body)
		}
	}
}

func create(t *testing.T, base, chainKey string) answer {
	t.Helper()
	return createFor(t, base, "m", chainKey)
}

// createFor is create for any merchant.
func createFor(t *testing.T, base, merchant, chainKey string) answer {
	t.Helper()
	return ask(t, http.MethodPost, base+"/api/invoices", fmt.Sprintf(
		`{"merchantId": %q, "merchantAddress": "0x1111111111111111111111111111111111111111", "amount": "1000000",
		"currency": "USDC", "chainKey": %q, "expiresAt": %d}`, merchant, chainKey, time.Now().Unix()+3600))
}

func TestReadyReportsTheChain(t *testing.T) {
	t.Parallel()
	c, node := scripted(t, "house", 7)
	down := errors.New("the node is down")
	node.Intercept(func(context.Context, string) error { return down })
	var mu sync.Mutex
	now := time.Now()
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	base := startServer(t, Config{Chains: []Chain{c}, Now: clock}).url
	await(t, base, "the error of a node that is down", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && !h.Ready && !h.Chains[0].Ready && h.Chains[0].Error != ""
	})
	node.Intercept(nil)
	good := await(t, base, "readiness", func(status int, h health) bool {
		return status == http.StatusOK && h.Chains[0].Confirmed > 0 // the service is ready before it has indexed all blocks
	})
	want := health{Ready: true, Database: "ok", Chains: []chainHealth{{ChainKey: "house", Ready: true, Head: 3, Indexed: 3, Confirmed: 2}}}
	if diff := cmp.Diff(want, good); diff != "" {
		t.Error(diff)
	}
	text := ask(t, http.MethodGet, base+"/metrics", "").body
	for _, want := range []string{
		`quittance_chain_block{block="head",chain="house"} 3`, `quittance_chain_block{block="confirmed",chain="house"} 2`,
		`quittance_chain_halted{chain="house"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	node.Intercept(func(context.Context, string) error { return down })
	await(t, base, "the error of a node that went down", func(status int, h health) bool {
		return status == http.StatusOK && h.Chains[0].Error != "" // one failed sync does not end readiness
	})
	mu.Lock()
	now = now.Add(stallLimit + time.Second)
	mu.Unlock()
	await(t, base, "the end of readiness", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && !h.Chains[0].Ready
	})
	if a := ask(t, http.MethodGet, base+"/healthz", ""); a.status != http.StatusOK {
		t.Errorf("/healthz answers %d for a chain that stalls", a.status)
	}
	if a := ask(t, http.MethodGet, base+"/readyz?exclude=chains", ""); a.status != http.StatusOK || !strings.Contains(a.body, `"chainKey":"house","ready":false`) {
		t.Errorf("/readyz without the chains answers %d %s", a.status, a.body)
	}
}

// TestReadyHidesReasons asks for the readiness of a chain while its node is away, at a door that the
// internet may reach. The answer names the reason only for the operator.
func TestReadyHidesReasons(t *testing.T) {
	t.Parallel()
	c, node := scripted(t, "house", 7)
	node.Intercept(func(context.Context, string) error { return errors.New("the node is down") })
	key, err := access.NewKey(access.Live, rand.Reader)
	expect.OK(t, err)
	for name, hosts := range map[string][]string{"private": nil, "public": {"pay.example.com"}} {
		base := startServer(t, Config{Chains: []Chain{c}, Hosts: hosts, Access: Access{Mode: access.Live, OperatorKey: key}}).url
		anonymous := await(t, base, "an error of the chain", func(_ int, h health) bool { return h.Chains[0].Error != "" })
		if hidden := anonymous.Chains[0].Error == hiddenReason; hidden != (hosts != nil) {
			t.Errorf("at a %s door, the reason is %q", name, anonymous.Chains[0].Error)
		}
		a := ask(t, http.MethodGet, base+"/readyz", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+key.Reveal()) })
		var h health
		if err := json.Unmarshal([]byte(a.body), &h); err != nil || a.status != http.StatusServiceUnavailable || h.Chains[0].Error == hiddenReason {
			t.Errorf("at a %s door, the operator gets %d %s", name, a.status, a.body)
		}
	}
	h := health{Certificate: "x", Restored: "x", Chains: []chainHealth{{Error: "x", Writer: "x"}, {}}}
	h.hideReasons()
	want := health{Certificate: hiddenReason, Restored: hiddenReason, Chains: []chainHealth{{Error: hiddenReason, Writer: hiddenReason}, {}}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
}

func TestReadyReportsTheDatabase(t *testing.T) {
	store, err := db.Open(t.Context(), dbtest.Migrated(t))
	expect.OK(t, err)
	var log logtest.Buffer
	s := &Server{cfg: Config{Now: time.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))}, store: store, watchdog: clock.New(0)}
	if s.clock, err = db.OpenClock(t.Context(), db.ClockConfig{Store: store, Wall: s.cfg.Now, Logger: s.cfg.Logger}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		w := httptest.NewRecorder()
		s.ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if unreachable := strings.Contains(w.Body.String(), `"database":"unreachable"`); w.Code != want || unreachable != (want != http.StatusOK) {
			t.Errorf("answered %d %s; want %d", w.Code, w.Body, want)
		}
		expect.OK(t, store.Close())
	}
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("it logged %q", log.String())
	}
}

// TestReadyReportsStalledWork begins a task that makes no progress.
func TestReadyReportsStalledWork(t *testing.T) {
	store, err := db.Open(t.Context(), dbtest.Migrated(t))
	expect.OK(t, err)
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	s := &Server{cfg: Config{Now: time.Now, Logger: slog.New(slog.DiscardHandler)}, store: store, watchdog: clock.New(1)}
	if s.clock, err = db.OpenClock(t.Context(), db.ClockConfig{Store: store, Wall: s.cfg.Now, Logger: s.cfg.Logger}); err != nil {
		t.Fatal(err)
	}
	task := s.watchdog.Begin("deliveries: lease")
	for _, step := range []struct {
		status int
		named  bool
		then   func()
	}{{http.StatusServiceUnavailable, true, task.Replace}, {http.StatusOK, true, task.End}, {http.StatusOK, false, nil}} {
		w := httptest.NewRecorder()
		s.ready(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		collected := make(chan prometheus.Metric, 2)
		collector(s.collectStalls).Collect(collected)
		measured := len(collected)
		named := strings.Contains(w.Body.String(), `"work":"deliveries: lease"`)
		if w.Code != step.status || named != step.named || (measured == 1) != step.named {
			t.Errorf("answered %d %s, %d measured; want %d", w.Code, w.Body, measured, step.status)
		}
		if step.then != nil {
			step.then()
		}
	}
}

// TestOneChainCannotStart configures one of two chains with a node of another network. The other chain is served.
func TestOneChainCannotStart(t *testing.T) {
	t.Parallel()
	good, _ := scripted(t, "good", 7)
	bad, node := scripted(t, "bad", 8)
	bad.ID = 9
	var log logtest.Buffer
	requests := make(chan struct{}, 2) // requests to the misconfigured node
	var later atomic.Int64             // offset of the clock
	node.Intercept(func(context.Context, string) error {
		select {
		case requests <- struct{}{}:
		default:
		}
		return nil
	})
	base := startServer(t, Config{
		Chains: []Chain{bad, good}, Merchants: Merchants{AcceptAll: true},
		Now:    func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}).url
	h := await(t, base, "the good chain", func(_ int, h health) bool { return h.Chains[1].Ready })
	if h.Ready || h.Chains[0].Ready {
		t.Errorf("it is ready: %+v", h)
	}
	await(t, base, "the bad chain's error", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(h.Chains[0].Error, "chain id 8")
	})
	if a := create(t, base, "good"); a.status != http.StatusCreated {
		t.Errorf("a create on the good chain: %d %s", a.status, a.body)
	}
	for range cap(requests) {
		<-requests
		later.Add(int64(chain.RecheckAfter))
	}
	if lines := strings.TrimSpace(log.String()); strings.Count(lines, "\n") != 0 || !strings.Contains(lines, "level=ERROR") || !strings.Contains(lines, "chain=bad") {
		t.Errorf("it logged this; want one error about the bad chain:\n%s", lines)
	}
}

// TestStopAnswersRequestsInFlight stops a server during a request.
func TestStopAnswersRequestsInFlight(t *testing.T) {
	c, _ := scripted(t, "house", 7)
	entered, leave := make(chan struct{}), make(chan struct{})
	s := startServer(t, Config{
		Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true},
		TestWallet: func(context.Context, invoice.Invoice) (string, error) {
			close(entered)
			<-leave
			return "0x1", nil
		},
	})
	await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK }) // else the page takes no payment
	var made struct{ CheckoutURL string }
	if a := create(t, s.url, "house"); json.Unmarshal([]byte(a.body), &made) != nil || a.status != http.StatusCreated {
		t.Fatalf("create: %d %s", a.status, a.body)
	}
	go func() {
		defer close(leave) // the request in flight ends ...
		<-entered
		s.stop()
		for { // ... after new connections are refused
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
			if err != nil {
				break
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(s.ended) > 0 {
			t.Error("it ended with a request in flight")
		}
	}()
	if a := ask(t, http.MethodPost, s.url+made.CheckoutURL+"/test-payment", ""); a.status != http.StatusSeeOther {
		t.Errorf("the request in flight is answered %d %s", a.status, a.body)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
}

func TestPortTaken(t *testing.T) {
	taken, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	for range 2 {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}
	base := startServer(t, Config{}).url
	addr := strings.TrimPrefix(base, "http://")
	if _, err := Listen(t.Context(), Address{Listen: addr}); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("listening on an address in use: %v", err)
	}
	if a := ask(t, http.MethodGet, base+"/healthz", ""); a.status != http.StatusOK {
		t.Errorf("the first listener answers %d", a.status)
	}
}

// TestRunClosesItsListener expects Run to close its listener when it fails to start.
func TestRunClosesItsListener(t *testing.T) {
	listener, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	if err := Run(t.Context(), Config{Listeners: []*Listener{listener}, Database: "none", Logger: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("it ran without a database")
	}
	if _, err := listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}
}

// TestDamagedFile starts a service on a SQLite file with a damaged page.
func TestDamagedFile(t *testing.T) {
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 200, 1000)
	expect.OK(t, s.Close())
	path := strings.TrimPrefix(url, "sqlite:")
	content, err := os.ReadFile(path)
	expect.OK(t, err)
	at := bytes.Index(content, []byte(`{"id": "evt_shop_000100"`))
	clear(content[at-at%4096 : at-at%4096+64]) // the page's header, and the place of its rows
	expect.OK(t, os.WriteFile(path, content, 0o600))
	err = Run(t.Context(), Config{Database: url, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a service on a damaged file: %v", err)
	}
}

// TestDuplicateChainDoesNotStart configures two keys with one chain id.
func TestDuplicateChainDoesNotStart(t *testing.T) {
	first, _ := scripted(t, "house", 7)
	second, _ := scripted(t, "home", 7)
	listener, err := Listen(t.Context(), Address{Listen: "127.0.0.1:0"})
	expect.OK(t, err)
	err = Run(t.Context(), Config{
		Listeners: []*Listener{listener}, Database: dbtest.Migrated(t), Chains: []Chain{first, second},
		Merchants: Merchants{AcceptAll: true}, Now: time.Now, Rand: rand.Reader, Logger: slog.New(slog.DiscardHandler),
	})
	if err == nil || !strings.Contains(err.Error(), "house and home have one chain id, 7") {
		t.Errorf("got %v, want an error that names both keys", err)
	}
}

// TestServiceLeavesTheSchema starts a service on a new database and stops it. The database then has the schema of
// internal/db/schema and no other part.
func TestServiceLeavesTheSchema(t *testing.T) {
	t.Parallel()
	for name, empty := range dbtest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reference := dbtest.MigratedDatabases()[name](t)
			dbtest.Open(t, reference)
			database := empty(t)
			c, _, _ := scriptedChain(t, "house", 7)
			s := startServer(t, Config{Database: database, Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}})
			await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
			s.end(t)
			if diff := cmp.Diff(dbtest.Schema(t, reference), dbtest.Schema(t, database)); diff != "" {
				t.Errorf("the schema before (-) and after a service ran (+):\n%s", diff)
			}
		})
	}
}

// TestRemaindersAreAssignedAtStart starts a service on the database of a version without sums, with an unreachable
// chain. The remainder of a partly paid invoice has its transfer amount at once.
func TestRemaindersAreAssignedAtStart(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	now := time.Now().Unix()
	c, node := scripted(t, "house", 7)
	down := errors.New("the node is down")
	node.Intercept(func(context.Context, string) error { return down })
	inv := invoice.Invoice{
		Terms: invoice.Terms{Merchant: invoice.Address{0x11}, Token: testToken, Amount: invoice.NewAmount(1_000_000), ExpiresAt: invoice.Unix(now + 3600)},
		ID:    "inv_00000000000000000000000000", CommitmentID: invoice.Hash{1}, MerchantID: "m", Currency: "USDC", ChainKey: c.Key,
		Status: invoice.Open, CreatedAt: invoice.Unix(now - 60),
	}
	p := ledger.PaymentRow{SeenID: "1", Payment: invoice.Payment{
		ID: "pay_1", InvoiceID: inv.ID, MerchantID: "m", Method: invoice.ByCalldata, Status: invoice.Pending, ObservedAt: time.Unix(now, 0),
		Transfer: invoice.Transfer{
			ChainKey: c.Key, TxHash: invoice.Hash{2}, Token: testToken, Currency: "USDC", From: invoice.Address{0x22}, To: inv.Merchant,
			Amount: invoice.NewAmount(400_000), Position: invoice.Position{BlockNumber: 2, BlockHash: invoice.Hash{3}, BlockTime: invoice.Unix(now)},
		},
	}}
	store, err := db.Open(t.Context(), database)
	expect.OK(t, err)
	err = store.Update(t.Context(), func(tx *db.Tx) error {
		ctx := t.Context()
		_, inserted := ledger.InsertChain(ctx, tx, c.Key, invoice.Header{Number: 2, Hash: invoice.Hash{3}, Time: invoice.Unix(now)}, nil)
		settled := access.InsertSettlementAddresses(ctx, tx, []access.SettlementAddress{{ChainKey: c.Key, Address: inv.Merchant, MerchantID: "m"}}, invoice.Unix(now))
		_, created := ledger.InsertInvoices(ctx, tx, []invoice.Invoice{inv})
		return errors.Join(inserted, settled, created, ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p}))
	})
	expect.OK(t, errors.Join(err, store.Close()))
	if _, err := dbtest.SQL(t, database).ExecContext(t.Context(), "UPDATE invoices SET sums_stale = 1"); err != nil {
		t.Fatal(err)
	}
	base := startServer(t, Config{Chains: []Chain{c}, Database: database}).url
	a := ask(t, http.MethodGet, base+"/api/invoices/"+inv.ID, "")
	if !strings.Contains(a.body, `"amountRemaining":"600000"`) || !strings.Contains(a.body, `"remainingTransferAmount":"600`) {
		t.Errorf("answered %d %s", a.status, a.body)
	}
}

// TestStopLosesNoRequest stops a server under load from clients with and without
// keep-alive. Each request is answered, or its connection is refused.
func TestStopLosesNoRequest(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	s := startServer(t, Config{Chains: []Chain{c}, Merchants: Merchants{AcceptAll: true}, StopDelay: 300 * time.Millisecond})
	await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	const clients, warm = 32, 500
	var answered, closing, afterwards atomic.Int64
	var group sync.WaitGroup
	for i := range clients {
		group.Go(func() {
			transport := &http.Transport{DisableKeepAlives: i%2 == 1, MaxIdleConnsPerHost: 1}
			defer transport.CloseIdleConnections()
			for {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/api/invoices", strings.NewReader("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				r.GetBody = nil // the transport cannot repeat it
				r.Header.Set("Content-Type", "application/json")
				response, err := transport.RoundTrip(r)
				if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
					return // refused
				}
				if err != nil {
					t.Errorf("after %d answers a request was lost: %v", answered.Load(), err)
					return
				}
				_, err = io.Copy(io.Discard, response.Body)
				if err = errors.Join(err, response.Body.Close()); err != nil || response.StatusCode != http.StatusBadRequest {
					t.Errorf("answered %s, %v", response.Status, err)
				}
				if response.Close && i%2 == 0 {
					closing.Add(1)
				}
				if answered.Add(1) == warm {
					s.stop()
				}
				if answered.Load() > warm {
					afterwards.Add(1)
				}
			}
		})
	}
	group.Wait()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	if closing.Load() == 0 {
		t.Error("no kept-alive connection was closed with its response")
	}
	t.Logf("%d requests were answered, %d of them after the stop", answered.Load(), afterwards.Load())
}

// TestStopFailsReadinessFirst asks for the health of a stopping service, and sends it another request, which
// the log of requests then has.
func TestStopFailsReadinessFirst(t *testing.T) {
	t.Parallel()
	c, _ := scripted(t, "house", 7)
	database := dbtest.Migrated(t)
	s := startServer(t, Config{Chains: []Chain{c}, Database: database, StopDelay: 3 * time.Second})
	await(t, s.url, "readiness", func(status int, _ health) bool { return status == http.StatusOK })
	s.stop()
	await(t, s.url, "the end of readiness", func(status int, h health) bool {
		return status == http.StatusServiceUnavailable && h.Stopping && !h.Ready
	})
	if a := ask(t, http.MethodGet, s.url+"/healthz", ""); a.status != http.StatusOK {
		t.Errorf("/healthz answers %d while it stops", a.status)
	}
	if a := ask(t, http.MethodGet, s.url+"/api/invoices/inv_last", ""); a.status != http.StatusNotFound {
		t.Errorf("an unknown invoice is answered with %d while the service stops", a.status)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	logged, err := access.NewReader(dbtest.Open(t, database)).Requests(t.Context(), access.RequestFilter{Limit: 10})
	if err != nil || len(logged) != 1 || logged[0].Path != "/api/invoices/inv_last" {
		t.Errorf("the log of requests has %+v, %v", logged, err)
	}
}

// TestServeMoved continues on PostgreSQL with a database that was moved there, and accepts a cursor from before.
func TestServeMoved(t *testing.T) {
	t.Parallel()
	chain, _ := scripted(t, "house", 5)
	from, to := dbtest.Migrated(t), dbtest.Postgres(t)
	config := Config{Database: from, Chains: []Chain{chain}, Merchants: Merchants{AcceptAll: true}}
	r := startServer(t, config)
	create(t, r.url, "house")
	var before struct{ NextCursor string }
	unmarshal(t, ask(t, http.MethodGet, r.url+"/api/events?merchantId=m&after=start", "").body, &before)
	r.stop()
	expect.OK(t, <-r.ended)
	expect.Success(t)(db.Move(t.Context(), from, to, time.Now(), func(db.MovedTable) {}))
	config.Database = to
	r = startServer(t, config)
	if a := ask(t, http.MethodGet, r.url+"/api/events?merchantId=m&after="+before.NextCursor, ""); a.status != http.StatusOK || before.NextCursor == "" {
		t.Errorf("the cursor %q of before: %d %s", before.NextCursor, a.status, a.body)
	}
	if a := create(t, r.url, "house"); a.status != http.StatusCreated {
		t.Errorf("a create: %d %s", a.status, a.body)
	}
}
