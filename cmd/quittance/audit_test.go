package main

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
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

// answer runs a command line, and returns its exit code and the JSON that it wrote in one line.
func answer(t *testing.T, args ...string) (code int, got map[string]any) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, args)
	if err := json.Unmarshal([]byte(stdout.String()), &got); err != nil || strings.Count(stdout.String(), "\n") != 1 {
		t.Errorf("%q: %v: %s%s", args, err, &stdout, &stderr)
	}
	return code, got
}

// TestChainJSON changes the record of a chain, and reads the JSON about it.
func TestChainJSON(t *testing.T) {
	folder := t.TempDir()
	service := ledger.New(ledger.Config{Store: dbtest.Open(t, "sqlite:"+folder+"/quittance.db"), Now: time.Now})
	expect.OK(t, service.Start(t.Context(), "base", invoice.Header{Number: 9, Hash: invoice.Hash{9}, Time: invoice.Unix(1)}, 10))
	file := configure(t, "127.0.0.1:1", folder)
	rescan := []string{"chain", "rescan", "--config", file, "--from", "7", "--json"}
	resume := []string{"chain", "resume", "--config", file, "--json"}
	halt := func() error { return service.Halt(t.Context(), "base", "block 8 was replaced") }
	for _, test := range []struct {
		before func() error
		args   []string
		code   int
		want   map[string]any
	}{
		{nil, rescan, 0, map[string]any{"chainKey": "base", "from": 7.0, "to": 9.0}},
		{nil, resume, 0, map[string]any{"chainKey": "base", "halted": "", "resumed": false}},
		{halt, resume, 1, map[string]any{"chainKey": "base", "halted": "block 8 was replaced", "resumed": false}},
		{nil, append(resume, "--yes"), 0, map[string]any{"chainKey": "base", "halted": "block 8 was replaced", "resumed": true}},
		{nil, resume, 0, map[string]any{"chainKey": "base", "halted": "", "resumed": false}},
	} {
		if test.before != nil {
			expect.OK(t, test.before())
		}
		code, got := answer(t, test.args...)
		if diff := cmp.Diff(test.want, got); diff != "" || code != test.code {
			t.Errorf("%q: exit code %d, -want +got:\n%s", test.args, code, diff)
		}
	}
}

// TestResealJSON names the key that seals the secrets.
func TestResealJSON(t *testing.T) {
	folder := t.TempDir()
	dbtest.Open(t, "sqlite:"+folder+"/quittance.db")
	key, err := access.NewMasterKey(rand.Reader)
	expect.OK(t, err)
	t.Setenv("MASTER_KEY", key)
	text := expect.Must(os.ReadFile(configure(t, "127.0.0.1:1", folder)))
	keyed := filepath.Join(folder, "keyed.yaml")
	expect.OK(t, os.WriteFile(keyed, []byte(strings.Replace(string(text), "{", `{"masterKeyEnv": "MASTER_KEY", `, 1)), 0o600))
	code, got := answer(t, "secrets", "reseal", "--config", keyed, "--json")
	if id, ok := got["keyId"].(string); code != 0 || got["resealed"] != 0.0 || !ok || id == "" {
		t.Errorf("exit code %d: %v", code, got)
	}
}

// TestDevJSON deploys the contracts on the chain of a development world, and makes an event happen there.
func TestDevJSON(t *testing.T) {
	info := filepath.Join(t.TempDir(), "info.json")
	startDev(t, "--data", t.TempDir(), "--block-time", "50ms", "--info", info)
	var world struct {
		BaseURL string
		Chain   struct{ RPCURL, DepositFactory, AuthorizationRelay string }
		Payer   struct{ PrivateKey string }
	}
	text, err := os.ReadFile(info)
	if err == nil {
		err = json.Unmarshal(text, &world)
	}
	expect.OK(t, err)
	t.Setenv("KEY", world.Payer.PrivateKey)
	code, got := answer(t, "chain", "deploy", "--rpc", world.Chain.RPCURL, "--key-env", "KEY", "--json")
	for _, contract := range []string{"registry", "depositFactory", "authorizationRelay"} {
		if address, ok := got[contract].(string); code != 0 || !ok || !strings.HasPrefix(address, "0x") || len(address) != 42 {
			t.Errorf("deploy: exit code %d: %s is missing: %v", code, contract, got)
		}
	}
	if got["depositFactory"] != world.Chain.DepositFactory || got["authorizationRelay"] != world.Chain.AuthorizationRelay {
		t.Errorf("deploy: %v; want the factory and the relay that are there already: %+v", got, world.Chain)
	}
	code, got = answer(t, "trigger", "invoice.created", "--url", world.BaseURL, "--json")
	event, ok := got["event"].(map[string]any)
	if code != 0 || !ok || event["type"] != "invoice.created" || got["invoiceId"] == "" {
		t.Errorf("trigger: exit code %d: %v", code, got)
	}
	code, got = answer(t, "chain", "status", "--url", world.BaseURL, "--json")
	if chains, ok := got["chains"].([]any); code != 0 || !ok || len(chains) != 1 {
		t.Errorf("status: exit code %d: %v", code, got)
	}
}

// TestVersion prints the source of a release. Without flags of the build the version is this source's.
func TestVersion(t *testing.T) {
	if _, got := answer(t, "version", "--json"); got["version"] != "v0.1.0" {
		t.Errorf("without flags of the build: %v", got)
	}
	version, commit = "v1.2.3", "0123abc"
	t.Cleanup(func() { version, commit = "", "" })
	_, got := answer(t, "version", "--json")
	if got["version"] != "v1.2.3" || got["commit"] != "0123abc" || !strings.HasPrefix(got["go"].(string), "go1.") {
		t.Errorf("it says %v", got)
	}
	for _, args := range [][]string{{"version"}, {"--version"}, {"-v"}} {
		var stdout strings.Builder
		code := run(t.Context(), environment{stdout: &stdout, stderr: io.Discard}, args)
		if want := "quittance v1.2.3, commit 0123abc, built with go1."; code != 0 || !strings.HasPrefix(stdout.String(), want) {
			t.Errorf("%q: exit code %d: %s, want %s", args, code, &stdout, want)
		}
	}
}
