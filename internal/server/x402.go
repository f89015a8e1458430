package server

import (
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/x402"
)

// facilitator returns the facilitator that takes payments by x402.
func (s *Server) facilitator() *x402.Service {
	return x402.New(x402.Config{
		Ledger: s.settle, Store: ledger.NewTables(s.store), Merchants: s.merchants, Networks: s.networks(),
		Chains: x402Chains{s.authorizationChecker(), s.cfg.Chains}, Feed: s.feed, Stopping: s.long, Now: s.cfg.Now,
	})
}

// x402Chains implements x402.Chains.
type x402Chains struct {
	*x402.Checker
	chains []Chain
}

// Sender returns the account that sends the authorizations of a chain, and whether the service sends
// them.
func (c x402Chains) Sender(chainKey string) (invoice.Address, bool) {
	for _, known := range c.chains {
		if known.Key == chainKey && known.sendsAuthorizations() {
			return invoice.Address(crypto.PubkeyToAddress(known.OperatorKey.PublicKey)), true
		}
	}
	return invoice.Address{}, false
}
