package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/testdeps"
	"github.com/quittance/quittance/webhook"
)

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
			if err != nil {
				w.Fatal(err)
			}
			for _, end := range []string{"-wal", "-shm"} {
				if err := os.RemoveAll(path + end); err != nil {
					w.Fatal(err)
				}
			}
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				w.Fatal(err)
			}
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
	if err != nil {
		w.Fatal(err)
	}
	if out, err := exec.CommandContext(w.Context(), path, args...).CombinedOutput(); err != nil {
		w.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// TestExtraRestore takes a backup, pays an invoice, delivers its events, and restores the
// backup. The service indexes the chain again, the invoice is paid once, and its events
// are delivered again under their ids.
func TestExtraRestore(t *testing.T) {
	t.Parallel()
	chainWorld, _ := startWorld(t, "--block-time", quick)
	for name, by := range backups {
		t.Run(name, func(t *testing.T) { // one at a time: they share the payer's account
			ctx := within(t, 90*time.Second)
			r := newReceiver(t)
			r.setSecret("whsec_of_acme_shop")
			r.restored = true
			info := *chainWorld.info.Load()
			dir := t.TempDir()
			config, copied := filepath.Join(dir, "quittance.yaml"), filepath.Join(dir, "backup")
			text := fmt.Sprintf(restoreConfig, r.URL, info.Chain.ChainID, info.Chain.RPCURL, info.Chain.Token)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			w := &world{TB: t, dir: dir, http: withKey(chainWorld.http)}
			payer := chainWorld.payer()

			url := by.fresh(t)
			c := w.serve(config, url, info)
			w.info.Load().Merchant.Address = w.newWallet("").address.Hex() // used only by this test
			made := w.create(w.draft("4900000"))
			r.await(ctx, webhook.InvoiceCreated, made.ID)
			by.backup(w, serveEnv(url), config, url, copied)
			payer.mustTransfer(t, made.Invoice.MerchantAddress, made.Invoice.TransferAmount, nil)
			r.await(ctx, webhook.InvoicePaid, made.ID)
			r.await(ctx, webhook.PaymentReceived, made.ID)
			c.kill()

			restored := by.restore(w, url, copied)
			if code := launchWith(w, serveEnv(restored), "recover", "--config", config).exit(w, patience); code != 0 {
				t.Fatalf("recover: exit code %d", code)
			}
			w.serve(config, restored, info)
			if err := await(ctx, func() bool {
				again := 0
				events, _ := r.got()
				for _, e := range events {
					if e.accepted > 1 {
						again++
					}
				}
				return again >= 2 // payment.received and invoice.paid, under the ids that they had
			}); err != nil {
				t.Fatalf("the events since the backup did not come again: %v", err)
			}
			w.checkRestored(r, made.ID)
		})
	}
}

// checkRestored checks that each event of an invoice has one delivery id, and that one
// payment paid the invoice.
func (w *world) checkRestored(r *receiver, invoiceID string) {
	w.Helper()
	ids := make(map[string]string)
	events, problems := r.got()
	for _, e := range events {
		if known := ids[e.Type]; known != "" && known != e.DeliveryID {
			w.Errorf("%s came as %s and as %s", e.Type, known, e.DeliveryID)
		}
		ids[e.Type] = e.DeliveryID
	}
	for _, p := range problems {
		w.Error(p)
	}
	got, err := w.api().Invoice(w.Context(), invoiceID)
	if err != nil || got.Status != "paid" || got.AmountPaid != got.TransferAmount {
		w.Errorf("the invoice is %+v, %v", got, err)
	}
}

func serveEnv(database string) []string {
	return []string{"ACME_SECRET=whsec_of_acme_shop", "DATABASE_URL=" + database}
}

// serve runs a service for the merchant acme on a database, and waits until it is ready.
func (w *world) serve(config, database string, on dev.Info) *child {
	w.Helper()
	c := launchWith(w, serveEnv(database), "serve", "--config", config)
	ready := regexp.MustCompile(`msg=ready url=(http://127\.0\.0\.1:\d+)`)
	var found []string
	if err := await(within(w, patience), func() bool { found = ready.FindStringSubmatch(c.stderr.String()); return found != nil || c.ended() }); err != nil || found == nil {
		w.Fatalf("serve is not ready: %v", err)
	}
	on.BaseURL, on.Merchant.ID, on.Chain.ChainKey = found[1], "acme", "testnet"
	w.info.Store(&on)
	return c
}
