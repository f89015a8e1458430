package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// checkOpen returns an error if an invoice must not be opened now: its chain or deposit factory is not
// verified, or blocks that its token missed are not read yet. It must not be called in a transaction.
func (s *Service) checkOpen(ctx context.Context, inv invoice.Invoice) error {
	if err := s.verifyFactory(ctx, inv); err != nil {
		return err
	}
	if s.conf.VerifyChain != nil {
		verifying, cancel := context.WithTimeout(ctx, verifyTimeout)
		defer cancel()
		if err := s.conf.VerifyChain(verifying, inv.ChainKey, inv.Token); err != nil {
			return &UnverifiedError{inv.ChainKey, err}
		}
	}
	return s.checkMissed(ctx, inv)
}

// UnverifiedError is the error of a create on a chain with nodes that serve another chain, or that
// were never asked before.
type UnverifiedError struct {
	ChainKey string
	err      error
}

// Error has the nodes' answer.
func (e *UnverifiedError) Error() string {
	return fmt.Sprintf("chain %s is not verified: %v", e.ChainKey, e.err)
}

// Unwrap returns the nodes' answer.
func (e *UnverifiedError) Unwrap() error { return e.err }

// Unavailable is the error for a client.
func (e *UnverifiedError) Unavailable() string {
	return "No node of " + e.ChainKey + " has confirmed that it serves this chain with the configured tokens, so no invoice is created on it; repeat the request later."
}

// MissedBlocksError is the error of a create in a token for which blocks are read again.
type MissedBlocksError struct {
	ChainKey, Currency string
	Next, Through      uint64
}

// Error names the blocks.
func (e *MissedBlocksError) Error() string {
	return fmt.Sprintf("blocks %d to %d of %s were read without %s, and are read again", e.Next, e.Through, e.ChainKey, e.Currency)
}

// Unavailable is the error for a client.
func (e *MissedBlocksError) Unavailable() string {
	return fmt.Sprintf("Blocks %d to %d of %s were read without %s. Invoices in it are taken again when these blocks are read; repeat the request later.", e.Next, e.Through, e.ChainKey, e.Currency)
}

// tokenKey is a token of a chain.
type tokenKey struct {
	chainKey string
	token    invoice.Address
}

// missedBlocks are the tokens for which blocks are read again. It is safe for concurrent use.
type missedBlocks struct {
	mu      sync.Mutex
	through map[tokenKey]uint64 // the newest of these blocks
}

func newMissedBlocks(r chain.RememberedChains) *missedBlocks {
	m := &missedBlocks{through: make(map[tokenKey]uint64)}
	for _, c := range r.Chains {
		for _, t := range c.Tokens {
			if t.MissedThrough != nil {
				m.through[tokenKey{c.Key, t.Address}] = *t.MissedThrough
			}
		}
	}
	return m
}

// SetRemembered replaces the service's record of blocks that are read again by the result of Remember.
func (s *Service) SetRemembered(r chain.RememberedChains) {
	through := newMissedBlocks(r).through
	s.missed.mu.Lock()
	defer s.missed.mu.Unlock()
	s.missed.through = through
}

func (m *missedBlocks) of(k tokenKey) (through uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	through, ok = m.through[k]
	return through, ok
}

// checkMissed returns a *MissedBlocksError while blocks are read again for the invoice's token.
func (s *Service) checkMissed(ctx context.Context, inv invoice.Invoice) error {
	k := tokenKey{inv.ChainKey, inv.Token}
	through, ok := s.missed.of(k)
	if !ok {
		return nil
	}
	cur, err := NewReader(s.conf.Store).Cursor(ctx, inv.ChainKey)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	if cur.Gap != nil && cur.Gap.Next <= through {
		return &MissedBlocksError{inv.ChainKey, inv.Currency, cur.Gap.Next, through}
	}
	if err := s.conf.Store.Update(ctx, func(tx *db.Tx) error { return clearMissed(ctx, tx, k.chainKey, k.token) }); err != nil {
		return err
	}
	s.missed.mu.Lock()
	defer s.missed.mu.Unlock()
	delete(s.missed.through, k)
	return nil
}

// Genesis returns the recorded oldest block of a chain, or nil.
func (s *Service) Genesis(ctx context.Context, chainKey string) (*invoice.Header, error) {
	return genesis(ctx, s.conf.Store, chainKey)
}

// SetGenesis records the oldest block that the nodes of a chain have, unless one is recorded.
func (s *Service) SetGenesis(ctx context.Context, chainKey string, at invoice.Header) error {
	return s.conf.Store.Update(ctx, func(tx *db.Tx) error { return setGenesis(ctx, tx, chainKey, at) })
}
