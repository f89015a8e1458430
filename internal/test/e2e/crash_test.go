package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

var (
	seed  = flag.Uint64("seed", 0, "random choices of TestExtraCrash; 0 chooses")
	kills = flag.Int("kills", 6, "how often TestExtraCrash kills the program in the middle of its work")
)

const (
	// startKills is the number of kills during the first start, which creates keys, chain and database.
	startKills = 4
	// startTime exceeds the duration of a first start on an idle machine.
	startTime = 400 * time.Millisecond
	// maxUptime is the longest time between two kills.
	maxUptime = 2 * time.Second
	// shopCount is the number of orders in progress at the same time.
	shopCount = 6
	// tradeTime bounds the time of all kills, and recovery the time until all work is done after the last one. They
	// end a test of a program that is stuck: on an idle machine the kills take half a minute, and the last deliveries
	// are retried 36 s later.
	tradeTime = 6 * time.Minute
	recovery  = 3 * time.Minute
)

// TestExtraCrash kills the program at random moments while invoices are created, paid, refunded
// and expire, and compares their final state with the chain.
func TestExtraCrash(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("the same choices again: go test ./internal/test/e2e -run '^TestExtraCrash$' -seed %d -kills %d", *seed, *kills)
	random := rand.New(rand.NewPCG(*seed, 0))
	ctx := within(t, tradeTime)
	r := newReceiver(t)
	w := newWorld(t, "--block-time", "200ms", "--webhook-url", r.URL)
	for range startKills {
		c := w.begin()
		elapse(c, time.Duration(random.Int64N(int64(startTime))))
		c.kill()
	}
	c := w.start()
	r.setSecret(w.info.Load().Merchant.WebhookSecret)
	shops := w.openShops(ctx, shopCount, random)

	// After the last kill, shops finish their orders.
	closing := make(chan struct{})
	trade, ctx := errgroup.WithContext(ctx)
	for _, s := range shops {
		trade.Go(func() error {
			for {
				select {
				case <-closing:
					return nil
				default:
				}
				if err := s.trade(ctx); err != nil {
					return err
				}
			}
		})
	}
	t.Cleanup(func() { _ = trade.Wait() }) // the context of a failed test has ended
	for n := range *kills {
		// The receiver fails early enough for second retries to be in time.
		r.behave(nil)
		if n%5 == 1 && n < *kills/2 {
			r.behave(hangUp)
		}
		if random.IntN(4) == 0 {
			elapse(c, time.Duration(random.Int64N(int64(startTime)))) // during its start
		} else if w.ready(c) {
			elapse(c, time.Duration(random.Int64N(int64(maxUptime))))
		}
		if c.ended() {
			t.Fatalf("the program ended by itself before kill %d:\n%s", n+1, c.stderr.String())
		}
		c.kill()
		c = w.begin()
	}
	if !w.ready(c) {
		t.Fatalf("the program did not come up again:\n%s", c.stderr.String())
	}
	close(closing)
	expect.OK(t, trade.Wait())
	awaitSettled(t, &auditor{world: w, shops: shops, receiver: r}, c)
}

// awaitSettled waits for the expected state, stops the program gracefully, and checks the state again.
func awaitSettled(t *testing.T, a *auditor, c *child) {
	t.Helper()
	ctx := within(t, recovery)
	var err error
	if a.chain, err = a.shops[0].customer.movements(ctx); err != nil {
		t.Fatal(err)
	}
	begun, left := time.Now(), 0
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for faults := a.audit(ctx); len(faults) > 0; faults = a.audit(ctx) {
		if len(faults) != left {
			left = len(faults)
			t.Logf("%.1fs after the last kill: %d things are not as they must be", time.Since(begun).Seconds(), left)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("after %s still %d things are not as they must be:\n%s", recovery, len(faults), shown(a.audit(context.WithoutCancel(ctx))))
		}
	}
	if code := c.stop(t, syscall.SIGTERM, patience); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	// All deliveries that were in flight have arrived.
	a.wrong = nil
	if a.events(); len(a.wrong) > 0 {
		t.Errorf("after the end:\n%s", shown(a.wrong))
	}
	a.summary()
}

// elapse waits for a time, or until the child ends.
func elapse(c *child, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.done:
	}
}

// restoreConfig configures a service before its database is restored.
const restoreConfig = `
listen: 127.0.0.1:0
` + keySetting + `
database: {urlEnv: DATABASE_URL}
merchants: [{id: acme, webhookUrl: "%s", webhookSecretEnv: ACME_SECRET}]
webhooks: {allow: [127.0.0.1]}
chains:
  - chainKey: testnet
    idleInterval: 1s
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
`

// backupWay is a way to back up a database while the service runs, and to restore it.
type backupWay struct {
	fresh   func(testing.TB) string // returns the URL of a new database
	backup  func(w *world, env []string, config, url, to string)
	restore func(w *world, url, from string) string // returns the URL of the restored database
}

// backups are the ways by the name of the database.
var backups = map[string]backupWay{
	"sqlite": {
		dbtest.SQLite,
		func(w *world, env []string, config, _, to string) {
			if code := launchWith(w, env, "backup", to, "--config", config).exit(w, patience); code != 0 {
				w.Fatalf("backup: exit code %d", code)
			}
		},
		func(w *world, url, from string) string {
			path := strings.TrimPrefix(url, "sqlite:")
			raw := expect.Must(os.ReadFile(from))
			for _, end := range []string{"-wal", "-shm"} {
				expect.OK(w, os.RemoveAll(path+end))
			}
			expect.OK(w, os.WriteFile(path, raw, 0o600))
			return url
		},
	},
	"postgres": {
		dbtest.Postgres,
		func(w *world, _ []string, _, url, to string) {
			runTool(w, "pg_dump", "--format=custom", "--file="+to, url)
		},
		func(w *world, _, from string) string {
			url := dbtest.Postgres(w)
			runTool(w, "pg_restore", "--exit-on-error", "--no-owner", "--dbname="+url, from)
			return url
		},
	},
}

// runTool runs a program of PostgreSQL's client.
func runTool(w *world, name string, args ...string) {
	w.Helper()
	path, err := testdeps.ProgramOf(w.Context(), "e2e", "postgresql-client", name)
	expect.OK(w, err)
	if out, err := exec.CommandContext(w.Context(), path, args...).CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func serveEnv(database string) []string {
	return []string{"ACME_SECRET=whsec_of_acme_shop", "DATABASE_URL=" + database}
}

// TestExtraRestore loses a database. A backup is made while the service runs. Later an invoice is created and paid. The
// restored database is not served before quittance recover. The merchant's copy brings the lost invoice back, and it is
// paid. The simulator restores backups in many more situations.
func TestExtraRestore(t *testing.T) {
	t.Parallel()
	for name, by := range backups {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, r := newServedWorld(t), newReceiver(t)
			chain := g.info.Load().Chain
			r.setSecret("whsec_of_acme_shop")
			r.restored = true
			g.configure(fmt.Sprintf(restoreConfig, r.URL, chain.ChainID, chain.RPCURL, chain.Token))
			url, to := by.fresh(t), filepath.Join(g.dir, "backup")
			g.env = serveEnv(url)
			c := g.serve()
			kept := g.create(g.draft("1000000"))
			r.await(g.ctx, webhook.InvoiceCreated, kept.ID)
			by.backup(g.world, g.env, g.file, url, to)
			lost := g.create(g.draft("2000000"))
			told := r.await(g.ctx, webhook.InvoiceCreated, lost.ID)
			g.chain.payer().mustTransfer(t, lost.Invoice.MerchantAddress, lost.Invoice.TransferAmount, nil)
			paid := func(inv apitypes.Invoice) bool { return inv.Status == apitypes.StatusPaid }
			g.awaitInvoice(lost.ID, paid)
			c.kill()

			g.env = serveEnv(by.restore(g.world, url, to))
			c = launchWith(t, g.env, "serve", "--config", g.file)
			if code := c.exit(t, patience); code == 0 || !strings.Contains(c.stderr.String(), "quittance recover") {
				t.Fatalf("serve on a restored database: exit code %d\n%s", code, c.stderr.String())
			}
			if c = launchWith(t, g.env, "recover", "--config", g.file); c.exit(t, patience) != 0 {
				t.Fatalf("recover failed:\n%s%s", c.stdout.String(), c.stderr.String())
			}
			line := expect.Must(json.Marshal(map[string]any{"headers": map[string]string{webhook.HeaderSignature: told.signature}, "body": string(told.body)}))
			copies := filepath.Join(g.dir, "copies.jsonl")
			expect.OK(t, os.WriteFile(copies, append(line, '\n'), 0o600))
			c = launchWith(t, g.env, "recover", "import", copies, "--config", g.file, "--json")
			var sum struct{ BySignature int }
			if code := c.exit(t, patience); code != 0 || json.Unmarshal([]byte(c.stdout.String()), &sum) != nil || sum.BySignature != 1 {
				t.Fatalf("recover import: exit code %d\n%s%s", code, c.stdout.String(), c.stderr.String())
			}
			g.serve()
			g.awaitInvoice(lost.ID, paid)
			if got := g.payments(lost.ID); len(got) != 1 {
				t.Errorf("the lost invoice has the payments %+v, want one", got)
			}
			if inv := g.awaitInvoice(kept.ID, func(apitypes.Invoice) bool { return true }); inv.Status != apitypes.StatusOpen {
				t.Errorf("the other invoice is %s", inv.Status)
			}
			r.clean()
		})
	}
}

var replicaKills = flag.Int("replica-kills", 2, "how often TestExtraKilledReplicas kills a replica")

const (
	// killInterval is the time from one kill to the next.
	killInterval = 3 * time.Second
	// outlastLeases is longer than the leases of a killed replica last.
	outlastLeases = 75 * time.Second
)

// TestExtraKilledReplicas kills one of three replicas behind a proxy every few seconds and
// restarts it, while invoices are created and paid. No accepted invoice is lost or created
// twice, each event arrives once, and no transaction is sent twice.
func TestExtraKilledReplicas(t *testing.T) {
	t.Parallel()
	s := newService(t, dbtest.MigratedPostgres(t))
	before := s.nonce()
	replicas := []*replica{s.start(), s.start(), s.start()}
	p := newProxy(t, replicas)
	front := &replica{url: p.URL}
	orders := s.takeOrders(front)
	orders.await(t, ordersBetween)

	wantTypes := make(map[string][]string)
	paid := make(map[string]apitypes.CreateInvoiceResponse) // by transaction
	next := time.NewTicker(killInterval)
	defer next.Stop()
	var longest time.Duration // the longest time from a kill until the replica worked again
	for n := range *replicaKills {
		killed, at := time.Now(), n%len(replicas)
		replicas[at].kill()
		made := s.createWithRetries(front, fmt.Sprintf("paid-%d", n), 1_000_000+n)
		paid[s.payTransferAmount(made)] = made
		wantTypes[made.ID] = []string{webhook.InvoiceCreated, webhook.PaymentReceived, webhook.InvoicePaid}
		replicas[at] = s.start()
		p.replace(at, replicas[at])
		longest = max(longest, time.Since(killed))
		select {
		case <-next.C:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
	orders.await(t, ordersBetween)
	made := orders.stop()
	for id := range made {
		wantTypes[id] = []string{webhook.InvoiceCreated}
	}
	t.Logf("%d kills, %d invoices created with a key each, refused attempts: %d, requests passed to another replica: %d; a replica worked again within %s",
		*replicaKills, len(made), orders.refused, p.passedOn(), longest.Round(time.Millisecond))

	s.patience = outlastLeases // replicas were killed between a delivery's lease and its outcome
	s.awaitEvents(wantTypes)
	for tx, inv := range paid {
		s.awaitPayment(front, inv.ID, tx, apitypes.PaymentConfirmed)
		s.awaitCommitment(inv.OnChainInvoiceID, contracts.StatusClosed)
	}
	s.expectInvoices(front, wantTypes)
	s.expectPaidOnce(front, paid)
	s.expectEventsOnce(wantTypes)
	// A transaction that two replicas sent would have no effect.
	if sent, useful := s.nonce()-before, s.registryTransactions(); sent > useful {
		t.Errorf("%d transactions were sent to the registry, of which %d changed something", sent, useful)
	}
}

// nonce returns how many transactions the operator has sent.
func (s *service) nonce() int {
	s.Helper()
	n := expect.Must(strconv.Atoi(s.chain.Cast(s, "nonce", s.admin.Address)))
	return n
}

// registryTransactions returns the number of transactions that opened or closed commitments.
func (s *service) registryTransactions() int {
	s.Helper()
	changed := make(map[string]bool)
	for _, event := range []string{"Opened(bytes32)", "Closed(bytes32)"} {
		text := s.chain.Cast(s, "logs", "--json", "--from-block", "0", "--address", s.registry, event)
		var logs []struct {
			TxHash string `json:"transactionHash"`
		}
		if err := json.Unmarshal([]byte(text), &logs); err != nil {
			s.Fatalf("cast logs printed no logs: %v\n%s", err, text)
		}
		for _, l := range logs {
			changed[l.TxHash] = true
		}
	}
	return len(changed)
}

// createWithRetries creates an invoice with an idempotency key, and repeats the request until it is answered.
func (s *service) createWithRetries(r *replica, key string, amount int) (made apitypes.CreateInvoiceResponse) {
	s.Helper()
	draft, api := s.draft(amount), s.api(r)
	var err error
	if await(within(s, s.patience), func() bool {
		made, err = api.CreateInvoice(s.Context(), draft, client.IdempotencyKey(key))
		return err == nil
	}) != nil {
		s.Fatal(err)
	}
	return made
}

// expectPaidOnce fails the test unless exactly these transactions each paid their invoice once.
func (s *service) expectPaidOnce(r *replica, paid map[string]apitypes.CreateInvoiceResponse) {
	s.Helper()
	payments := s.payments(r)
	if len(payments) != len(paid) {
		s.Errorf("there are %d payments; want %d", len(payments), len(paid))
	}
	for _, p := range payments {
		if p.Status != apitypes.PaymentConfirmed || p.InvoiceID != paid[p.TxHash].ID {
			s.Errorf("transaction %s paid invoice %s; the payment is %+v", p.TxHash, paid[p.TxHash].ID, p)
		}
	}
	for tx, made := range paid {
		if inv := s.invoice(r, made.ID); inv.Status != apitypes.StatusPaid || inv.SettledTxHash != tx || inv.Exception != "" {
			s.Errorf("after transaction %s the invoice is %+v", tx, inv)
		}
	}
}

// proxy passes requests to replicas in turn. As nginx does by default, it passes a request to the next
// replica if it cannot connect to one, or if one breaks off and the method is idempotent. Otherwise it
// closes the client's connection.
type proxy struct {
	*httptest.Server
	transport *http.Transport

	mu      sync.Mutex
	targets []*url.URL
	turn    int
	passed  int // number of requests that were passed to another replica
}

func newProxy(tb testing.TB, replicas []*replica) *proxy {
	tb.Helper()
	p := &proxy{targets: make([]*url.URL, len(replicas)), transport: &http.Transport{MaxIdleConnsPerHost: 16, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext}}
	for i, r := range replicas {
		p.replace(i, r)
	}
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, Transport: p,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(tb.Output(), "proxy: ", 0),
	})
	tb.Cleanup(func() {
		p.Server.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// replace replaces one replica by another.
func (p *proxy) replace(at int, r *replica) {
	target, err := url.Parse(r.url)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets[at] = target
}

// passedOn returns the number of requests that were passed to another replica.
func (p *proxy) passedOn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// next returns the replica that takes the next request.
func (p *proxy) next(again bool) *url.URL {
	p.mu.Lock()
	defer p.mu.Unlock()
	if again {
		p.passed++
	}
	p.turn++
	return p.targets[p.turn%len(p.targets)]
}

// RoundTrip implements http.RoundTripper.
func (p *proxy) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	for try := range len(p.targets) {
		target := p.next(try > 0)
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = target.Scheme, target.Host
		answer, err = p.transport.RoundTrip(out)
		if err == nil || errors.Is(err, context.Canceled) || !canPassOn(r, err) {
			return answer, err
		}
	}
	return answer, err
}

// canPassOn reports whether a request that failed may be sent to another replica.
func canPassOn(r *http.Request, err error) bool {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return true
	}
	return r.Method == http.MethodGet
}
