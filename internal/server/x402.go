package server

import (
	"context"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/x402"
)

// facilitator returns the facilitator that takes payments by x402.
func (s *Server) facilitator() *x402.Service {
	return x402.New(x402.Config{
		Ledger: s.settle, Store: ledger.NewTables(s.store), Merchants: s.merchants, Networks: s.networks(),
		Chains: &x402Chains{chains: s.cfg.Chains, checker: s.authorizationChecker(), domains: make(map[tokenKey]x402.Domain)}, Feed: s.feed, Stopping: s.long, Now: s.cfg.Now,
	})
}

// tokenKey identifies a token.
type tokenKey struct {
	chainKey string
	token    invoice.Address
}

// x402Chains implements x402.Chains.
type x402Chains struct {
	chains  []Chain
	checker *x402.Checker

	mu      sync.Mutex
	domains map[tokenKey]x402.Domain // of the configured tokens that were asked for
}

// Domain returns the EIP-712 domain of a token. It is read once.
func (c *x402Chains) Domain(ctx context.Context, chainKey string, token invoice.Address) (x402.Domain, error) {
	key := tokenKey{chainKey, token}
	c.mu.Lock()
	known, ok := c.domains[key]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	at := slices.IndexFunc(c.chains, func(known Chain) bool { return known.Key == chainKey })
	if at < 0 {
		return x402.Domain{}, invoice.Refuse(invoice.RefusedGaslessOff)
	}
	found, err := c.checker.TokenDomain(ctx, c.chains[at].Chain, token)
	if err != nil {
		return x402.Domain{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.domains[key] = x402.Domain(found)
	return c.domains[key], nil
}

// Sender returns the account that sends the authorizations of a chain, and whether the service sends
// them.
func (c *x402Chains) Sender(chainKey string) (invoice.Address, bool) {
	for _, known := range c.chains {
		if known.Key == chainKey && known.sendsAuthorizations() {
			return invoice.Address(crypto.PubkeyToAddress(known.OperatorKey.PublicKey)), true
		}
	}
	return invoice.Address{}, false
}
