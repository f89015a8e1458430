package apikey

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/store"
)

const (
	// checkInterval is how long cached keys are used without a check for changes. It
	// bounds how long a revoked key is still accepted.
	checkInterval = 500 * time.Millisecond
	// maxCached bounds the keys of each map of the cache.
	maxCached = 10_000
)

type hash = [access.HashSize]byte

// cachedKey is a key in the cache.
type cachedKey struct {
	access.Record
	noted atomic.Int64 // when its use was last noted, in Unix seconds
}

// cache holds keys that were read from the database.
//
// Invariant: each key in it was read after version was, and version was read at most
// checkInterval before a lookup returns. A change of any key changes the version, which
// empties the cache but for held.
type cache struct {
	store KeyReader
	now   func() time.Time
	calls singleflight.Group

	mu      sync.RWMutex
	checked time.Time // when the last read of the version began
	version int64
	known   map[hash]*cachedKey
	unknown map[hash]struct{} // hashes that no key has
	held    map[hash]struct{} // hashes of keys that were read, also before the last change
}

func newCache(keys KeyReader, now func() time.Time) *cache {
	return &cache{store: keys, now: now, known: make(map[hash]*cachedKey), unknown: make(map[hash]struct{}), held: make(map[hash]struct{})}
}

// lookup returns the key with a hash, or store.ErrNotFound.
func (c *cache) lookup(ctx context.Context, h hash) (*cachedKey, error) {
	c.mu.RLock()
	fresh := c.isFresh()
	found, version := c.known[h], c.version
	_, missing := c.unknown[h]
	c.mu.RUnlock()
	if !fresh {
		if err := c.check(ctx); err != nil {
			return nil, err
		}
		c.mu.RLock()
		found, version = c.known[h], c.version
		_, missing = c.unknown[h]
		c.mu.RUnlock()
	}
	switch {
	case found != nil:
		return found, nil
	case missing:
		return nil, store.ErrNotFound
	}
	return c.load(ctx, h, version)
}

// isFresh reports whether the version was checked recently. The lock must be held.
func (c *cache) isFresh() bool {
	age := c.now().Sub(c.checked)
	return age >= 0 && age < checkInterval
}

// check reads the version, and empties the cache if it has changed. Concurrent calls
// share a read.
func (c *cache) check(ctx context.Context) error {
	_, err, _ := c.calls.Do("version", func() (any, error) {
		began := c.now()
		version, err := c.store.KeysVersion(context.WithoutCancel(ctx)) // others wait for it, too
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if version != c.version {
			clear(c.known)
			clear(c.unknown)
		}
		c.version, c.checked = version, began
		return nil, nil
	})
	return err
}

// load reads a key, and caches it unless the version has changed meanwhile. Concurrent
// calls for one key share a read.
func (c *cache) load(ctx context.Context, h hash, version int64) (*cachedKey, error) {
	v, err, _ := c.calls.Do("key "+string(h[:]), func() (any, error) {
		r, err := c.store.KeyByHash(context.WithoutCancel(ctx), h)
		found := &cachedKey{Record: r}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			insert(c.held, h, struct{}{})
		}
		switch {
		case c.version != version:
		case err == nil:
			insert(c.known, h, found)
		case errors.Is(err, store.ErrNotFound):
			insert(c.unknown, h, struct{}{})
		}
		return found, err
	})
	return v.(*cachedKey), err
}

// insert adds an entry to a map of at most maxCached entries. It drops some entry of a
// full map.
func insert[V any](m map[hash]V, h hash, v V) {
	if len(m) >= maxCached {
		for old := range m {
			delete(m, old)
			break
		}
	}
	m[h] = v
}
