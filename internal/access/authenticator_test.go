package access_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

func newKey(t *testing.T, mode access.Mode) access.Key {
	t.Helper()
	k := expect.Must(access.NewKey(mode, rand.Reader))
	return k
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		ctx := t.Context()
		acme, acmeKey := w.create("acme", access.Read)
		_, operatorKey := w.create("", access.Admin)
		revoked, revokedKey := w.create("acme", access.Read)
		expect.Success(t)(w.Revoke(ctx, access.Open(), revoked.ID))
		_, expiring, err := w.Create(ctx, access.Open(), access.KeyRequest{Name: "test", Scopes: access.Read, ExpiresAt: w.now().Add(time.Hour)})
		expect.OK(t, err)
		a, _ := w.replica()
		if got, err := a.Authenticate(ctx, expiring.Reveal()); err != nil || got.Scopes != access.Read {
			t.Errorf("a key that has not expired: %+v, %v", got, err)
		}
		w.pass(time.Hour)
		if got, err := a.Authenticate(ctx, acmeKey); err != nil || got != (access.Principal{KeyID: acme.ID, Name: acme.Name, MerchantID: "acme", Scopes: access.Read, Version: access.Version1}) {
			t.Errorf("acme's key: %+v, %v", got, err)
		}
		if got, err := a.Authenticate(ctx, operatorKey); err != nil || !got.IsOperator() || got.Scopes != access.Admin {
			t.Errorf("the operator's key: %+v, %v", got, err)
		}
		for name, c := range map[string]struct {
			text string
			want error
		}{
			"none":                    {"", access.ErrMissing},
			"malformed":               {"sesame", access.ErrMalformed},
			"mistyped":                {acmeKey[:20] + "00000" + acmeKey[25:], access.ErrChecksum},
			"of another installation": {newKey(t, access.Live).Reveal(), access.ErrUnknown},
			"of a dev service":        {newKey(t, access.Test).Reveal(), access.ErrWrongMode},
			"revoked":                 {revokedKey, access.ErrRevoked},
			"expired":                 {expiring.Reveal(), access.ErrExpired},
		} {
			for range 2 { // the second is answered by the cache
				got, err := a.Authenticate(ctx, c.text)
				if !errors.Is(err, c.want) || got != (access.Principal{}) {
					t.Errorf("%s: %+v, %v; want %v", name, got, err, c.want)
				}
				if err != nil && c.text != "" && strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: the error shows the key: %v", name, err)
				}
			}
		}
	})
}

func TestOpenAndConfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.SQLite(t)))
	configured := newKey(t, access.Live)
	a, reads := w.replica(func(c *access.AuthenticatorConfig) { c.Open, c.Configured = true, configured })
	if got, err := a.Authenticate(t.Context(), ""); err != nil || got != access.Open() {
		t.Errorf("without a key: %+v, %v", got, err)
	}
	got, err := a.Authenticate(t.Context(), configured.Reveal())
	if err != nil || !got.IsOperator() || got.Scopes != access.Admin || got.KeyID != access.ConfiguredKeyID(configured) {
		t.Errorf("with the configured key: %+v, %v", got, err)
	}
	if n := reads.keys.Load() + reads.versions.Load(); n != 0 {
		t.Errorf("the database was read %d times", n)
	}
	if _, err := a.Authenticate(t.Context(), newKey(t, access.Live).Reveal()); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("with an unknown key: %v", err)
	}
}

// TestConfiguredKeyIsReplaced expects the id of a configured key to change with the key, so that work
// begun with one key cannot continue with the next.
func TestConfiguredKeyIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.SQLite(t)))
	old, next := newKey(t, access.Live), newKey(t, access.Live)
	before, _ := w.replica(func(c *access.AuthenticatorConfig) { c.Configured = old })
	after, _ := w.replica(func(c *access.AuthenticatorConfig) { c.Configured = next })
	none, _ := w.replica()
	p, err := before.Authenticate(t.Context(), old.Reveal())
	if err != nil || !access.IsConfigured(p.KeyID) || access.IsConfigured("key_06h067txd9t675qj39cq1371z8") {
		t.Fatalf("with the configured key: %+v, %v", p, err)
	}
	if got, err := before.PrincipalOf(t.Context(), p.KeyID); err != nil || got != p {
		t.Errorf("by the id: %+v, %v; want %+v", got, err, p)
	}
	for _, a := range []*access.Authenticator{after, none} {
		for _, id := range []string{p.KeyID, "configured", "configured_"} { // the second was the id of every such key
			if got, err := a.PrincipalOf(t.Context(), id); !errors.Is(err, access.ErrUnknown) {
				t.Errorf("%s with another key, or none: %+v, %v; want %v", id, got, err, access.ErrUnknown)
			}
		}
	}
}

// TestRevocationIsFelt revokes a key that two replicas have cached.
func TestRevocationIsFelt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		record, key := w.create("acme", access.Read)
		one, reads := w.replica()
		two, _ := w.replica()
		for range 100 {
			for _, a := range []*access.Authenticator{one, two} {
				expect.Success(t)(a.Authenticate(t.Context(), key))
			}
			w.pass(time.Millisecond)
		}
		if reads.keys.Load() != 1 || reads.versions.Load() != 1 {
			t.Errorf("in 100 ms the key was read %d times, and the version %d times; want once", reads.keys.Load(), reads.versions.Load())
		}
		expect.Success(t)(w.Revoke(t.Context(), access.Open(), record.ID))
		w.pass(time.Second)
		for n, a := range []*access.Authenticator{one, two} {
			if _, err := a.Authenticate(t.Context(), key); !errors.Is(err, access.ErrRevoked) {
				t.Errorf("replica %d a second after the revocation: %v", n, err)
			}
		}
	})
}

// TestNewKeyIsAccepted creates a key after a replica has cached its hash as unknown.
func TestNewKeyIsAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.SQLite(t)))
	a, reads := w.replica()
	stranger := newKey(t, access.Live).Reveal()
	for range 10 {
		if _, err := a.Authenticate(t.Context(), stranger); !errors.Is(err, access.ErrUnknown) {
			t.Fatal(err)
		}
	}
	if n := reads.keys.Load(); n != 1 {
		t.Errorf("the unknown key was read %d times, want once", n)
	}
	_, key := w.create("", access.Read)
	if _, err := a.Authenticate(t.Context(), key); err != nil {
		t.Errorf("a new key is refused: %v", err)
	}
}

// TestChangeDuringRead revokes a key while a replica reads it. The replica must not cache what it has read.
func TestChangeDuringRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.SQLite(t)))
	record, key := w.create("", access.Read)
	_, other := w.create("", access.Read)
	a, reads := w.replica()
	expect.Success(t)(a.Authenticate(t.Context(), other))
	reads.during = func() {
		reads.during = nil
		if _, err := w.Revoke(t.Context(), access.Open(), record.ID); err != nil {
			t.Error(err)
		}
		w.pass(time.Second)
		if _, err := a.Authenticate(t.Context(), other); err != nil { // reads the new version
			t.Error(err)
		}
	}
	if _, err := a.Authenticate(t.Context(), key); err != nil {
		t.Errorf("while it is revoked: %v", err)
	}
	if _, err := a.Authenticate(t.Context(), key); !errors.Is(err, access.ErrRevoked) {
		t.Errorf("afterwards: %v", err)
	}
}

// TestLastUse stores a key's last use at most once a minute.
func TestLastUse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		record, key := w.create("acme", access.Read)
		unused, _ := w.create("acme", access.Read)
		a, _ := w.replica()
		first := w.now()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 50 {
					if _, err := a.Authenticate(t.Context(), key); err != nil {
						t.Error(err)
					}
					w.pass(time.Millisecond)
				}
			})
		}
		group.Wait()
		for _, want := range []time.Time{first, first.Add(2 * time.Minute)} {
			a.RecordUses(t.Context())
			got, err := access.NewReader(s).Key(t.Context(), record.ID)
			if err != nil || !got.LastUsedAt.Equal(want) {
				t.Errorf("last used at %s, %v; want %s", got.LastUsedAt, err, want)
			}
			w.pass(2*time.Minute - w.now().Sub(want))
			expect.Success(t)(a.Authenticate(t.Context(), key))
		}
		if got, err := access.NewReader(s).Key(t.Context(), unused.ID); err != nil || !got.LastUsedAt.IsZero() {
			t.Errorf("the unused key was used at %s, %v", got.LastUsedAt, err)
		}
	})
}

// slowUses has one key, and takes a second to store its use.
type slowUses struct {
	access.KeyReader
	key      access.Record
	recorded map[string]time.Time
}

func (*slowUses) KeysVersion(context.Context) (int64, error) { return 1, nil }

func (s *slowUses) KeyByHash(context.Context, [access.HashSize]byte) (access.Record, error) {
	return s.key, nil
}

func (s *slowUses) RecordKeyUses(ctx context.Context, uses map[string]time.Time) error {
	if !clock.Sleep(ctx, time.Second, nil) {
		return ctx.Err()
	}
	s.recorded = uses
	return nil
}

// TestStopDuringRecord ends an authenticator while it stores the use of a key.
func TestStopDuringRecord(t *testing.T) {
	t.Parallel()
	key := newKey(t, access.Live)
	synctest.Test(t, func(t *testing.T) {
		s := &slowUses{key: access.Record{ID: "key_1", Hash: key.Hash()}}
		a := access.NewAuthenticator(access.AuthenticatorConfig{Store: s, Mode: access.Live, Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		ctx, stop := context.WithCancel(t.Context())
		expect.Success(t)(a.Authenticate(ctx, key.Reveal()))
		ended := make(chan struct{})
		go func() { defer close(ended); a.Run(ctx) }()
		time.Sleep(10*time.Second + time.Millisecond) //nolint:forbidigo // of virtual time
		stop()
		<-ended
		if len(s.recorded) != 1 {
			t.Errorf("%d uses were stored", len(s.recorded))
		}
	})
}

// TestAdmit counts the calls of Admit: one for each key that is not in the cache.
func TestAdmit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newWorld(t, s)
		_, key := w.create("acme", access.Read)
		unknown := newKey(t, access.Live).Reveal()
		closed := errors.New("closed")
		var refuse error
		var right, wrong int
		a, _ := w.replica(func(c *access.AuthenticatorConfig) {
			c.Admit = func(context.Context, [access.HashSize]byte) (func(bool), error) {
				return func(isWrong bool) {
					if isWrong {
						wrong++
					} else {
						right++
					}
				}, refuse
			}
		})
		for _, step := range []struct {
			what         string
			do           func()
			text         string
			refuse, want error
			right, wrong int
		}{
			{"a key that is not admitted", nil, key, closed, closed, 0, 0},
			{"a malformed key", nil, "sesame", closed, access.ErrMalformed, 0, 0},
			{"a key's first use", nil, key, nil, nil, 1, 0},
			{"its second", nil, key, closed, nil, 0, 0},
			{"an unknown key", nil, unknown, nil, access.ErrUnknown, 0, 1},
			{"the same again", nil, unknown, closed, access.ErrUnknown, 0, 0},
			{"a key that was read, after a change", func() { w.create("beta", access.Read) }, key, closed, nil, 0, 0},
			{"the unknown key, after the change", nil, unknown, closed, closed, 0, 0},
		} {
			if step.do != nil {
				step.do()
				w.pass(time.Second)
			}
			refuse, right, wrong = step.refuse, 0, 0
			if _, err := a.Authenticate(t.Context(), step.text); !errors.Is(err, step.want) || right != step.right || wrong != step.wrong {
				t.Errorf("%s: %v, admitted %d right and %d wrong; want %v, %d and %d", step.what, err, right, wrong, step.want, step.right, step.wrong)
			}
		}
	})
	for _, err := range []error{nil, access.ErrMissing, errors.New("no database")} {
		if access.IsRefusal(err) {
			t.Errorf("%v says that the key is wrong", err)
		}
	}
}

// lostVersions is a database that reused a number of changes after a failover that lost a commit.
type lostVersions struct{ access.Tables }

func (lostVersions) KeysVersion(context.Context) (int64, error) { return 1, nil }

// TestReusedVersion revokes a key without a change of the version.
func TestReusedVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.Open(t, dbtest.SQLite(t)))
	record, key := w.create("acme", access.Read)
	a, _ := w.replica(func(c *access.AuthenticatorConfig) { c.Store = lostVersions{access.NewTables(w.store)} })
	expect.Success(t)(a.Authenticate(t.Context(), key))
	expect.Success(t)(w.Revoke(t.Context(), access.Open(), record.ID))
	w.pass(time.Minute)
	if _, err := a.Authenticate(t.Context(), key); !errors.Is(err, access.ErrRevoked) {
		t.Errorf("a minute after the revocation: %v", err)
	}
}
