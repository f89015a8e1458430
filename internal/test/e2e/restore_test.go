package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/testdeps"
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
