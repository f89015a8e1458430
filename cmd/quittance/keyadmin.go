package main

import (
	"context"
	"errors"
	"time"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/apiconv"
	"github.com/quittance/quittance/internal/db"
)

// keyAdmin manages the keys of a service, in its database or through its API.
type keyAdmin interface {
	create(ctx context.Context, r access.KeyRequest) (apitypes.Key, string, error)
	list(ctx context.Context, merchantID string) ([]apitypes.Key, error)
	rotate(ctx context.Context, id string, overlap time.Duration) (apitypes.Key, string, error)
	revoke(ctx context.Context, id string) error
}

// keyAdmin returns the keys of the service: with --config in its database, which works
// while the service is stopped, else through its API.
func (r *remote) keyAdmin(env environment) (keyAdmin, error) {
	if r.config != "" {
		cfg, err := loadConfig(r.config)
		return storedKeys{merchantsConfig(cfg)}, err
	}
	c, err := r.client(env)
	return servedKeys{c}, err
}

// storedKeys are the keys in a database.
type storedKeys struct{ cfg admin.MerchantsConfig }

func (s storedKeys) with(ctx context.Context, do func(context.Context, *access.KeyManager) error) error {
	ctx = asCommand(ctx)
	return admin.WithKeys(ctx, s.cfg, func(m *access.KeyManager) error { return do(ctx, m) })
}

// made returns the key after a change.
func (s storedKeys) made(
	ctx context.Context, change func(context.Context, *access.KeyManager) (access.Record, access.Key, error),
) (k apitypes.Key, secret string, err error) {
	err = s.with(ctx, func(ctx context.Context, m *access.KeyManager) error {
		record, key, err := change(ctx, m)
		if err == nil {
			k, secret = apiconv.Key(record, time.Now()), key.Reveal()
		}
		return err
	})
	return k, secret, err
}

func (s storedKeys) create(ctx context.Context, r access.KeyRequest) (apitypes.Key, string, error) {
	return s.made(ctx, func(ctx context.Context, m *access.KeyManager) (access.Record, access.Key, error) {
		return m.Create(ctx, access.Open(), r)
	})
}

func (s storedKeys) rotate(ctx context.Context, id string, overlap time.Duration) (apitypes.Key, string, error) {
	return s.made(ctx, func(ctx context.Context, m *access.KeyManager) (access.Record, access.Key, error) {
		return m.Rotate(ctx, access.Open(), id, overlap)
	})
}

// maxListedKeys bounds the keys that are listed from a database.
const maxListedKeys = 10_000

func (s storedKeys) list(ctx context.Context, merchantID string) ([]apitypes.Key, error) {
	records, err := admin.Read(ctx, s.cfg.Database, func(store *db.DB) ([]access.Record, error) {
		return access.NewReader(store).Keys(ctx, access.KeyFilter{MerchantID: merchantID, Limit: maxListedKeys})
	})
	keys := make([]apitypes.Key, len(records))
	for i, r := range records {
		keys[i] = apiconv.Key(r, time.Now())
	}
	return keys, err
}

func (s storedKeys) revoke(ctx context.Context, id string) error {
	return s.with(ctx, func(ctx context.Context, m *access.KeyManager) error {
		_, err := m.Revoke(ctx, access.Open(), id)
		return err
	})
}

// servedKeys are the keys that a service's API shows.
type servedKeys struct{ c *client.Client }

func (s servedKeys) create(ctx context.Context, r access.KeyRequest) (apitypes.Key, string, error) {
	wanted := apitypes.CreateKeyRequest{Name: r.Name, MerchantID: r.MerchantID, Scopes: r.Scopes.Names()}
	if !r.ExpiresAt.IsZero() {
		wanted.ExpiresAt = r.ExpiresAt.Unix()
	}
	return s.c.CreateKey(ctx, wanted)
}

func (s servedKeys) rotate(ctx context.Context, id string, overlap time.Duration) (apitypes.Key, string, error) {
	return s.c.RotateKey(ctx, id, overlap)
}

func (s servedKeys) list(ctx context.Context, merchantID string) ([]apitypes.Key, error) {
	return firstOf(s.c.Keys(ctx, merchantID), 0)
}

func (s servedKeys) revoke(ctx context.Context, id string) error { return s.c.RevokeKey(ctx, id) }

// noKey replaces the error of an unknown key's id.
func noKey(err error) error {
	problem := (*client.Error)(nil)
	if errors.Is(err, db.ErrNotFound) || errors.As(err, &problem) && problem.Code == apitypes.CodeNotFound {
		return errors.New("no key has this id; quittance key list shows them")
	}
	return noService(err)
}
