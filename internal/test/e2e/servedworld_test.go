package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/client"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
)

// servedWorld is a service of quittance serve on the chain of another world, with the merchant acme.
type servedWorld struct {
	*world
	chain *world
	ctx   context.Context
	env   []string // of the service
	file  string   // its configuration
}

func newServedWorld(t *testing.T) *servedWorld {
	t.Helper()
	chainWorld, _ := startWorld(t, "--block-time", quick)
	dir := t.TempDir()
	s := &servedWorld{
		world: &world{TB: t, dir: dir, http: withKey(chainWorld.http)}, chain: chainWorld,
		ctx: within(t, 2*time.Minute), file: filepath.Join(dir, "quittance.yaml"),
	}
	s.info.Store(&dev.Info{Merchant: dev.MerchantInfo{ID: "acme", Address: s.newWalletAddress()}, Chain: chainWorld.info.Load().Chain})
	return s
}

// configure writes the configuration.
func (s *servedWorld) configure(text string) {
	s.Helper()
	expect.OK(s, os.WriteFile(s.file, []byte(text), 0o600))
}

// newWalletAddress returns the address of a new key.
func (s *servedWorld) newWalletAddress() string {
	key, err := crypto.GenerateKey()
	expect.OK(s, err)
	return crypto.PubkeyToAddress(key.PublicKey).Hex()
}

// serve runs the service until it is ready.
func (s *servedWorld) serve() *child {
	s.Helper()
	c := launchWith(s, s.env, "serve", "--config", s.file)
	info := *s.info.Load()
	info.BaseURL, info.Chain.ChainKey = c.awaitURL(s), "testnet"
	s.info.Store(&info)
	return c
}

// awaitInvoice waits until an invoice meets a condition, and returns it.
func (s *servedWorld) awaitInvoice(id string, wanted func(apitypes.Invoice) bool) (inv apitypes.Invoice) {
	s.Helper()
	err := await(s.ctx, func() bool {
		got, err := s.api().Invoice(s.ctx, id)
		inv = got
		return err == nil && wanted(inv)
	})
	if err != nil {
		s.Fatalf("%v: %+v", err, inv)
	}
	return inv
}

// payments returns the payments of an invoice.
func (s *servedWorld) payments(id string) (all []apitypes.Payment) {
	s.Helper()
	for p, err := range s.api().Payments(context.WithoutCancel(s.ctx), client.PaymentFilter{InvoiceID: id, IncludePending: true}) {
		expect.OK(s, err)
		all = append(all, p)
	}
	return all
}
