package access_test

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
)

// world is a database with a manager and replicas that authenticate, at a time that the test sets.
type world struct {
	*access.KeyManager
	t     *testing.T
	store *db.DB
	mu    sync.Mutex
	at    time.Time
}

func newWorld(t *testing.T, s *db.DB) *world {
	t.Helper()
	w := &world{t: t, store: s, at: time.Unix(1_000_000, 0).UTC()}
	w.KeyManager = access.NewKeyManager(access.KeyManagerConfig{
		Store: s, Mode: access.Live, Known: func(id string) bool { return id != "unknown" }, Now: w.now, Rand: rand.Reader,
	})
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// counter counts the reads of keys.
type counter struct {
	access.Tables
	versions, keys atomic.Int64
	during         func() // if set, called during each read of a key
}

func (c *counter) KeysVersion(ctx context.Context) (int64, error) {
	c.versions.Add(1)
	return c.Tables.KeysVersion(ctx)
}

func (c *counter) KeyByHash(ctx context.Context, hash [access.HashSize]byte) (access.Record, error) {
	c.keys.Add(1)
	r, err := c.Tables.KeyByHash(ctx, hash)
	if c.during != nil {
		c.during()
	}
	return r, err
}

// replica returns another authenticator on the world's database, and a counter of its reads.
func (w *world) replica(change ...func(*access.AuthenticatorConfig)) (*access.Authenticator, *counter) {
	reads := &counter{Tables: access.NewTables(w.store)}
	cfg := access.AuthenticatorConfig{Store: reads, Mode: access.Live, Now: w.now, Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil))}
	for _, f := range change {
		f(&cfg)
	}
	return access.NewAuthenticator(cfg), reads
}

// create creates a key for the operator.
func (w *world) create(merchantID string, scopes access.Scopes) (access.Record, string) {
	w.t.Helper()
	r, k, err := w.Create(w.t.Context(), access.Open(), access.KeyRequest{Name: "test", MerchantID: merchantID, Scopes: scopes})
	expect.OK(w.t, err)
	return r, k.Reveal()
}
