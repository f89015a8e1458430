package admin

import (
	"context"
	"errors"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// KnownChain is the record of a chain, and the objects that still require reading it.
type KnownChain struct {
	chain.KnownChain
	Uses db.TokenUses // of all its tokens
}

// RememberedChain returns the record of a chain, or ledger.ErrUnknownChain.
func RememberedChain(ctx context.Context, c Config, chainKey string) (known KnownChain, err error) {
	err = WithStore(ctx, c.Database, func(store *db.DB) error {
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

// WithStopped is WithStore while no service runs on a SQLite database. Replicas that use a PostgreSQL database may run.
func WithStopped(ctx context.Context, database string, do func(*db.DB) error) (err error) {
	unlock, err := db.LockService(database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return WithStore(ctx, database, do)
}
