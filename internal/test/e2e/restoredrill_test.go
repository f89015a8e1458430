package e2e

import (
	"context"
	"crypto/ecdsa"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/dbtest"
)

var (
	drillRounds = flag.Int("drill.rounds", 2, "how many rounds TestExtraRestoreDrill plays with each kind of backup")
	drillSeed   = flag.Uint64("drill.seed", 1, "seed of the first round of TestExtraRestoreDrill")
)

const (
	// drillTime bounds a round, drillPatience each of its waits.
	drillTime     = 4 * time.Minute
	drillPatience = time.Minute
	// drillBlockTime is the time between blocks. Their timestamps are a second apart.
	drillBlockTime = 125 * time.Millisecond
	drillPoll      = 50 * time.Millisecond
	drillOrders    = 18
	drillBuyers    = 4 // work at a time
	// drillOverlap is how many steps may begin during the backup.
	drillOverlap = 8
)

// drillConfig is the configuration of the service in TestExtraRestoreDrill.
const drillConfig = `
listen: 127.0.0.1:0
` + keySetting + `
database: {urlEnv: DATABASE_URL}
merchants: [{id: acme, webhookUrl: "%s", webhookSecretEnv: ACME_SECRET, optionalEvents: [payment.unattributed]}]
webhooks: {allow: [127.0.0.1]}
chains:
  - chainKey: testnet
    latency: 100ms
    idleInterval: 1s
    chainId: %d
    rpc: ["%s"]
    finality: 2
    tokens: [{currency: USDC, address: "%s"}]
    registry: "%s"
    depositFactory: "%s"
    operatorKeyEnv: OPERATOR_KEY
`

// drillDatabase is a database that is lost in a round.
type drillDatabase struct {
	url     string
	backup  func()        // makes a backup while the service runs
	restore func() string // returns the URL of the restored database
}

// drillWays are the ways to make a backup and to restore it.
var drillWays = map[string]func(*drill) drillDatabase{
	"sqlite":   func(d *drill) drillDatabase { return d.copied(backups["sqlite"]) },
	"postgres": func(d *drill) drillDatabase { return d.copied(backups["postgres"]) },
	"point":    (*drill).pointInTime,
}

// TestExtraRestoreDrill loses a database in every round. A backup is made while invoices are created, paid,
// refunded and made void. Some time later the service is killed, and the backup is restored. After
// quittance recover and an import of the merchant's copies, followers miss no event, no refund is
// offered twice, every payment is visible, and the merchant gets no false event. -drill.rounds
// and -drill.seed play other rounds.
func TestExtraRestoreDrill(t *testing.T) {
	t.Parallel()
	for name, way := range drillWays {
		for n := range *drillRounds {
			seed := *drillSeed + uint64(n)
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				t.Logf("the same choices again: go test ./internal/test/e2e -run '^TestExtraRestoreDrill$/^%s$' -drill.seed %d -drill.rounds 1", name, seed)
				newDrill(t, way, seed).run()
			})
		}
	}
}

// drill is a round of TestExtraRestoreDrill.
type drill struct {
	*servedWorld
	db       drillDatabase
	node     *devchain.Chain
	till     *ecdsa.PrivateKey // a settlement address that many invoices share
	receiver *receiver
	follower *drillFollower
	gate     *drillGate
	killed   atomic.Bool // the service before the restore

	report   server.RecoveryReport
	imported int           // invoices that were imported from copies
	funding  map[fact]bool // possible events about the initial tokens of settlement addresses

	mu      sync.Mutex
	random  *rand.Rand
	orders  []*drillOrder
	waiting []*drillOrder // the next step has not begun
}

func newDrill(t *testing.T, way func(*drill) drillDatabase, seed uint64) *drill {
	t.Helper()
	now := acceleratedClock()
	node, err := devchain.Start(t.Context(), devchain.Config{BlockTime: drillBlockTime, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	d := &drill{
		servedWorld: &servedWorld{
			world: &world{TB: t, dir: dir, http: withKey(newWorld(t).http)}, ctx: within(t, drillTime), file: filepath.Join(dir, "quittance.yaml"),
		},
		node: node, receiver: newReceiver(t), random: rand.New(rand.NewPCG(seed, 0)), gate: newDrillGate(), follower: newDrillFollower(),
		funding: make(map[fact]bool),
	}
	d.info.Store(&dev.Info{
		Merchant: dev.MerchantInfo{ID: "acme"},
		Chain: dev.ChainInfo{
			ChainKey: "testnet", ChainID: devchain.ChainID, RPCURL: node.RPCURL(), Token: node.Token.Hex(),
			Registry: node.Registry.Hex(), DepositFactory: node.DepositFactory.Hex(),
		},
	})
	chain := d.info.Load().Chain
	d.receiver.setSecret("whsec_of_acme_shop")
	d.receiver.restored = true
	d.configure(fmt.Sprintf(drillConfig, d.receiver.URL, chain.ChainID, chain.RPCURL, chain.Token, chain.Registry, chain.DepositFactory))
	d.plan()
	d.db = way(d)
	d.useDatabase(d.db.url)
	return d
}

// acceleratedClock returns a clock that is right at first and advances one second per block.
func acceleratedClock() func() time.Time {
	start := time.Now()
	return func() time.Time {
		return start.Add(time.Duration(int64(time.Since(start)) * int64(time.Second/drillBlockTime)))
	}
}

// useDatabase sets the environment of the service for a database.
func (d *drill) useDatabase(url string) {
	d.env = append(serveEnv(url), "OPERATOR_KEY="+hex.EncodeToString(crypto.FromECDSA(d.node.Keys.Operator)))
}

// copied returns a database with one of the ways to make a copy of it.
func (d *drill) copied(by backupWay) drillDatabase {
	url, to := by.fresh(d), filepath.Join(d.dir, "backup")
	return drillDatabase{
		url:     url,
		backup:  func() { by.backup(d.world, d.env, d.file, url, to) },
		restore: func() string { return by.restore(d.world, url, to) },
	}
}

// pointInTime returns a database that archives its WAL and is recovered to a point in time.
func (d *drill) pointInTime() drillDatabase {
	d.Helper()
	stop := func(c *dbtest.Cluster) {
		d.Cleanup(func() {
			if err := c.Stop(); err != nil {
				d.Error(err)
			}
		})
	}
	cluster, err := dbtest.StartCluster(d.ctx, dbtest.Options{Archive: true})
	if err != nil {
		d.Fatal(err)
	}
	stop(cluster)
	base, err := cluster.BaseBackup(d.ctx)
	if err != nil {
		d.Fatal(err)
	}
	return drillDatabase{
		url: cluster.DSN("postgres"),
		backup: func() {
			if err := cluster.RestorePoint(d.ctx, "drill"); err != nil {
				d.Fatal(err)
			}
		},
		restore: func() string {
			if err := cluster.KillNine(); err != nil {
				d.Fatal(err)
			}
			is, err := base.RecoverTo(d.ctx, "recovery_target_name=drill")
			if err != nil {
				d.Fatal(err)
			}
			stop(is)
			return is.DSN("postgres")
		},
	}
}

// run plays the round.
func (d *drill) run() {
	d.Helper()
	steps := 0
	for _, o := range d.orders {
		steps += o.steps()
	}
	backupAt := 1 + d.random.IntN(steps*2/3)
	killAt := min(backupAt+1+d.random.IntN(steps/2), steps)

	c := d.serve()
	d.awaitRead()
	d.openShop()
	stopFollowing := d.follow()
	trading := d.trade()
	d.gate.open(backupAt)
	d.gate.await(d.ctx, d)
	d.gate.open(min(backupAt+drillOverlap, killAt))
	d.db.backup()
	d.gate.open(killAt)
	d.gate.await(d.ctx, d)
	d.killed.Store(true)
	c.kill()
	d.gate.close()
	trading.Wait()
	stopFollowing()
	if d.Failed() {
		d.FailNow()
	}
	d.useDatabase(d.db.restore())
	d.refusesToServe()
	d.payLate(lateBeforeRecovery)
	d.recover()
	d.payLate(lateBeforeImport)
	refused := d.importCopies()
	d.payLate(lateBeforeServing)
	again := d.serve()
	defer again.kill()
	d.checkCursor()
	defer d.follow()()
	d.checkImport(refused)
	d.payLate(lateWhileServing)
	d.finish()
	d.check()
	d.Logf("%d of %d steps before the backup, %d before the kill: %s", backupAt, steps, killAt, d.summary())
}

// awaitRead waits until the service has read the chain for the first time, so that the backup has a
// position to continue from.
func (d *drill) awaitRead() {
	d.Helper()
	var health struct {
		Chains []struct{ Confirmed uint64 }
	}
	err := d.until(func() (bool, error) {
		err := json.Unmarshal(d.do(http.MethodGet, "/readyz", "").body, &health)
		return err == nil && len(health.Chains) == 1 && health.Chains[0].Confirmed > 0, err
	}, "block that was read")
	if err != nil {
		d.Fatal(err)
	}
}

// refusesToServe checks that the restored database is not served.
func (d *drill) refusesToServe() {
	d.Helper()
	c := launchWith(d, d.env, "serve", "--config", d.file)
	if code := c.exit(d, patience); code == 0 || !strings.Contains(c.stderr.String(), "quittance recover") {
		d.Fatalf("serve on a restored database: exit code %d\n%s", code, c.stderr.String())
	}
}

// recover recovers the database.
func (d *drill) recover() {
	d.Helper()
	d.findProofs()
	path := filepath.Join(d.dir, "report.json")
	if c := launchWith(d, d.env, "recover", "--config", d.file, "--report", path); c.exit(d, drillPatience) != 0 {
		d.Fatalf("recover failed:\n%s%s", c.stdout.String(), c.stderr.String())
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &d.report)
	}
	if err != nil {
		d.Fatalf("read the report: %v", err)
	}
}

// drillGate limits how many steps the buyers begin.
type drillGate struct {
	mu     sync.Mutex
	limit  int // of steps
	begun  int
	closed bool
	idle   bool // no step is left
	change chan struct{}
}

func newDrillGate() *drillGate { return &drillGate{change: make(chan struct{})} }

// update makes a change and wakes the waiting callers.
func (g *drillGate) update(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.change)
	g.change = make(chan struct{})
}

func (g *drillGate) open(limit int) { g.update(func() { g.limit = limit }) }
func (g *drillGate) close()         { g.update(func() { g.closed = true }) }

// enter waits until a step may begin. It reports false if the gate is closed.
func (g *drillGate) enter() bool {
	for {
		g.mu.Lock()
		change, closed, may := g.change, g.closed, g.begun < g.limit
		if may && !closed {
			g.begun++
			close(g.change)
			g.change = make(chan struct{})
		}
		g.mu.Unlock()
		if closed || may {
			return !closed
		}
		<-change
	}
}

// await waits until the permitted number of steps have begun, or no order has a step left.
func (g *drillGate) await(ctx context.Context, tb testing.TB) {
	tb.Helper()
	for {
		g.mu.Lock()
		change, done, begun, limit := g.change, g.begun >= g.limit || g.idle, g.begun, g.limit
		g.mu.Unlock()
		if done {
			return
		}
		select {
		case <-change:
		case <-ctx.Done():
			g.close()
			tb.Fatalf("only %d of %d steps were begun", begun, limit)
		}
	}
}
