package server

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/limits"
	"github.com/quittance/quittance/internal/test/expect"
)

// fakeKeys is a database of keys.
type fakeKeys struct {
	known   map[[access.HashSize]byte]access.Record
	reads   atomic.Int64
	failure error
	hold    chan struct{} // if not nil, reads wait until it is closed
}

func (f *fakeKeys) KeysVersion(context.Context) (int64, error) { return 1, nil }

func (f *fakeKeys) Key(context.Context, string) (access.Record, error) {
	return access.Record{}, db.ErrNotFound
}

func (f *fakeKeys) RecordKeyUses(context.Context, map[string]time.Time) error { return nil }

func (f *fakeKeys) KeyByHash(_ context.Context, hash [access.HashSize]byte) (access.Record, error) {
	f.reads.Add(1)
	if f.hold != nil {
		<-f.hold
	}
	if r, ok := f.known[hash]; ok {
		return r, f.failure
	}
	return access.Record{}, errors.Join(db.ErrNotFound, f.failure)
}

// guessed is an authenticator under guesses.
type guessed struct {
	*limited
	keys *fakeKeys
	auth limitedAuthenticator
}

func newGuessed() *guessed {
	g := &guessed{limited: newLimited(Config{}), keys: &fakeKeys{known: make(map[[access.HashSize]byte]access.Record)}}
	g.auth = limitedAuthenticator{access.NewAuthenticator(access.AuthenticatorConfig{
		Store: g.keys, Admit: g.requestLimits.guesses.admit, Mode: access.Live, Now: func() time.Time { return g.now }, Logger: slog.New(slog.DiscardHandler),
	}), g.requestLimits}
	return g
}

// newKey returns a key, which the database knows or not.
func (g *guessed) newKey(t *testing.T, known bool) string {
	t.Helper()
	k := expect.Must(access.NewKey(access.Live, rand.Reader))
	if known {
		g.keys.known[k.Hash()] = access.Record{ID: "key_1", Hash: k.Hash(), Scopes: access.Read}
	}
	return k.Reveal()
}

// try presents a key from an address.
func (g *guessed) try(t *testing.T, from, text string) error {
	t.Helper()
	_, err := g.auth.Authenticate(limits.NewContext(t.Context(), netip.MustParseAddr(from)), text)
	return err
}

// want presents a key from the guesser's address, and fails unless it gets the wanted error and number
// of database reads. A nil error means that the key is accepted.
func (g *guessed) want(t *testing.T, what, text string, reads int64, want error) {
	t.Helper()
	before := g.keys.reads.Load()
	err := g.try(t, guesser, text)
	if exceeded := (*limits.ExceededError)(nil); errors.As(err, &exceeded) {
		err = errLimited
		if exceeded.RetryAfter != "1" {
			t.Errorf("%s: retry after %s", what, exceeded.RetryAfter)
		}
	}
	if got := g.keys.reads.Load() - before; !errors.Is(err, want) || got != reads {
		t.Errorf("%s: %v after %d reads; want %v after %d", what, err, got, want, reads)
	}
}

const guesser = "198.51.100.1"

var errLimited = errors.New("answered 429")

// TestLookups presents unknown keys up to the limit and beyond it.
func TestLookups(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	held, fresh, other := g.newKey(t, true), g.newKey(t, true), g.newKey(t, true)
	g.want(t, "a right key", held, 1, nil)
	for range 3 * maxLookups {
		g.want(t, "another right key", g.newKey(t, true), 1, nil)
		g.want(t, "no key", "", 0, access.ErrMissing)
	}
	g.keys.failure = errors.New("no database")
	g.want(t, "a failed lookup", fresh, 1, g.keys.failure)
	g.keys.failure = nil
	repeated := g.newKey(t, false)
	g.want(t, "a wrong key", repeated, 1, access.ErrUnknown)
	for range maxLookups - 1 {
		g.want(t, "the same wrong key", repeated, 0, access.ErrUnknown)
	}
	for range maxLookups - 1 {
		g.want(t, "a guess", g.newKey(t, false), 1, access.ErrUnknown)
	}
	guess := g.newKey(t, false)
	g.want(t, "a guess beyond the limit", guess, 0, errLimited)
	g.want(t, "a right key beyond the limit that was never read", fresh, 0, errLimited)
	g.want(t, "a right key that was read", held, 0, nil)
	g.want(t, "no key", "", 0, access.ErrMissing)
	for _, from := range []string{"198.51.100.2", "127.0.0.1"} {
		if err := g.try(t, from, other); err != nil {
			t.Errorf("a right key from %s: %v", from, err)
		}
	}
	g.now = g.now.Add(lookupWindow / maxLookups)
	g.want(t, "a guess after the interval", g.newKey(t, false), 1, access.ErrUnknown)
	g.want(t, "the next one", g.newKey(t, false), 0, errLimited)
	for range 2 * maxLookups {
		if err := g.try(t, "127.0.0.1", g.newKey(t, false)); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("a guess on this machine: %v", err)
		}
	}
}

// TestRepeatedKeys repeats a right key that was never read from the address of a guesser who uses up all lookups.
func TestRepeatedKeys(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	guessAll := func() {
		for range maxLookups {
			g.requestLimits.guesses.lookups.Take(netip.MustParsePrefix(guesser + "/32"))
		}
	}
	guessAll()
	for range maxRepeated + 5 { // right keys do not count
		right := g.newKey(t, true)
		g.want(t, "a right key", right, 0, errLimited)
		g.now = g.now.Add(retryPause - 1)
		guessAll()
		g.want(t, "the same before the pause", right, 0, errLimited)
		g.now = g.now.Add(1)
		guessAll()
		g.want(t, "the same after the pause", right, 1, nil)
	}
	guesses := make([]string, maxRepeated+1)
	for i := range guesses {
		guesses[i] = g.newKey(t, false)
		g.want(t, "a guess", guesses[i], 0, errLimited)
	}
	g.now = g.now.Add(retryPause)
	guessAll()
	for i, guess := range guesses {
		if i < maxRepeated {
			g.want(t, "a repeated guess", guess, 1, access.ErrUnknown)
		} else {
			g.want(t, "a repeated guess beyond the limit", guess, 0, errLimited)
		}
	}
}

// TestConcurrentGuesses presents keys while no lookup ends.
func TestConcurrentGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGuessed()
		held := g.newKey(t, true)
		g.want(t, "a right key", held, 1, nil)
		g.keys.hold = make(chan struct{})
		var group sync.WaitGroup
		var unknown, exceeded atomic.Int64
		for range 10 * maxLookups {
			guess := g.newKey(t, false)
			group.Go(func() {
				if err := g.try(t, guesser, guess); errors.Is(err, access.ErrUnknown) {
					unknown.Add(1)
				} else if errors.As(err, new(*limits.ExceededError)) {
					exceeded.Add(1)
				}
			})
		}
		synctest.Wait()
		if reads := g.keys.reads.Load() - 1; reads != maxLookups || exceeded.Load() != 9*maxLookups {
			t.Errorf("%d lookups are in progress and %d keys were answered 429", reads, exceeded.Load())
		}
		g.want(t, "a right key that was read", held, 0, nil)
		close(g.keys.hold)
		group.Wait()
		if unknown.Load() != maxLookups {
			t.Errorf("%d keys were answered 401", unknown.Load())
		}
	})
}

// TestRefusals presents wrong keys that cost no lookup.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	mistyped := strings.Replace(g.newKey(t, true), "qk_live_", "qk_test_", 1)
	for range maxRefusals {
		g.want(t, "a mistyped key", mistyped, 0, access.ErrChecksum)
	}
	g.want(t, "a mistyped key beyond the limit", mistyped, 0, errLimited)
	right := g.newKey(t, true)
	g.want(t, "a right key that was never read", right, 1, nil)
	g.want(t, "a right key that was read", right, 0, nil)
	g.now = g.now.Add(refusalWindow / maxRefusals)
	g.want(t, "a mistyped key after the interval", mistyped, 0, access.ErrChecksum)
	g.want(t, "the next one", mistyped, 0, errLimited)
}

// TestRefusalsBeyondTheLimit expires a key after its address has used up its refusals. The error is a
// limit error and also a refusal, which ends streams of the key.
func TestRefusalsBeyondTheLimit(t *testing.T) {
	t.Parallel()
	g := newGuessed()
	key, err := access.NewKey(access.Live, rand.Reader)
	expect.OK(t, err)
	g.keys.known[key.Hash()] = access.Record{ID: "key_1", Hash: key.Hash(), Scopes: access.Read, ExpiresAt: g.now.Add(time.Second)}
	g.want(t, "the key", key.Reveal(), 1, nil)
	g.now = g.now.Add(time.Second)
	for range maxRefusals {
		g.want(t, "the expired key", key.Reveal(), 0, access.ErrExpired)
	}
	err = g.try(t, guesser, key.Reveal())
	if !errors.As(err, new(*limits.ExceededError)) || !access.IsRefusal(err) {
		t.Errorf("beyond the limit the error is %v", err)
	}
}
