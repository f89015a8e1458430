package contracts_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
)

func TestDeployRegistry(t *testing.T) {
	w := newWorld(t)
	opts := bind.NewKeyedTransactor(w.Keys.Merchant, w.ChainID())
	opts.Context = w.Context()
	address, tx, err := contracts.DeployRegistry(opts, w.Client(), w.merchant, w.payer)
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), tx.Hash())
	w.must(err)
	if receipt.Status != types.ReceiptStatusSuccessful || receipt.ContractAddress != address {
		t.Fatalf("registry is at %s with status %d, want %s", receipt.ContractAddress, receipt.Status, address)
	}
	ids := [][32]byte{w.terms().ID(w.ChainID(), address)}
	w.refused(w.Keys.Operator, address, w.registry.PackOpen(ids), w.registryError("AccessControlUnauthorizedAccount"))
	w.do(w.Keys.Payer, address, w.registry.PackOpen(ids))
}
