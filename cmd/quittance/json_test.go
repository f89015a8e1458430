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

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

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
	text, err := os.ReadFile(configure(t, "127.0.0.1:1", folder))
	expect.OK(t, err)
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
