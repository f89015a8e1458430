package admin_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/admin"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
)

// TestRetireChain retires a chain, so that its chain id can have another key. Until then a second key is refused.
func TestRetireChain(t *testing.T) {
	c, _ := world(t)
	store := dbtest.Open(t, c.Database)
	renamed := c.Chains[0]
	renamed.Key = "home"
	start := func(chains ...chain.Chain) error {
		_, _, err := ledger.Remember(t.Context(), store, ledger.Start{Configured: chain.ConfiguredChains{Chains: chains}, Now: clock(), Plan: true})
		return err
	}
	if _, err := admin.RememberedChain(t.Context(), c, "mars"); !errors.Is(err, ledger.ErrUnknownChain) {
		t.Errorf("a chain that was never configured: %v, want %v", err, ledger.ErrUnknownChain)
	}
	if _, _, err := ledger.Remember(t.Context(), dbtest.Open(t, c.Database), ledger.Start{Configured: chain.ConfiguredChains{Chains: c.Chains}, Now: clock()}); err != nil {
		t.Fatal(err)
	}
	known, err := admin.RememberedChain(t.Context(), c, "house")
	if err != nil || known.ID != 7 || known.Uses.String() != "" {
		t.Errorf("house is %+v (%v)", known, err)
	}
	var refused *chain.RefusedError
	if err := start(renamed); !errors.As(err, &refused) {
		t.Errorf("a second key: %v, want a refusal", err)
	}
	if err := ledger.RetireChain(t.Context(), store, "house", clock()); err != nil {
		t.Fatal(err)
	}
	if err := start(renamed); err != nil {
		t.Errorf("another key after the chain was retired: %v", err)
	}
	if err := start(c.Chains...); err == nil || !strings.Contains(err.Error(), "house was retired") {
		t.Errorf("the retired key: %v, want a refusal", err)
	}
}
