package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/access/keyringtest"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

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
