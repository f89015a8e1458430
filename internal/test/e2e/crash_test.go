package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/apitypes"
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
			raw, err := os.ReadFile(from)
			expect.OK(w, err)
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
			line, err := json.Marshal(map[string]any{"headers": map[string]string{webhook.HeaderSignature: told.signature}, "body": string(told.body)})
			expect.OK(t, err)
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
