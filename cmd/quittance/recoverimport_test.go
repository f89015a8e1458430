package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/keyringtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestImportCopies counts the results of lines, and continues after refused ones.
func TestImportCopies(t *testing.T) {
	t.Parallel()
	line := func(n string) string {
		return `{"merchantAddress":"0x1","id":"inv_0000000000000000000000000` + n + `"}` + "\n"
	}
	apply := func(_ context.Context, c ledger.InvoiceCopy) (ledger.Imported, error) {
		done := ledger.Imported{Invoice: invoice.Invoice{ID: c.Invoice.ID}}
		switch c.Invoice.ID[len(c.Invoice.ID)-1] {
		case '1':
			done.Proof, done.Held = ledger.ProvedByChain, true
		case '2':
			done.Exists, done.Held = true, true
		case '3':
			return done, errors.New("a reason")
		}
		return done, nil
	}
	var refused, out strings.Builder
	sum, err := importCopies(t.Context(), &refused, strings.NewReader(line("1")+"\n"+line("2")+line("3")+"{}\n"+line("4")+`{"id":"evt_1","type":"invoice.paid","data":{"invoice":{"id":"inv_1"}}}`+"\n"+
		`{"id":"evt_2","type":"payment.received","data":{"payment":{}}}`), apply)
	expect.OK(t, err)
	if want := "line 4 inv_00000000000000000000000003 refused: a reason\nline 5 refused: it holds no invoice"; !strings.HasPrefix(refused.String(), want) {
		t.Errorf("got %s, want %s", &refused, want)
	}
	err = sum.print(environment{stdout: &out}, true)
	if want := `{"lines":7,"byChain":1,"bySignature":1,"existing":1,"held":["inv_00000000000000000000000001","inv_00000000000000000000000002"],"skipped":2,"refused":2}` + "\n"; out.String() != want || err == nil {
		t.Errorf("got %s, %v, want %s", &out, err, want)
	}
	if _, err := importCopies(t.Context(), &refused, strings.NewReader(strings.Repeat("x", ledger.MaxCopy+2)), apply); err == nil || !strings.Contains(err.Error(), "at most 1048576") {
		t.Errorf("a long line: %v", err)
	}
	if sum, err := importCopies(t.Context(), &refused, strings.NewReader(""), apply); err != nil || sum.print(environment{stdout: &out}, false) != nil {
		t.Errorf("no line: %+v, %v", sum, err)
	}
}

// TestRecoverTransfers lists a transfer that may have refunded a payment, and marks it as checked.
func TestRecoverTransfers(t *testing.T) {
	folder := t.TempDir()
	store := dbtest.Open(t, "sqlite:"+folder+"/quittance.db")
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		return ledger.InsertUnrecognizedTransfers(t.Context(), tx, []invoice.Transfer{{ChainKey: "base", TxHash: invoice.Hash{0x77}, Currency: "USDC", Amount: invoice.NewAmount(5)}})
	}))
	file := configure(t, "127.0.0.1:1", folder)
	for _, test := range []struct {
		checked []string
		code    int
		want    string
	}{
		{nil, 0, "base: 5 minor units of USDC from 0x0000000000000000000000000000000000000000 to 0x0000000000000000000000000000000000000000 in transaction 0x77"},
		{nil, 0, "may have refunded no known payment\n1 transfer to check.\n"},
		{[]string{"--checked", "ref_x"}, 1, "there is no unrecognized transfer ref_x"},
		{[]string{"--checked", "all"}, 0, "0 transfers to check.\n"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), environment{stdout: &stdout, stderr: &stderr}, append([]string{"recover", "transfers", "--config", file}, test.checked...))
		if out := stdout.String() + stderr.String(); code != test.code || !strings.Contains(out, test.want) {
			t.Errorf("%v: exit code %d, %s; want %d, %s", test.checked, code, out, test.code, test.want)
		}
	}
}

// TestSecretsReplace lists the secrets that would be replaced, and replaces them with --yes. It
// refuses while the service runs.
func TestSecretsReplace(t *testing.T) {
	database := dbtest.SQLite(t)
	lost := keyringtest.Key(t)
	store := dbtest.Open(t, database)
	expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
		_, err := webhooks.PutEndpoint(t.Context(), tx, webhooks.EndpointRow{MerchantID: "cafe", URL: "https://cafe.example/?key=k", ChangedAt: time.Now()}, func(version int64) ([]byte, string, error) {
			s := access.NewKeyring(lost).Seal("cafe", version, "whsec_cafe")
			return s.Data, s.KeyID, nil
		})
		return err
	}))
	t.Setenv("MASTER_KEY", hexKey(t))
	folder := t.TempDir()
	config := filepath.Join(folder, "quittance.yaml")
	expect.OK(t, os.WriteFile(config, fmt.Appendf(nil, `{"database": %q, "masterKeyEnv": "MASTER_KEY", "merchants": [{"id": "shop"}],
		"chains": [{"chainKey": "base", "rpc": ["http://127.0.0.1:1"]}]}`, database), 0o600))
	replace := func(more ...string) (code int, stdout, stderr string) {
		var out, bad bytes.Buffer
		code = run(t.Context(), environment{stdout: &out, stderr: &bad}, append([]string{"secrets", "replace", "--config", config}, more...))
		return code, out.String(), bad.String()
	}
	still := func(when string) {
		t.Helper()
		secrets, err := webhooks.Secrets(t.Context(), store, []string{"cafe"})
		if err != nil || len(secrets["cafe"]) != 1 || secrets["cafe"][0].KeyID != lost.ID {
			t.Fatalf("%s: the secrets are %+v, %v", when, secrets, err)
		}
	}
	code, stdout, stderr := replace()
	for _, want := range []string{lost.ID, "cafe  https://cafe.example/", "gets a new secret", "name it under oldMasterKeys"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("without --yes it prints %q, want %q in it", stdout, want)
		}
	}
	if code != 1 || !strings.Contains(stderr, "nothing was changed; run this again with --yes") {
		t.Errorf("without --yes: exit code %d, %s", code, stderr)
	}
	still("without --yes")
	code, stdout, _ = replace("--json")
	var is replacedSecrets
	if err := json.Unmarshal([]byte(stdout), &is); err != nil || code != 1 || len(is.LostKeyIDs) != 1 || len(is.Endpoints) != 1 || !is.Endpoints[0].NewSecret {
		t.Errorf("without --yes as JSON: exit code %d, %s", code, stdout)
	}

	unlock, err := db.LockService(database)
	expect.OK(t, err)
	out := filepath.Join(folder, "secrets.jsonl")
	if code, _, stderr := replace("--out", out, "--yes"); code != 1 {
		t.Errorf("while the service runs: exit code %d, %s", code, stderr)
	}
	expect.OK(t, unlock())
	still("while the service runs")
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("an empty file is left: %v", err)
	}
	if code, stdout, stderr := replace("--out", out, "--yes"); code != 0 || !strings.Contains(stdout, "The secrets of 1 endpoint were replaced.") || strings.Contains(stdout, "whsec_") {
		t.Errorf("with --yes: exit code %d, %s %s", code, stdout, stderr)
	}
	text, err := os.ReadFile(out)
	var line replacedEndpoint
	if info, statErr := os.Stat(out); err != nil || statErr != nil || info.Mode().Perm() != 0o600 || json.Unmarshal(text, &line) != nil || !strings.HasPrefix(line.Secret, "whsec_") || line.MerchantID != "cafe" {
		t.Errorf("the file has %q, %v %v", text, err, statErr)
	}
	if code, stdout, stderr := replace(); code != 0 || !strings.Contains(stdout, "There is nothing to replace.") {
		t.Errorf("once more: exit code %d, %s %s", code, stdout, stderr)
	}
}

// TestApplyComparesMerchants tries to make a configuration the newest with which a service would not start, because one
// of its merchants may be another company. That is refused, so that the running replicas continue.
func TestApplyComparesMerchants(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	store := dbtest.Open(t, database)
	err := store.Update(t.Context(), func(tx *db.Tx) error {
		if err := access.PutMerchantHolder(t.Context(), tx, access.MerchantHolder{MerchantID: "shop", Webhook: "former", URL: "former", Since: time.Unix(1, 0)}); err != nil {
			return err
		}
		if err := access.LockKeys(t.Context(), tx); err != nil {
			return err
		}
		return access.InsertKey(t.Context(), tx, access.Record{
			ID: "key_00000000000000000000000001", Name: "a key", Hint: "qk_12345…", Hash: [access.HashSize]byte{1}, Scopes: access.Standard, MerchantID: "shop", CreatedAt: time.Unix(1, 0),
		})
	})
	expect.OK(t, err)
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	text := fmt.Sprintf("database: %q\nmerchants: [{id: shop}]\nchains: [{chainKey: base, rpc: ['http://127.0.0.1:1']}]\n", database)
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	for _, args := range [][]string{{"config", "apply", "--config", path, "--yes"}, {"config", "apply", "--config", path}} {
		var out strings.Builder
		if code := run(t.Context(), environment{stdout: &out, stderr: &out}, args); code != 1 || !strings.Contains(out.String(), "quittance merchant resume shop") {
			t.Errorf("%v ended with %d: %s", args, code, &out)
		}
	}
	if newest, err := store.NewestRevision(t.Context()); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("the newest revision is %d, %v; want none", newest.Number, err)
	}
}

// TestRetireUnknownToken names a token that is not read on the chain, also without --yes.
func TestRetireUnknownToken(t *testing.T) {
	t.Parallel()
	database := dbtest.Migrated(t)
	err := dbtest.Open(t, database).Update(t.Context(), func(tx *db.Tx) error {
		return ledger.PutKnownChains(t.Context(), tx, []chain.KnownChain{{Key: "base", IDKey: "base", ID: 8453, Configured: true}}, time.Unix(1, 0))
	})
	expect.OK(t, err)
	path := filepath.Join(t.TempDir(), "quittance.yaml")
	text := fmt.Sprintf("database: %q\nmerchants: [{id: shop}]\nchains: [{chainKey: base, rpc: ['http://127.0.0.1:1']}]\n", database)
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	var out strings.Builder
	args := []string{"chain", "retire-token", "--config", path, "--chain", "base", "--token", "0x1111111111111111111111111111111111111111"}
	if code := run(t.Context(), environment{stdout: &out, stderr: &out}, args); code != 1 || !strings.Contains(out.String(), "chain base is not read for the token 0x1111") {
		t.Errorf("ended with %d: %s", code, &out)
	}
}
