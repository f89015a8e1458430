package chain

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// DepositState is the state of a deposit address according to a node.
type DepositState struct {
	ChainID  uint64
	Deployed bool // whether the address has its code, which it needs only for a sweep
}

// InspectDeposit asks the node at a URL whether the contracts behind a deposit address have the code of this release,
// so that money paid there can only go to the merchant. The error is an ErrMismatch if they do not, or if chainID is
// given and differs from the node's.
func InspectDeposit(
	ctx context.Context, url string, chainID uint64, factory, merchant invoice.Address, commitment invoice.Hash,
) (DepositState, error) {
	c, err := NewClient(ClientConfig{URL: url})
	if err != nil {
		return DepositState{}, err
	}
	defer c.Close()
	var id Quantity
	if err := c.call(ctx, &id, "eth_chainId"); err != nil {
		return DepositState{}, err
	}
	if chainID != 0 && id.N != chainID {
		return DepositState{}, fmt.Errorf("%w: %s serves chain id %d, want %d", ErrMismatch, c.name, id.N, chainID)
	}
	conf := Chain{Key: fmt.Sprint(id.N), ID: id.N, DepositFactory: factory}
	if err := c.checkContracts(ctx, conf); err != nil {
		return DepositState{}, err
	}
	var code hexutil.Bytes
	address := common.Address(conf.DepositAddress(merchant, commitment))
	if err := c.call(ctx, &code, "eth_getCode", address, "latest"); err != nil {
		return DepositState{}, err
	}
	if want := contracts.DepositCode(common.Address(factory), common.Address(merchant)); len(code) > 0 && !bytes.Equal(code, want) {
		return DepositState{}, fmt.Errorf("%w: the code at %s is not that of a deposit address", ErrMismatch, address)
	}
	return DepositState{ChainID: id.N, Deployed: len(code) > 0}, nil
}
