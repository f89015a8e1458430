package contracts

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// Create2Deployer is the contract that deploys any code it gets, at an address that depends only on that code. It is
// the same on nearly all networks (github.com/Arachnid/deterministic-deployment-proxy).
var Create2Deployer = params.DeterministicFactoryAddress

// DeployRegistry sends the transaction that creates a registry and returns its address immediately; the registry exists
// once the transaction was mined and succeeded. admin may grant the operator role to others, operator opens and closes
// invoices.
func DeployRegistry(
	opts *bind.TransactOpts, backend bind.ContractBackend, admin, operator common.Address,
) (common.Address, *types.Transaction, error) {
	input := NewInvoiceRegistry().PackConstructor(admin, operator)
	address, tx, err := bind.DeployContract(opts, common.FromHex(InvoiceRegistryMetaData.Bin), backend, input)
	if err != nil {
		return common.Address{}, nil, fmt.Errorf("deploy registry: %w", err)
	}
	return address, tx, nil
}

// DeployDepositFactory deploys the deposit factory as deployOnce does.
func DeployDepositFactory(opts *bind.TransactOpts, backend bind.ContractBackend) (common.Address, *types.Transaction, error) {
	return deployOnce(opts, backend, "deposit factory", &DepositFactoryMetaData)
}

// DeployAuthorizationRelay deploys the authorization relay as deployOnce does.
func DeployAuthorizationRelay(opts *bind.TransactOpts, backend bind.ContractBackend) (common.Address, *types.Transaction, error) {
	return deployOnce(opts, backend, "authorization relay", &AuthorizationRelayMetaData)
}

// deployOnce sends the transaction that creates a contract without constructor arguments, and returns its address
// immediately. If there is a Create2Deployer, the address comes from Create2, and no transaction is sent if the
// contract exists already. Without one, each call creates another contract.
func deployOnce(
	opts *bind.TransactOpts, backend bind.ContractBackend, name string, contract *bind.MetaData,
) (common.Address, *types.Transaction, error) {
	address, tx, err := deployCreate2(opts, backend, contract)
	if err != nil {
		return common.Address{}, nil, fmt.Errorf("deploy %s: %w", name, err)
	}
	return address, tx, nil
}

func deployCreate2(
	opts *bind.TransactOpts, backend bind.ContractBackend, contract *bind.MetaData,
) (common.Address, *types.Transaction, error) {
	ctx := opts.Context
	if ctx == nil {
		ctx = context.Background()
	}
	deployer, err := backend.CodeAt(ctx, Create2Deployer, nil)
	if err != nil {
		return common.Address{}, nil, err
	}
	if len(deployer) == 0 {
		return bind.DeployContract(opts, common.FromHex(contract.Bin), backend, nil)
	}
	address, data := Create2(contract)
	code, err := backend.CodeAt(ctx, address, nil)
	if err != nil || len(code) > 0 {
		return address, nil, err
	}
	bound := bind.NewBoundContract(Create2Deployer, abi.ABI{}, backend, backend, backend)
	tx, err := bind.Transact(bound, opts, data)
	return address, tx, err
}

// Create2 returns the address at which the Create2Deployer creates a contract without constructor arguments, which is
// the same on every network and for every sender, and the calldata for it.
func Create2(contract *bind.MetaData) (common.Address, []byte) {
	var salt common.Hash
	creation := common.FromHex(contract.Bin)
	return crypto.CreateAddress2(Create2Deployer, salt, crypto.Keccak256(creation)), slices.Concat(salt[:], creation)
}
