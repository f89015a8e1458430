package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// auditConfig writes a configuration with a database, and returns its path.
func auditConfig(t *testing.T, database string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	text := "listen: 127.0.0.1:1\ndatabase: " + database + "\nmerchants: [{id: cafe}]\nmasterKeyEnv: AUDIT_MASTER_KEY\n" +
		"chains: [{chainKey: base, rpc: ['http://127.0.0.1:1']}]\n"
	t.Setenv("AUDIT_MASTER_KEY", "5ec7e78c3f1d5e9ab2047c6e11f0d93b58a7c42d7e9016fb83c5aa4e6d2719b0")
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestAudit lists and verifies a log, and finds an entry that was removed.
func TestAudit(t *testing.T) {
	url := dbtest.SQLite(t)
	store := dbtest.Open(t, url)
	config := auditConfig(t, url)
	err := store.Update(t.Context(), func(tx *db.Tx) error {
		one := access.Entry{At: time.Unix(1_764_000_000, 0), Origin: access.Origin{Actor: "cli:maria"}, Action: access.ActionChainRescan, Object: "base"}
		two := access.Entry{At: time.Unix(1_764_000_060, 0), Origin: access.Origin{Actor: "key_1", Client: "192.0.2.1"},
			MerchantID: "cafe", Action: access.ActionEndpointUpdate, Object: "cafe", After: "{}"}
		return access.AppendAudit(t.Context(), tx, one, two)
	})
	expect.OK(t, err)
	command := func(wantCode int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs strings.Builder
		args = append([]string{"audit"}, append(args, "--config", config)...)
		if code := run(t.Context(), environment{stdout: &out, stderr: &errs}, args); code != wantCode {
			t.Errorf("%v exits %d, want %d: %s", args, code, wantCode, errs.String())
		}
		return out.String(), errs.String()
	}
	const want = `SEQ  AT                    ACTOR      FROM       ACTION           OBJECT  MERCHANT
2    2025-11-24T16:01:00Z  key_1      192.0.2.1  endpoint.update  cafe    cafe
1    2025-11-24T16:00:00Z  cli:maria  -          chain.rescan     base    -
`
	if got, _ := command(0, "list"); got != want {
		t.Errorf("it lists\n%s, want\n%s", got, want)
	}
	got, _ := command(0, "list", "--merchant", "cafe", "--action", "endpoint.update", "--since", "2025-11-24T16:01:00Z", "--json")
	var list apitypes.AuditList
	if err := json.Unmarshal([]byte(got), &list); err != nil || len(list.Entries) != 1 || list.Entries[0].Seq != 2 {
		t.Errorf("it lists %s, %v", got, err)
	}
	if got, _ := command(0, "list", "--merchant", "shop"); got != "There are no such entries.\n" {
		t.Errorf("it lists %s", got)
	}
	command(2, "list", "--limit", "0")
	head := "2:" + list.Entries[0].Hash
	if got, _ := command(0, "verify", "--head", head); !strings.Contains(got, "is intact") || !strings.Contains(got, head) {
		t.Errorf("it verifies: %s", got)
	}
	command(2, "verify", "--head", "2:abc")
	if _, errs := command(1, "verify", "--head", "1:"+list.Entries[0].Hash); !strings.Contains(errs, "entry 1 of the audit log was rewritten") {
		t.Errorf("with another head: %s", errs)
	}

	raw := dbtest.SQL(t, url)
	for _, statement := range []string{"DROP TRIGGER audit_entries_delete", "DELETE FROM audit_entries WHERE seq = 1"} {
		expect.Success(t)(raw.ExecContext(t.Context(), statement))
	}
	if _, errs := command(1, "verify"); !strings.Contains(errs, "entry 1 of the audit log was removed") {
		t.Errorf("an entry was removed: %s", errs)
	}
	if got, _ := command(1, "verify", "--json"); got != `{"head":"0:`+strings.Repeat("0", 64)+`","fault":{"seq":1,"damage":"removed","detail":"the next entry is 2"}}`+"\n" {
		t.Errorf("an entry was removed: %s", got)
	}
}

// TestStorageCommands archives a log, verifies it, and sets quotas, on both databases.
func TestStorageCommands(t *testing.T) {
	for name, fresh := range dbtest.MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			url := fresh(t)
			store := dbtest.Open(t, url)
			config := auditConfig(t, url)
			err := store.Update(t.Context(), func(tx *db.Tx) error {
				return access.AppendAudit(t.Context(), tx, access.Entry{At: time.Unix(1_764_000_000, 0), Origin: access.Origin{Actor: "cli:maria"}, Action: access.ActionChainRescan, Object: "base"})
			})
			expect.OK(t, err)
			out := filepath.Join(t.TempDir(), "audit.jsonl")
			for _, c := range []struct {
				code int
				args string
				want string
			}{
				{2, "audit archive --config " + config, "--before and --out are required"},
				{1, "audit archive --before 1h --config " + config + " --out " + out, "24 hours stay"},
				{0, "audit archive --before 2026-01-31T10:00:00Z --config " + config + " --out " + out, "1 entries were moved to"},
				{0, "audit verify --config " + config, "is intact"},
				{0, "audit verify --config " + config + " --archive " + out, "is intact"},
				{2, "merchant quotas cafe --config " + config, "want --audit-bytes or --invoices"},
				{2, "merchant quotas --audit-bytes -1 --config " + config, "numbers above 0"},
				{2, "merchant quotas a/b --invoices 1 --config " + config, "is no id"},
				{0, "merchant quotas cafe --audit-bytes 5000 --config " + config, "5000"},
				{0, "merchant quotas --invoices 77 --config " + config, "77"},
				{0, "merchant storage --config " + config, "(77)"},
				{0, "merchant storage --json --config " + config, `"invoiceQuota":77`},
			} {
				var stdout, stderr strings.Builder
				code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, strings.Fields(c.args))
				if code != c.code || !strings.Contains(strings.ReplaceAll(stdout.String()+stderr.String(), ": ", ":"), strings.ReplaceAll(c.want, ": ", ":")) {
					t.Errorf("quittance %s: exit code %d\n%s%s\nwant %d and %q", c.args, code, stdout.String(), stderr.String(), c.code, c.want)
				}
			}
		})
	}
}
