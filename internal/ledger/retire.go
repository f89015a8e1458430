package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ErrUnknownChain means that the service was never configured with a chain.
var ErrUnknownChain = errors.New("the database knows no such chain")

// TokenInUseError is the error of retiring a token that still has to be read.
type TokenInUseError struct {
	Token      chain.Token
	ChainKey   string
	Configured bool // by the newest revision
	Uses       db.TokenUses
}

// Error names the objects that need the token.
func (e *TokenInUseError) Error() string {
	if e.Configured {
		return fmt.Sprintf("%s is in the configuration of chain %s; remove it there, and restart the service first", e.Token.Currency, e.ChainKey)
	}
	return fmt.Sprintf("%s on chain %s still has %s; wait for these, or void, cancel and sweep them first", e.Token.Currency, e.ChainKey, e.Uses)
}

// RetireToken stops reading a token that left the configuration and has no live state. Running replicas continue to
// read it until they are restarted. It fails with ErrUnknownChain, db.ErrNotFound or a *TokenInUseError.
func RetireToken(ctx context.Context, store *db.DB, chainKey string, token invoice.Address, now time.Time) error {
	return store.Update(ctx, func(tx *db.Tx) error {
		known, err := lockKnown(ctx, tx, chainKey)
		if err != nil {
			return err
		}
		t, ok := known.TokenAt(token)
		if !ok || t.Retired() {
			return fmt.Errorf("token %s of chain %s: %w", chain.Checksum(token), chainKey, db.ErrNotFound)
		}
		cursors, err := lockBlocks(ctx, tx, []string{chainKey})
		if err != nil {
			return err
		}
		uses, err := tx.TokenUses(ctx, chainKey, token)
		if err != nil {
			return err
		}
		if configured := t.Configured && known.Configured; configured || uses != (db.TokenUses{}) {
			return &TokenInUseError{t.Token, chainKey, configured, uses}
		}
		if err := tx.RetireToken(ctx, chainKey, token, cursors[chainKey].Indexed.Number); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{
			Action: access.ActionTokenRetire, Object: chainKey, Before: auditedToken{t.Currency, chain.Checksum(token)},
		}))
	})
}

// auditedToken is a token in the audit log.
type auditedToken struct {
	Currency string `json:"currency"`
	Token    string `json:"token"` // address
}

// RetireChain frees the chain id of a chain for another key. The key cannot be used again. Running
// replicas stop their work.
func RetireChain(ctx context.Context, store *db.DB, chainKey string, now time.Time) error {
	return store.Update(ctx, func(tx *db.Tx) error {
		if _, err := lockKnown(ctx, tx, chainKey); err != nil {
			return err
		}
		if err := stopReplicas(ctx, tx, "retire "+chainKey, now, chainKey); err != nil {
			return err
		}
		if err := retireChain(ctx, tx, chainKey, now); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{Action: access.ActionChainRetire, Object: chainKey}))
	})
}

// RenameChain gives a chain another key, in all rows at once. Ids stay the same. Running replicas stop their work.
func RenameChain(ctx context.Context, store *db.DB, from, to string, now time.Time) error {
	return store.Update(ctx, func(tx *db.Tx) error {
		if _, err := lockKnown(ctx, tx, from); err != nil {
			return err
		}
		if _, err := lockKnown(ctx, tx, to); !errors.Is(err, ErrUnknownChain) {
			return errors.Join(err, fmt.Errorf("the database has used the key %s already; choose one that was never used", to))
		}
		if err := stopReplicas(ctx, tx, "rename "+from, now, from, to); err != nil {
			return err
		}
		if err := tx.RenameChain(ctx, from, to); err != nil {
			return err
		}
		return access.AppendAudit(ctx, tx, access.NewEntry(ctx, now, access.Change{
			Action: access.ActionChainRename, Object: to, Before: auditedChain{from}, After: auditedChain{to},
		}))
	})
}

// auditedChain is a chain in the audit log.
type auditedChain struct {
	ChainKey string `json:"chainKey"`
}

// lockKnown returns the record of a chain, and makes starts wait until the transaction ends.
func lockKnown(ctx context.Context, tx *db.Tx, chainKey string) (chain.KnownChain, error) {
	if err := tx.LockConfiguration(ctx); err != nil {
		return chain.KnownChain{}, err
	}
	was, err := Remembered(ctx, tx)
	known, ok := was.Chain(chainKey)
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", chainKey, ErrUnknownChain)
	}
	return known, err
}

// stopReplicas begins a revision that no configuration has, so that running replicas stop before they write more.
func stopReplicas(ctx context.Context, tx *db.Tx, why string, now time.Time, chainKeys ...string) error {
	if _, err := lockBlocks(ctx, tx, chainKeys); err != nil {
		return err
	}
	newest, err := tx.NewestRevision(ctx)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	return tx.InsertRevision(ctx, chain.Revision{Number: newest.Number + 1, Hash: fmt.Sprint(why, " ", newest.Number+1)}, now)
}
