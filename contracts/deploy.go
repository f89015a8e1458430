package contracts

import (
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// DeployRegistry sends the transaction that creates a registry and returns its address at once; the registry is there
// when the transaction has been mined with success. admin may name further operators, operator opens and closes
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
