package access_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
)

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
	if _, err := a.Authenticate(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Revoke(t.Context(), access.Open(), record.ID); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Minute)
	if _, err := a.Authenticate(t.Context(), key); !errors.Is(err, access.ErrRevoked) {
		t.Errorf("a minute after the revocation: %v", err)
	}
}
