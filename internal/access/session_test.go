package access_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sessionWorld is a database with keys and sessions, at a time that the test sets.
type sessionWorld struct {
	*access.SessionManager
	t     *testing.T
	store *db.DB
	keys  *access.KeyManager
	at    time.Time
	left  string // a merchant that the service no longer has
}

func newSessionWorld(t *testing.T, s *db.DB) *sessionWorld {
	t.Helper()
	w := &sessionWorld{t: t, store: s, at: time.Unix(1_000_000, 0).UTC()}
	now := func() time.Time { return w.at }
	known := func(id string) bool { return id != gone && id != w.left }
	w.keys = access.NewKeyManager(access.KeyManagerConfig{Store: s, Mode: access.Live, Known: func(string) bool { return true }, Now: now, Rand: rand.Reader})
	party, err := access.NewRelyingParty(office)
	expect.OK(t, err)
	w.SessionManager = access.NewSessions(access.SessionConfig{Store: s, Passkeys: party, Known: known, Now: now, Rand: rand.Reader, Authenticator: access.NewAuthenticator(access.AuthenticatorConfig{
		Store: access.NewTables(s), Mode: access.Live, Known: known, Now: now, Logger: slog.New(slog.DiscardHandler),
	})})
	return w
}

// gone is a merchant that the service does not have.
const gone = "gone"

// person is a key.
type person struct {
	access.Record
	key string
}

func (w *sessionWorld) person(merchantID string, scopes access.Scopes) person {
	w.t.Helper()
	r, k, err := w.keys.Create(w.t.Context(), access.Open(), access.KeyRequest{Name: "maria", MerchantID: merchantID, Scopes: scopes})
	expect.OK(w.t, err)
	return person{r, k.Reveal()}
}

func (w *sessionWorld) signIn(p person) (token string, s access.Session) {
	w.t.Helper()
	token, err := w.SignIn(w.t.Context(), " "+p.key+"\n", access.Browser{Client: "192.0.2.1", Name: "Firefox" + strings.Repeat("é", 200)})
	expect.OK(w.t, err)
	return token, w.find(token)
}

func (w *sessionWorld) find(token string) access.Session {
	w.t.Helper()
	s, _, err := w.Find(w.t.Context(), token)
	expect.OK(w.t, err)
	return s
}

func (w *sessionWorld) wantSignedOut(token, why string) {
	w.t.Helper()
	if _, p, err := w.Find(w.t.Context(), token); !errors.Is(err, access.ErrSignedOut) || p != (access.Principal{}) {
		w.t.Errorf("%s: %+v, %v; want %v", why, p, err, access.ErrSignedOut)
	}
}

func TestSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		maria := w.person("acme", access.Finance)
		token, s := w.signIn(maria)
		found, p, err := w.Find(t.Context(), token)
		if err != nil || p.KeyID != maria.ID || p.MerchantID != "acme" || p.Scopes != access.Finance || found.ID != s.ID {
			t.Fatalf("%+v, %+v, %v", found, p, err)
		}
		if len(s.Browser) > 200 || s.Client != "192.0.2.1" || s.ExpiresAt != w.at.Add(access.SessionLifetime) || !s.Confirmed(w.at) {
			t.Errorf("the session is %+v", s)
		}
		for _, wrong := range []string{"", token + "a", token[:len(token)-1], "qs_", strings.ToUpper(token), "ql_" + token[3:], "\x00"} {
			w.wantSignedOut(wrong, wrong)
		}
		w.at = w.at.Add(access.ConfirmedFor)
		if s.Confirmed(w.at) || s.Confirmed(s.ConfirmedAt.Add(-access.ConfirmedFor)) {
			t.Error("the session is still confirmed, or by a clock that was set back")
		}
		other := w.person("acme", access.Finance)
		if err := w.Confirm(t.Context(), s, other.key); !errors.Is(err, access.ErrOtherKey) {
			t.Errorf("confirmed by another key: %v", err)
		}
		if err := w.Confirm(t.Context(), s, "sesame"); !errors.Is(err, access.ErrMalformed) {
			t.Errorf("confirmed by no key: %v", err)
		}
		if err := w.Confirm(t.Context(), s, maria.key); err != nil || !w.find(token).Confirmed(w.at) {
			t.Errorf("not confirmed: %v", err)
		}
		expect.Success(t)(w.keys.Revoke(t.Context(), access.Open(), maria.ID))
		w.wantSignedOut(token, "after the key was revoked")
		w.at = w.at.Add(time.Second) // the authenticator has the key in its cache
		if _, err := w.SignIn(t.Context(), maria.key, access.Browser{}); !errors.Is(err, access.ErrRevoked) {
			t.Errorf("sign-in with a revoked key: %v", err)
		}
	})
}

// TestSessionEnds checks to the second when sessions end, by idleness and by age.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		token, s := w.signIn(w.person("acme", access.Read))
		for w.at.Add(access.SessionIdle).Before(s.ExpiresAt) {
			w.at = w.at.Add(access.SessionIdle - time.Second)
			w.find(token)
		}
		w.at = s.ExpiresAt.Add(-time.Second)
		w.find(token)
		w.at = s.ExpiresAt
		w.wantSignedOut(token, "after its lifetime")
		idle, _ := w.signIn(w.person("acme", access.Read))
		w.at = w.at.Add(access.SessionIdle)
		w.wantSignedOut(idle, "after its idle time")
		expect.OK(t, w.Clean(t.Context(), w.at))
		if left, err := access.Sessions(t.Context(), w.store, access.SessionFilter{MerchantID: "acme", Limit: 9}); err != nil || len(left) != 0 {
			t.Errorf("left after a cleaning: %+v, %v", left, err)
		}
	})
}

// TestOldestSessionEnds signs in more often than a key may have sessions.
func TestOldestSessionEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		maria, other := w.person("acme", access.Read), w.person("acme", access.Read)
		kept, _ := w.signIn(other)
		first, oldest := w.signIn(maria)
		second, _ := w.signIn(maria)
		for range access.MaxSessions - 1 {
			w.find(second)
			w.signIn(maria)
		}
		w.wantSignedOut(first, "the oldest of too many")
		w.wantEnds("acme", oldest.ID) // or its open pages stay
		w.find(second)
		w.find(kept)
	})
}

// wantEnds fails the test unless the audit log of a merchant has the ends of these sessions.
func (w *sessionWorld) wantEnds(merchant string, ids ...string) {
	w.t.Helper()
	log, err := access.NewReader(w.store).AuditEntries(w.t.Context(), access.AuditFilter{MerchantID: merchant, Action: access.ActionSessionEnd, Limit: 9})
	var ended []string
	for _, e := range log {
		ended = append(ended, e.Object)
	}
	if err != nil || !slices.Equal(ended, ids) {
		w.t.Errorf("sessions %v ended, %v; want %v", ended, err, ids)
	}
}

// TestEndSession ends sessions of the own key, of the same merchant, and of others.
func TestEndSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		people := map[string]person{
			"owner": w.person("acme", access.Admin), "support": w.person("acme", access.Support),
			"stranger": w.person("globex", access.Admin), "operator": w.person("", access.Admin),
		}
		for by, may := range map[string]string{"owner": "owner support", "support": "support", "stranger": "stranger", "operator": "operator"} {
			for of, p := range people {
				token, s := w.signIn(p)
				err := w.End(t.Context(), people[by].Principal(), s.ID)
				if strings.Contains(may, of) {
					if err != nil {
						t.Errorf("%s cannot end a session of %s: %v", by, of, err)
					}
					w.wantSignedOut(token, "a session of "+of+" that "+by+" ended")
				} else if !errors.Is(err, db.ErrNotFound) {
					t.Errorf("%s ends a session of %s: %v", by, of, err)
				}
				listed, _, err := w.List(t.Context(), people[by].Principal(), 100)
				for _, l := range listed {
					if l.KeyID != people[by].ID && l.MerchantID != people[by].MerchantID {
						t.Errorf("%s is listed %+v", by, l)
					}
				}
				expect.NoError(t, err)
			}
		}
	})
}

func TestLink(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		owner, support := w.person("acme", access.Admin), w.person("acme", access.Support)
		stranger, operator := w.person("globex", access.Admin), w.person("", access.Admin)
		for name, c := range map[string]struct {
			by, of person
			ok     bool
		}{
			"for oneself": {support, support, true}, "by the owner": {owner, support, true}, "by the operator": {operator, owner, true},
			"by support": {support, owner, false}, "of another merchant": {stranger, support, false}, "of the operator": {owner, operator, false},
		} {
			link, err := w.MakeLink(t.Context(), c.by.Principal(), c.of.ID)
			if !c.ok {
				var scope *access.ScopeError
				if !errors.Is(err, db.ErrNotFound) && !errors.As(err, &scope) {
					t.Errorf("%s: %+v, %v", name, link, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			token, err := w.OpenLink(t.Context(), link.Token, access.Browser{})
			if err != nil || w.find(token).KeyID != c.of.ID {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := w.OpenLink(t.Context(), link.Token, access.Browser{}); !errors.Is(err, access.ErrLink) {
				t.Errorf("%s: the link is used twice: %v", name, err)
			}
		}
		for name, spoil := range map[string]func(*access.Link){
			"expired": func(*access.Link) { w.at = w.at.Add(access.SignInLinkLifetime) },
			"unknown": func(l *access.Link) { l.Token += "a" },
			"revoked": func(*access.Link) {
				if _, err := w.keys.Revoke(t.Context(), access.Open(), support.ID); err != nil {
					t.Error(err)
				}
			},
		} {
			link, err := w.MakeLink(t.Context(), owner.Principal(), owner.ID)
			if name == "revoked" {
				link, err = w.MakeLink(t.Context(), support.Principal(), support.ID)
			}
			expect.OK(t, err)
			spoil(&link)
			if _, err := w.OpenLink(t.Context(), link.Token, access.Browser{}); !errors.Is(err, access.ErrLink) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// limited returns a person with a key that expires after an hour.
func (w *sessionWorld) limited(merchantID string, scopes access.Scopes) person {
	w.t.Helper()
	r, k, err := w.keys.Create(w.t.Context(), access.Open(), access.KeyRequest{Name: "temp", MerchantID: merchantID, Scopes: scopes, ExpiresAt: w.at.Add(time.Hour)})
	expect.OK(w.t, err)
	return person{r, k.Reveal()}
}

// enter signs a person in by a link that a principal makes for a key.
func (w *sessionWorld) enter(by access.Principal, keyID string) (token string, p access.Principal) {
	w.t.Helper()
	link, err := w.MakeLink(w.t.Context(), by, keyID)
	expect.OK(w.t, err)
	if token, err = w.OpenLink(w.t.Context(), link.Token, access.Browser{}); err != nil {
		w.t.Fatal(err)
	}
	if _, p, err = w.Find(w.t.Context(), token); err != nil {
		w.t.Fatal(err)
	}
	return token, p
}

// TestNothingOutlivesItsKey signs in as a permanent key with an expiring key, directly and by a link
// from there, and makes keys and links. All of it ends with the expiring key.
func TestNothingOutlivesItsKey(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		owner, temp := w.person("acme", access.Admin), w.limited("acme", access.Admin)
		first, p := w.enter(temp.Principal(), owner.ID)
		second, again := w.enter(p, owner.ID)
		for _, got := range []access.Principal{p, again} {
			if got.KeyID != owner.ID || !got.ExpiresAt.Equal(temp.ExpiresAt) || got.ParentKeys != access.KeyIDs(temp.ID) {
				t.Fatalf("the link of a key that expires signs in %+v", got)
			}
			if s := w.find(second); !s.ExpiresAt.Equal(temp.ExpiresAt) {
				t.Errorf("the session ends at %v, its parent key at %v", s.ExpiresAt, temp.ExpiresAt)
			}
			made, _, err := w.keys.Create(ctx, got, access.KeyRequest{Name: "made", Scopes: access.Read})
			if err != nil || !made.ExpiresAt.Equal(temp.ExpiresAt) {
				t.Errorf("a key that expires at %v is made, %v", made.ExpiresAt, err)
			}
			var field *invoice.FieldError
			if _, _, err := w.keys.Create(ctx, got, access.KeyRequest{Name: "longer", Scopes: access.Read, ExpiresAt: temp.ExpiresAt.Add(1)}); !errors.As(err, &field) {
				t.Errorf("a key that expires later is made, %v", err)
			}
			turned, _, err := w.keys.Rotate(ctx, got, w.person("acme", access.Read).ID, 0)
			if err != nil || !turned.ExpiresAt.Equal(temp.ExpiresAt) {
				t.Errorf("a permanent key is rotated to one that expires at %v, %v", turned.ExpiresAt, err)
			}
		}
		w.at = temp.ExpiresAt.Add(-time.Minute)
		for _, by := range []access.Principal{temp.Principal(), p} {
			if link, err := w.MakeLink(ctx, by, owner.ID); err != nil || link.ExpiresAt.After(temp.ExpiresAt) {
				t.Errorf("a link expires at %v, its parent key at %v, %v", link.ExpiresAt, temp.ExpiresAt, err)
			}
		}
		w.at = temp.ExpiresAt
		w.wantSignedOut(first, "after the key of its link expired")
		w.wantSignedOut(second, "after the parent key of the session of its link expired")
	})
}

// TestRevokedBehind revokes a key that made links. The sessions of these links end immediately, and
// make no key or link from a cached principal.
func TestRevokedBehind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		owner, other := w.person("acme", access.Admin), w.person("acme", access.Admin)
		used, p := w.enter(other.Principal(), owner.ID)
		self, _ := w.enter(owner.Principal(), owner.ID)
		unused, err := w.MakeLink(ctx, p, owner.ID)
		expect.OK(t, err)
		expect.Success(t)(w.keys.Revoke(ctx, access.Open(), other.ID))
		w.wantSignedOut(used, "after the key of its link was revoked")
		w.find(self)
		if _, err := w.OpenLink(ctx, unused.Token, access.Browser{}); !errors.Is(err, access.ErrLink) {
			t.Errorf("a link of a revoked key: %v", err)
		}
		for name, by := range map[string]access.Principal{"key": other.Principal(), "session": p} {
			if _, _, err := w.keys.Create(ctx, by, access.KeyRequest{Name: "late", Scopes: access.Read}); !errors.Is(err, access.ErrRevoked) {
				t.Errorf("a key is made by a revoked %s: %v", name, err)
			}
			if _, _, err := w.keys.Rotate(ctx, by, owner.ID, 0); !errors.Is(err, access.ErrRevoked) {
				t.Errorf("a key is rotated by a revoked %s: %v", name, err)
			}
		}
	})
}

// TestBehindIsBounded signs in with one key after another in one session. The last is refused.
func TestBehindIsBounded(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		p := w.person("acme", access.Admin).Principal()
		for range access.MaxParentKeys {
			_, p = w.enter(p, w.person("acme", access.Admin).ID)
		}
		_, p = w.enter(p, p.KeyID)
		if n := len(p.ParentKeys.All()); n != access.MaxParentKeys {
			t.Errorf("%d parent keys, want %d", n, access.MaxParentKeys)
		}
		if _, err := w.MakeLink(t.Context(), p, w.person("acme", access.Admin).ID); !errors.Is(err, access.ErrTooManyLinks) {
			t.Errorf("one more: %v", err)
		}
	})
}

// TestConfiguredKeyOfASessionIsReplaced replaces the operator's configured key. Sessions and links of the old
// key end, and the new key does not see its filters.
func TestConfiguredKeyOfASessionIsReplaced(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		with := func() (*sessionWorld, string) {
			key := expect.Must(access.NewKey(access.Live, rand.Reader))
			v := *w
			now := func() time.Time { return w.at }
			v.SessionManager = access.NewSessions(access.SessionConfig{Store: store, Now: now, Rand: rand.Reader, Authenticator: access.NewAuthenticator(access.AuthenticatorConfig{
				Store: access.NewTables(store), Mode: access.Live, Now: now, Logger: slog.New(slog.DiscardHandler), Configured: key,
			})})
			return &v, key.Reveal()
		}
		before, oldKey := with()
		after, newKey := with()
		token, err := before.SignIn(ctx, oldKey, access.Browser{})
		expect.OK(t, err)
		s, thief, err := before.Find(ctx, token)
		expect.OK(t, err)
		entered, _ := before.enter(thief, w.person("acme", access.Admin).ID)
		link, err := before.MakeLink(ctx, thief, thief.KeyID)
		expect.OK(t, err)
		f := access.SavedFilter{List: "/dashboard/invoices", Name: "mine", Query: "status=open"}
		expect.OK(t, before.SaveFilter(ctx, s, f))
		after.wantSignedOut(token, "after the configured key was replaced")
		after.wantSignedOut(entered, "by a link of the replaced key")
		w.wantSignedOut(token, "without a configured key")
		if _, err := after.OpenLink(ctx, link.Token, access.Browser{}); !errors.Is(err, access.ErrLink) {
			t.Errorf("a link of the replaced key: %v", err)
		}
		if token, err = after.SignIn(ctx, newKey, access.Browser{}); err != nil {
			t.Fatal(err)
		}
		if err := after.Confirm(ctx, s, newKey); !errors.Is(err, access.ErrOtherKey) {
			t.Errorf("the old session is confirmed by the new key: %v", err)
		}
		if kept, err := after.Filters(ctx, after.find(token), f.List); err != nil || len(kept) != 0 {
			t.Errorf("the new key has the filters %+v, %v", kept, err)
		}
	})
}

// TestInventedTokensAreAdmitted expects a call of Admit for every unknown token before it is looked
// up, and no lookup beyond the limit. A session that was found before continues.
func TestInventedTokensAreAdmitted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		ctx := t.Context()
		maria := w.person("acme", access.Read)
		token, _ := w.signIn(maria)
		errFull := errors.New("full")
		var asked, wrong int
		var full error
		now := func() time.Time { return w.at }
		m := access.NewSessions(access.SessionConfig{Store: store, Now: now, Rand: rand.Reader,
			Admit: func(context.Context, [access.HashSize]byte) (func(bool), error) {
				asked++
				return func(is bool) {
					if is {
						wrong++
					}
				}, full
			},
			Authenticator: access.NewAuthenticator(access.AuthenticatorConfig{Store: access.NewTables(store), Mode: access.Live, Now: now, Logger: slog.New(slog.DiscardHandler)}),
		})
		invented := "qs_" + strings.Repeat("a", 52)
		link := "ql_" + strings.Repeat("a", 52)
		for range 2 {
			expect.Success(t)(m.Look(ctx, token))
			if _, _, err := m.Look(ctx, invented); !errors.Is(err, access.ErrSignedOut) {
				t.Errorf("an invented cookie: %v", err)
			}
			if _, err := m.OpenLink(ctx, link, access.Browser{}); !errors.Is(err, access.ErrLink) {
				t.Errorf("an invented link: %v", err)
			}
		}
		if asked != 5 || wrong != 4 {
			t.Errorf("admitted %d tokens, of which %d are wrong; want 5, and 4", asked, wrong)
		}
		full = errFull
		if _, _, err := m.Look(ctx, token); err != nil {
			t.Errorf("a known session, beyond the limit: %v", err)
		}
		if _, _, err := m.Look(ctx, invented); !errors.Is(err, errFull) {
			t.Errorf("an invented cookie, beyond the limit: %v", err)
		}
		if _, err := m.OpenLink(ctx, link, access.Browser{}); !errors.Is(err, errFull) {
			t.Errorf("an invented link, beyond the limit: %v", err)
		}
	})
}

// TestVisits returns when the previous visit ended, and stores the time of a visit at most once a minute.
func TestVisits(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		w := newSessionWorld(t, s)
		_, own := w.signIn(w.person("shop", access.Read))
		began := w.at
		stored := func() time.Time {
			v, _, err := access.SessionVisits(t.Context(), s, own)
			expect.OK(t, err)
			return v.Last
		}
		for _, step := range []struct {
			at, stored time.Duration
			before     time.Time
		}{
			{0, 0, time.Time{}},
			{59 * time.Second, 0, time.Time{}},
			{time.Minute, time.Minute, time.Time{}},
			{time.Hour, time.Hour, began.Add(time.Minute)},
			{time.Hour + 30*time.Second, time.Hour, began.Add(time.Minute)},
			{time.Hour + 2*time.Minute, time.Hour + 2*time.Minute, began.Add(time.Minute)},
		} {
			w.at = began.Add(step.at)
			before, err := w.Visit(t.Context(), own)
			if err != nil || !before.Equal(step.before) {
				t.Errorf("after %v the visit before ended at %v, %v; want %v", step.at, before, err, step.before)
			}
			if got := stored().Sub(began); got != step.stored {
				t.Errorf("after %v the visit of %v is stored, want %v", step.at, got, step.stored)
			}
		}
	})
}

// TestFindWithoutWrites finds a session while the database takes no writes.
func TestFindWithoutWrites(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		token, _ := w.signIn(w.person("acme", access.Admin))
		expect.OK(t, store.Update(t.Context(), func(tx *db.Tx) error {
			statement := "CREATE TRIGGER full BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
			if tx.OnPostgres() {
				statement = "ALTER TABLE sessions ADD CHECK (used_at < 5) NOT VALID"
			}
			_, err := tx.Exec(t.Context(), statement)
			return err
		}))
		w.at = w.at.Add(2 * time.Minute)
		w.find(token)
	})
}

// TestTakeForm checks that replicas take a form once, although it is sent to all of them at the same time.
func TestTakeForm(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, store *db.DB) {
		w := newSessionWorld(t, store)
		maria := w.person("acme", access.NewScopes(access.KeysWrite))
		_, first := w.signIn(maria)
		_, second := w.signIn(maria)
		send := func(s access.Session, form string) int32 {
			t.Helper()
			var taken atomic.Int32
			var senders sync.WaitGroup
			for range 4 {
				senders.Go(func() {
					switch ok, err := newSessionWorld(t, store).TakeForm(t.Context(), s, form); {
					case err != nil:
						t.Error(err)
					case ok:
						taken.Add(1)
					}
				})
			}
			senders.Wait()
			return taken.Load()
		}
		for _, s := range []access.Session{first, second} {
			for _, form := range []string{"a", strings.Repeat("b", 10_000)} {
				if n := send(s, form); n != 1 {
					t.Errorf("a form of %s is taken %d times", s.ID, n)
				}
			}
		}
		if taken, err := w.TakeForm(t.Context(), access.Session{ID: "ses_none"}, "a"); taken || err != nil {
			t.Errorf("a form of no session: %v, %v", taken, err)
		}
	})
}
