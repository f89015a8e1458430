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
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

var acme = access.Principal{KeyID: "configured_acme", MerchantID: "acme", Scopes: access.Standard | access.NewScopes(access.KeysWrite)}

func TestCreate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		r, key, err := w.Create(t.Context(), acme, access.KeyRequest{Name: "shop", Scopes: access.Read})
		if err != nil || r.MerchantID != "acme" || r.Scopes != access.Read || key.Mode() != access.Live {
			t.Fatalf("%+v, %v", r, err)
		}
		var field *invoice.FieldError
		var scope *access.ScopeError
		var merchant *access.MerchantError
		for name, c := range map[string]struct {
			by   access.Principal
			r    access.KeyRequest
			want any
			text string
		}{
			"another merchant": {acme, access.KeyRequest{Name: "x", MerchantID: "globex", Scopes: access.Read}, &merchant, "acme"},
			"more scopes":      {acme, access.KeyRequest{Name: "x", Scopes: access.Admin}, &scope, "webhooks:write attribution:write"},
			"nobody":           {access.Principal{}, access.KeyRequest{Name: "x", Scopes: access.Read}, &scope, "invoices:read"},
			"no name":          {acme, access.KeyRequest{Scopes: access.Read}, &field, "name"},
			"no scope":         {acme, access.KeyRequest{Name: "x"}, &field, "scopes"},
			"unknown merchant": {access.Open(), access.KeyRequest{Name: "x", MerchantID: "unknown", Scopes: access.Read}, &field, "merchantId"},
			"expired":          {acme, access.KeyRequest{Name: "x", Scopes: access.Read, ExpiresAt: w.now()}, &field, "expiresAt"},
		} {
			if r, key, err := w.Create(t.Context(), c.by, c.r); !errors.As(err, c.want) || !strings.Contains(err.Error(), c.text) || r.ID != "" || key != (access.Key{}) {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		}
		for range access.MaxKeys - 1 {
			w.create("acme", access.Read)
		}
		if _, _, err := w.Create(t.Context(), acme, access.KeyRequest{Name: "one more", Scopes: access.Read}); !errors.Is(err, access.ErrTooMany) {
			t.Errorf("one more than MaxKeys: %v", err)
		}
		if _, _, err := w.Rotate(t.Context(), acme, r.ID, time.Hour); !errors.Is(err, access.ErrTooMany) {
			t.Errorf("a rotation with overlap: %v", err)
		}
		if _, _, err := w.Rotate(t.Context(), acme, r.ID, 0); err != nil {
			t.Errorf("a rotation without overlap: %v", err)
		}
		if _, err := w.Revoke(t.Context(), access.Open(), r.ID); err != nil {
			t.Error(err)
		}
		w.create("globex", access.Read)
	})
}

func TestRotate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		ctx := t.Context()
		const week = 7 * 24 * time.Hour
		old, oldKey, err := w.Create(ctx, access.Open(), access.KeyRequest{Name: "shop", MerchantID: "acme", Scopes: access.Read, ExpiresAt: w.now().Add(week)})
		expect.OK(t, err)
		admin, _ := w.create("acme", access.Admin)
		other, _ := w.create("globex", access.Read)
		w.pass(time.Hour)
		next, nextKey, err := w.Rotate(ctx, acme, old.ID, time.Hour)
		if err != nil || next.Name != "shop" || next.MerchantID != "acme" || next.Scopes != access.Read || !next.ExpiresAt.Equal(w.now().Add(week)) {
			t.Fatalf("%+v, %v", next, err)
		}
		a, _ := w.replica()
		for _, text := range []string{oldKey.Reveal(), nextKey.Reveal()} {
			if _, err := a.Authenticate(ctx, text); err != nil {
				t.Errorf("during the overlap: %v", err)
			}
		}
		if got, err := access.NewReader(s).Key(ctx, old.ID); err != nil || got.ReplacedBy != next.ID {
			t.Errorf("the old key is %+v, %v", got, err)
		}
		if _, _, err := w.Rotate(ctx, acme, old.ID, time.Hour); !errors.Is(err, access.ErrNotActive) {
			t.Errorf("a second rotation: %v", err)
		}
		w.pass(time.Hour)
		if _, err := a.Authenticate(ctx, oldKey.Reveal()); !errors.Is(err, access.ErrExpired) {
			t.Errorf("after the overlap: %v", err)
		}
		if _, err := a.Authenticate(ctx, nextKey.Reveal()); err != nil {
			t.Errorf("the new key: %v", err)
		}
		if _, _, err := w.Rotate(ctx, acme, other.ID, 0); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("another merchant's key: %v", err)
		}
		if scope := (*access.ScopeError)(nil); true {
			if _, _, err := w.Rotate(ctx, acme, admin.ID, 0); !errors.As(err, &scope) {
				t.Errorf("a key with more scopes: %v", err)
			}
		}
		for _, overlap := range []time.Duration{-1, access.MaxOverlap + 1} {
			if field := (*invoice.FieldError)(nil); true {
				if _, _, err := w.Rotate(ctx, acme, next.ID, overlap); !errors.As(err, &field) {
					t.Errorf("an overlap of %s: %v", overlap, err)
				}
			}
		}
	})
}

// TestExpiryIsInherited checks that an expiring key cannot create a key that outlives it.
func TestExpiryIsInherited(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w, ctx := newWorld(t, s), t.Context()
		end := w.now().Add(time.Hour)
		own, key, err := w.Create(ctx, access.Open(), access.KeyRequest{Name: "own", MerchantID: "acme", Scopes: access.Admin, ExpiresAt: end})
		expect.OK(t, err)
		w.pass(time.Minute)
		a, _ := w.replica()
		by, err := a.Authenticate(ctx, key.Reveal())
		if err != nil || !by.ExpiresAt.Equal(end) {
			t.Fatalf("%+v, %v", by, err)
		}
		lasting, _ := w.create("acme", access.Read)
		for name, do := range map[string]func() (access.Record, access.Key, error){
			"created": func() (access.Record, access.Key, error) {
				return w.Create(ctx, by, access.KeyRequest{Name: "x", Scopes: access.Read})
			},
			"created to the end": func() (access.Record, access.Key, error) {
				return w.Create(ctx, by, access.KeyRequest{Name: "x", Scopes: access.Read, ExpiresAt: end})
			},
			"a lasting one rotated": func() (access.Record, access.Key, error) { return w.Rotate(ctx, by, lasting.ID, 0) },
		} {
			if r, _, err := do(); err != nil || !r.ExpiresAt.Equal(end) {
				t.Errorf("%s: expires at %v, want %v; %v", name, r.ExpiresAt, end, err)
			}
		}
		soon := w.now().Add(time.Second)
		if r, _, err := w.Create(ctx, by, access.KeyRequest{Name: "x", Scopes: access.Read, ExpiresAt: soon}); err != nil || !r.ExpiresAt.Equal(soon) {
			t.Errorf("%+v, %v", r, err)
		}
		_, _, err = w.Create(ctx, by, access.KeyRequest{Name: "x", Scopes: access.Read, ExpiresAt: end.Add(time.Second)})
		if field := (*invoice.FieldError)(nil); !errors.As(err, &field) || field.Field != "expiresAt" {
			t.Errorf("a key that outlives its maker: %v", err)
		}
		if r, _, err := w.Rotate(ctx, by, own.ID, 0); err != nil || !r.ExpiresAt.Equal(end) {
			t.Errorf("itself rotated: expires at %v, want %v; %v", r.ExpiresAt, end, err)
		}
		if _, _, err := w.Create(ctx, by, access.KeyRequest{Name: "x", Scopes: access.Read}); !errors.Is(err, access.ErrExpired) {
			t.Errorf("a rotated key makes another: %v", err)
		}
	})
}

// TestEndAfterClockSetBack rotates and revokes keys that were made before the machine's clock was set back.
func TestEndAfterClockSetBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w, ctx := newWorld(t, s), t.Context()
		rotated, rotatedKey := w.create("acme", access.Read)
		revoked, revokedKey := w.create("acme", access.Read)
		w.pass(-2 * time.Hour)
		if _, _, err := w.Rotate(ctx, acme, rotated.ID, time.Hour); err != nil {
			t.Error(err)
		}
		if _, err := w.Revoke(ctx, acme, revoked.ID); err != nil {
			t.Error(err)
		}
		w.pass(time.Hour)
		a, _ := w.replica()
		for _, key := range []string{rotatedKey, revokedKey} {
			if _, err := a.Authenticate(ctx, key); err == nil {
				t.Errorf("the key %s is accepted after its end", key)
			}
		}
	})
}

// TestRevokeOnlyWhatCouldBeMade checks that a key cannot revoke keys with scopes that it lacks, except itself.
func TestRevokeOnlyWhatCouldBeMade(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w, ctx := newWorld(t, s), t.Context()
		admin, _ := w.create("acme", access.Admin)
		reader, _ := w.create("acme", access.Read)
		if scope := (*access.ScopeError)(nil); true {
			if _, err := w.Revoke(ctx, acme, admin.ID); !errors.As(err, &scope) {
				t.Errorf("a key with more scopes: %v", err)
			}
		}
		if found, err := access.NewReader(s).Key(ctx, admin.ID); err != nil || !found.RevokedAt.IsZero() {
			t.Errorf("%+v, %v", found, err)
		}
		for _, by := range []access.Principal{{KeyID: admin.ID, MerchantID: "acme", Scopes: access.Read}, acme} {
			id := admin.ID
			if by == acme {
				id = reader.ID
			}
			if _, err := w.Revoke(ctx, by, id); err != nil {
				t.Errorf("%s revokes %s: %v", by.KeyID, id, err)
			}
		}
	})
}

// TestAudit expects an entry for each change, and no entry for requests that were refused or changed nothing.
func TestAudit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		ctx := access.WithPrincipal(t.Context(), acme)
		r, key, err := w.Create(ctx, acme, access.KeyRequest{Name: "shop", Scopes: access.Read})
		expect.OK(t, err)
		next, nextKey, err := w.Rotate(ctx, acme, r.ID, time.Hour)
		expect.OK(t, err)
		for range 2 {
			expect.Success(t)(w.Revoke(ctx, acme, next.ID))
		}
		if _, err := w.Revoke(ctx, access.Principal{KeyID: "key_2", MerchantID: "globex", Scopes: access.Admin}, r.ID); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("another merchant revokes: %v", err)
		}
		entries, err := access.NewReader(s).AuditEntries(t.Context(), access.AuditFilter{Limit: 10})
		expect.OK(t, err)
		var got []string
		for _, e := range entries {
			got = append(got, strings.Join([]string{string(e.Action), e.Object, e.Actor, e.MerchantID}, " "))
			if text := e.Before + e.After; strings.Contains(text, key.Reveal()) || strings.Contains(text, nextKey.Reveal()) {
				t.Errorf("the entry shows a key: %s", text)
			}
		}
		want := []string{"key.revoke " + next.ID + " configured_acme acme", "key.rotate " + r.ID + " configured_acme acme", "key.create " + r.ID + " configured_acme acme"}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the audit log is %q, want %q", got, want)
		}
	})
}

// sampleKey returns the record of a new key.
func sampleKey(t *testing.T, n int, merchantID string) access.Record {
	t.Helper()
	k := expect.Must(access.NewKey(access.Live, rand.Reader))
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
