package certs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
)

// Cache is an autocert.Cache in the database, so that replicas share certificates and
// answer each other's challenges. Its content is encrypted, because it has private keys.
type Cache struct {
	Store   *db.DB
	Keyring *access.Keyring
	Now     func() time.Time
	Logger  *slog.Logger
}

// sealName returns the name under which an entry is sealed. It is not a valid merchant id.
func sealName(name string) string { return "acme/" + name }

// Get implements autocert.Cache. An entry that cannot be decrypted counts as missing, so that a new
// one replaces it.
func (c *Cache) Get(ctx context.Context, name string) ([]byte, error) {
	e, err := findACMEEntry(ctx, c.Store, name)
	if errors.Is(err, db.ErrNotFound) {
		return nil, autocert.ErrCacheMiss
	}
	if err != nil {
		return nil, err
	}
	text, err := c.Keyring.Open(sealName(name), 0, access.Sealed{KeyID: e.KeyID, Data: e.Sealed})
	if err != nil {
		c.Logger.WarnContext(ctx, "stored certificate not decrypted, another will be requested", "name", name, "err", err)
		return nil, autocert.ErrCacheMiss
	}
	return []byte(text), nil
}

// Reseal seals the entries under the keyring's newest key that are sealed under another one. It is safe while services
// use them. It leaves out entries that the keyring cannot open.
func (c *Cache) Reseal(ctx context.Context) error {
	return c.Store.Update(ctx, func(tx *db.Tx) error {
		others, err := acmeEntriesNotUnder(ctx, tx, c.Keyring.KeyID())
		for name, e := range others {
			text, err := c.Keyring.Open(sealName(name), 0, access.Sealed{KeyID: e.KeyID, Data: e.Sealed})
			if err != nil {
				continue // Get counts it as missing
			}
			sealed := c.Keyring.Seal(sealName(name), 0, text)
			if err := resealACMEEntry(ctx, tx, name, e, ACMEEntry{Sealed: sealed.Data, KeyID: sealed.KeyID}); err != nil {
				return err
			}
		}
		return err
	})
}

// Put implements autocert.Cache.
func (c *Cache) Put(ctx context.Context, name string, data []byte) error {
	sealed := c.Keyring.Seal(sealName(name), 0, string(data))
	return putACMEEntry(ctx, c.Store, name, ACMEEntry{Sealed: sealed.Data, KeyID: sealed.KeyID}, c.Now())
}

// Delete implements autocert.Cache.
func (c *Cache) Delete(ctx context.Context, name string) error {
	return deleteACMEEntry(ctx, c.Store, name)
}
