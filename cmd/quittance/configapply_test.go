package main

import (
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
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

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
