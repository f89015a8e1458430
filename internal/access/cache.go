package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/quittance/quittance/internal/db"
)

const (
	// checkInterval is how long cached keys are used without a check for changes. It
	// bounds how long a revoked key is still accepted.
	checkInterval = 500 * time.Millisecond
	// refreshInterval is how long cached keys are used while the version does not change. After a failover
	// that lost its last commits, a different change may have the version that was lost.
	refreshInterval = time.Minute
	// MaxCached bounds the keys of each map of the cache.
	MaxCached = 10_000
)

type hash = [HashSize]byte

// cachedKey is a key in the cache.
type cachedKey struct {
	Record
	noted atomic.Int64 // when its use was last noted, in Unix seconds
}

// cache holds keys that were read from the database.
//
// Invariant: each key in it was read after version was, and version was read at most checkInterval
// before a lookup returns. A change of any key changes the version, which empties the cache except
// held. The cache is also emptied after refreshInterval.
type cache struct {
	store KeyReader
	admit Admit
	now   func() time.Time
	calls singleflight.Group

	mu      sync.RWMutex
	checked time.Time // when the last read of the version began
	emptied time.Time
	version int64
	known   map[hash]*cachedKey
	unknown map[hash]struct{} // hashes that no key has
	held    map[hash]struct{} // hashes of keys that were read, also before the last change
}

func newCache(keys KeyReader, admit Admit, now func() time.Time) *cache {
	return &cache{store: keys, admit: admit, now: now, known: make(map[hash]*cachedKey), unknown: make(map[hash]struct{}), held: make(map[hash]struct{})}
}

// lookup returns the key with a hash, db.ErrNotFound, or the error of admit.
func (c *cache) lookup(ctx context.Context, h hash) (*cachedKey, error) {
	c.mu.RLock()
	fresh := c.isFresh()
	found, version := c.known[h], c.version
	_, missing := c.unknown[h]
	c.mu.RUnlock()
	if !fresh {
		if err := c.check(ctx); err != nil {
			return nil, fmt.Errorf("look up a key: %w", err)
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
		return nil, db.ErrNotFound
	}
	if c.holds(h) {
		return c.load(ctx, h, version)
	}
	done, err := c.admit(ctx, h)
	if err != nil {
		return nil, err
	}
	found, err = c.load(ctx, h, version)
	done(errors.Is(err, db.ErrNotFound))
	return found, err
}

// holds reports whether the key with a hash was read before.
func (c *cache) holds(h hash) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, held := c.held[h]
	return held
}

// isFresh reports whether the version was checked recently. The lock must be held.
func (c *cache) isFresh() bool {
	age := c.now().Sub(c.checked)
	return age >= 0 && age < checkInterval
}

// check reads the version, and empties the cache if it has changed. Concurrent calls share a read.
func (c *cache) check(ctx context.Context) error {
	_, err, _ := c.calls.Do("version", func() (any, error) {
		began := c.now()
		version, err := c.store.KeysVersion(db.WithShare(context.WithoutCancel(ctx), 0)) // others also wait for it
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if age := began.Sub(c.emptied); version != c.version || age < 0 || age >= refreshInterval {
			clear(c.known)
			clear(c.unknown)
			c.emptied = began
		}
		c.version, c.checked = version, began
		return nil, nil
	})
	return err
}

// load reads a key, and caches it unless the version has changed since the caller read it. Concurrent
// calls for one key share a read.
func (c *cache) load(ctx context.Context, h hash, version int64) (*cachedKey, error) {
	v, err, _ := c.calls.Do("key "+string(h[:]), func() (any, error) {
		r, err := c.store.KeyByHash(db.WithShare(context.WithoutCancel(ctx), db.Writes), h)
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
		case errors.Is(err, db.ErrNotFound):
			insert(c.unknown, h, struct{}{})
		}
		return found, err
	})
	if err != nil {
		return nil, fmt.Errorf("look up a key: %w", err)
	}
	return v.(*cachedKey), nil
}

// insert adds an entry to a map of at most MaxCached entries. It drops a random entry of a full map.
func insert[K comparable, V any](m map[K]V, key K, v V) {
	if len(m) >= MaxCached {
		for old := range m {
			delete(m, old)
			break
		}
	}
	m[key] = v
}
