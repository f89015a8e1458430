package access_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// sampleKey returns the record of a new key.
func sampleKey(t *testing.T, n int, merchantID string) access.Record {
	t.Helper()
	k, err := access.NewKey(access.Live, rand.Reader)
	rowtest.Must(t, err)
	return access.Record{
		ID: fmt.Sprintf("key_%026d", n), Name: "shop", Hint: k.Hint(), Hash: k.Hash(), MerchantID: merchantID,
		Scopes: access.Standard, CreatedAt: time.Unix(1000, 0).UTC(), Version: access.Version1,
	}
}

func insertKeys(t *testing.T, s *db.DB, keys ...access.Record) {
	t.Helper()
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
		if err := access.LockKeys(ctx, tx); err != nil {
			return err
		}
		for _, k := range keys {
			if err := access.InsertKey(ctx, tx, k); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		ctx := t.Context()
		operator, acme, globex := sampleKey(t, 1, ""), sampleKey(t, 2, "acme"), sampleKey(t, 3, "globex")
		acme.ExpiresAt = time.Unix(2000, 0).UTC()
		version, err := access.NewReader(s).KeysVersion(ctx)
		rowtest.Must(t, err)
		insertKeys(t, s, operator, acme, globex)
		if next, err := access.NewReader(s).KeysVersion(ctx); err != nil || next != version+1 {
			t.Errorf("the version is %d, %v; want %d", next, err, version+1)
		}
		for _, want := range []access.Record{operator, acme, globex} {
			byID, err := access.NewReader(s).Key(ctx, want.ID)
			rowtest.Must(t, err)
			byHash, err := access.NewReader(s).KeyByHash(ctx, want.Hash)
			rowtest.Must(t, err)
			expect.NoDiff(t, cmp.Diff(want, byID)+cmp.Diff(want, byHash), "")
		}
		if _, err := access.NewReader(s).KeyByHash(ctx, [access.HashSize]byte{1}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("an unknown hash: %v", err)
		}
		for _, c := range []struct {
			filter access.KeyFilter
			want   []access.Record
		}{
			{access.KeyFilter{Limit: 10}, []access.Record{globex, acme, operator}},
			{access.KeyFilter{Limit: 1, Before: globex.ID}, []access.Record{acme}},
			{access.KeyFilter{Limit: 10, MerchantID: "acme"}, []access.Record{acme}},
			{access.KeyFilter{Limit: 10, MerchantID: "acme", Before: acme.ID}, nil},
		} {
			got, err := access.NewReader(s).Keys(ctx, c.filter)
			rowtest.Must(t, err)
			expect.NoDiff(t, cmp.Diff(c.want, got), "%+v", c.filter)
		}
		for _, c := range []struct {
			merchant string
			at       int64
			want     int
		}{{"", 1500, 1}, {"acme", 1999, 1}, {"acme", 2000, 0}, {"nobody", 1500, 0}} {
			if n, err := access.CountActiveKeys(ctx, s, c.merchant, time.Unix(c.at, 0)); err != nil || n != c.want {
				t.Errorf("%q has %d active keys at %d, %v; want %d", c.merchant, n, c.at, err, c.want)
			}
		}
		acme.ExpiresAt, acme.RevokedAt, acme.ReplacedBy = time.Unix(1800, 0).UTC(), time.Unix(1700, 0).UTC(), globex.ID
		rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
			return errors.Join(access.LockKeys(ctx, tx), access.UpdateKey(ctx, tx, acme))
		})
		got, err := access.NewReader(s).Key(ctx, acme.ID)
		rowtest.Must(t, err)
		expect.NoDiff(t, cmp.Diff(acme, got), "updated")
		acme.ID = "key_unknown"
		if err := s.Update(ctx, func(tx *db.Tx) error { return access.UpdateKey(ctx, tx, acme) }); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("an update of an unknown key: %v", err)
		}
	})
}

// TestKeyUses checks that the last use of a key is stored at most once a minute.
func TestKeyUses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		one, two := sampleKey(t, 1, ""), sampleKey(t, 2, "acme")
		insertKeys(t, s, one, two)
		for _, c := range []struct{ use, want int64 }{{2000, 2000}, {2059, 2000}, {1990, 2000}, {2060, 2060}} {
			rowtest.Must(t, access.NewTables(s).RecordKeyUses(t.Context(), map[string]time.Time{one.ID: time.Unix(c.use, 0), "key_unknown": time.Unix(c.use, 0)}))
			if got, err := access.NewReader(s).Key(t.Context(), one.ID); err != nil || got.LastUsedAt.Unix() != c.want {
				t.Errorf("used at %d: stored is %d, %v; want %d", c.use, got.LastUsedAt.Unix(), err, c.want)
			}
		}
		if got, err := access.NewReader(s).Key(t.Context(), two.ID); err != nil || !got.LastUsedAt.IsZero() {
			t.Errorf("the other key was used at %s, %v", got.LastUsedAt, err)
		}
	})
}

// TestImpossibleKeysAreRefused tries to write invalid keys by plain SQL.
func TestImpossibleKeysAreRefused(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		s := dbtest.Open(t, url)
		insertKeys(t, s, sampleKey(t, 1, ""), sampleKey(t, 2, "acme"))
		conn := dbtest.SQL(t, url)
		for _, statement := range []string{
			"UPDATE api_keys SET id = 'qk_live_1'",
			"UPDATE api_keys SET name = ''",
			"UPDATE api_keys SET name = '" + strings.Repeat("x", 201) + "'",
			"UPDATE api_keys SET hint = hash",
			"UPDATE api_keys SET hash = 'abc'",
			"UPDATE api_keys SET hash = '" + strings.Repeat("0", 64) + "'", // the same hash for two keys
			"UPDATE api_keys SET merchant_id = ''",
			"UPDATE api_keys SET scopes = ''",
			"UPDATE api_keys SET expires_at = 2000, replaced_by = id",
			"UPDATE api_keys SET expires_at = 2000, replaced_by = 'key_unknown'",
			"UPDATE api_keys SET replaced_by = 'key_00000000000000000000000001' WHERE merchant_id IS NOT NULL",
			"INSERT INTO api_key_changes VALUES (2, 0)",
			"INSERT INTO api_key_changes VALUES (1, 0)",
			"UPDATE api_key_changes SET version = -1",
		} {
			if _, err := conn.ExecContext(t.Context(), statement); err == nil {
				t.Errorf("%s: was accepted", statement)
			}
		}
	})
}
