package contracts_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts"
)

func TestDeployRegistry(t *testing.T) {
	w := newWorld(t)
	opts := w.deployerOpts()
	address, tx, err := contracts.DeployRegistry(opts, w.Client(), w.merchant, w.payer)
	w.must(err)
	w.wantDeployed(tx)
	if receipt, err := w.Mined(w.Context(), tx.Hash()); err != nil || receipt.ContractAddress != address {
		t.Fatalf("registry is at %s (%v), want %s", receipt.ContractAddress, err, address)
	}
	ids := [][32]byte{w.terms().ID(w.ChainID(), address)}
	w.refused(w.Keys.Operator, address, w.registry.PackOpen(ids), w.registryError("AccessControlUnauthorizedAccount"))
	w.do(w.Keys.Payer, address, w.registry.PackOpen(ids))
}

func (w *world) deployerOpts() *bind.TransactOpts {
	opts := bind.NewKeyedTransactor(w.Keys.Merchant, w.ChainID())
	opts.Context = w.Context()
	return opts
}

func (w *world) wantDeployed(tx *types.Transaction) {
	w.Helper()
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), tx.Hash())
	w.must(err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		w.Fatal("the deployment failed")
	}
}

// TestDeployOnce deploys the contracts without an owner where they exist already, as on each development chain, and on
// a network without a Create2Deployer.
func TestDeployOnce(t *testing.T) {
	w := newWorld(t)
	usual := contracts.Create2Deployer
	t.Cleanup(func() { contracts.Create2Deployer = usual })
	for _, d := range []struct {
		name   string
		deploy func(*bind.TransactOpts, bind.ContractBackend) (common.Address, *types.Transaction, error)
		there  common.Address
		hash   common.Hash
	}{
		{"deposit factory", contracts.DeployDepositFactory, w.DepositFactory, contracts.DepositFactoryCodeHash},
		{"authorization relay", contracts.DeployAuthorizationRelay, w.AuthorizationRelay, contracts.AuthorizationRelayCodeHash},
	} {
		contracts.Create2Deployer = usual
		if address, tx, err := d.deploy(w.deployerOpts(), w.Client()); err != nil || tx != nil || address != d.there {
			t.Errorf("%s: deploying it again gave %s, %v, %v; want %s and no transaction", d.name, address, tx, err, d.there)
		}
		contracts.Create2Deployer = w.payer
		address, tx, err := d.deploy(w.deployerOpts(), w.Client())
		w.must(err)
		w.wantDeployed(tx)
		if got := crypto.Keccak256Hash(w.code(address)); got != d.hash || address == d.there {
			t.Errorf("%s: the code at %s has the hash %s, want %s at another address", d.name, address, got, d.hash)
		}
	}
}

// TestDeployThroughTheDeployer deploys with a Create2Deployer that has not deployed yet.
func TestDeployThroughTheDeployer(t *testing.T) {
	w := newWorld(t)
	usual := contracts.Create2Deployer
	t.Cleanup(func() { contracts.Create2Deployer = usual })
	push := []byte{0x60, byte(len(params.DeterministicFactoryCode)), 0x80, 0x60, 0x0b, 0x60, 0x00, 0x39, 0x60, 0x00, 0xf3}
	hash, err := w.Create(w.Context(), w.Keys.Deployer, append(push, params.DeterministicFactoryCode...))
	w.must(err)
	w.must(w.Seal(w.Context()))
	receipt, err := w.Mined(w.Context(), hash)
	w.must(err)
	contracts.Create2Deployer = receipt.ContractAddress
	first, tx, err := contracts.DeployDepositFactory(w.deployerOpts(), w.Client())
	w.must(err)
	w.wantDeployed(tx)
	if got := crypto.Keccak256Hash(w.code(first)); got != contracts.DepositFactoryCodeHash {
		t.Errorf("the code at %s has the hash %s", first, got)
	}
	second, tx, err := contracts.DeployDepositFactory(w.deployerOpts(), w.Client())
	if err != nil || tx != nil || second != first {
		t.Errorf("the second deployment gave %s, %v, %v; want %s and no transaction", second, tx, err, first)
	}
}
