package admin

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// RetireToken stops reading a token that left the configuration and has no live state. The service may
// run.
func RetireToken(ctx context.Context, c Config, chainKey string, token invoice.Address) error {
	return withStore(ctx, c.Database, func(store *db.DB) error {
		return ledger.RetireToken(ctx, store, chainKey, token, c.Now())
	})
}

// RetireChain frees the chain id of a chain for another key. A SQLite database must not be in use;
// replicas that use a PostgreSQL database stop their work.
func RetireChain(ctx context.Context, c Config, chainKey string) error {
	return withStopped(ctx, c.Database, func(store *db.DB) error { return ledger.RetireChain(ctx, store, chainKey, c.Now()) })
}

// RenameChain gives a chain another key in all rows. A SQLite database must not be in use; replicas
// that use a PostgreSQL database stop their work.
func RenameChain(ctx context.Context, c Config, from, to string) error {
	return withStopped(ctx, c.Database, func(store *db.DB) error { return ledger.RenameChain(ctx, store, from, to, c.Now()) })
}

// KnownChain is the record of a chain, and the objects that still require reading it.
type KnownChain struct {
	chain.KnownChain
	Uses db.TokenUses // of all its tokens
}

// RememberedChain returns the record of a chain, or ledger.ErrUnknownChain.
func RememberedChain(ctx context.Context, c Config, chainKey string) (known KnownChain, err error) {
	err = withStore(ctx, c.Database, func(store *db.DB) error {
		was, err := ledger.Remembered(ctx, store)
		if err != nil {
			return err
		}
		var ok bool
		if known.KnownChain, ok = was.Chain(chainKey); !ok {
			return ledger.ErrUnknownChain
		}
		for _, t := range known.Tokens {
			u, err := store.TokenUses(ctx, chainKey, t.Address)
			if err != nil {
				return err
			}
			known.Uses = known.Uses.Plus(u)
		}
		return nil
	})
	return known, err
}

// withStopped is withStore while no service runs on a SQLite database.
func withStopped(ctx context.Context, database string, do func(*db.DB) error) (err error) {
	unlock, err := db.LockService(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return withStore(ctx, database, do)
}
