package chain

import (
	"bytes"
	"context"
	"fmt"
	"math/big"

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

// CommitmentID is the on-chain id of an invoice: the hash of its terms, its id's salt, the chain and the registry, as
// the registry contract computes it. It is known before any transaction is sent, and anyone can recompute it. Pass the
// zero address if there is no registry.
func CommitmentID(chainID uint64, registry invoice.Address, terms invoice.Terms, invoiceID string) invoice.Hash {
	t := ContractTerms(terms, invoiceID)
	return invoice.Hash(t.ID(new(big.Int).SetUint64(chainID), common.Address(registry)))
}

// DepositAddress returns the deposit address of an invoice with that settlement address and commitment. It is the zero
// address if no deposit factory is configured.
func (c Chain) DepositAddress(merchant invoice.Address, commitment invoice.Hash) invoice.Address {
	if c.DepositFactory.IsZero() {
		return invoice.Address{}
	}
	return invoice.Address(contracts.DepositAddress(
		common.Address(c.DepositFactory), common.Address(merchant), common.Hash(commitment)))
}

// Commits reports whether an invoice's on-chain id is the hash of its terms, its
// registry and this chain. If not, the commitment must not be used.
func (c Chain) Commits(inv invoice.Invoice) bool {
	return CommitmentID(c.ID, inv.Registry, inv.Terms, inv.ID) == inv.CommitmentID
}

// TakesPayment reports whether the configured registry accepts payments of an invoice: only if its commitment names
// that registry.
func (c Chain) TakesPayment(inv invoice.Invoice) bool {
	return !c.Registry.IsZero() && inv.Registry == c.Registry && c.Commits(inv)
}

// ContractTerms returns an invoice's terms as the argument of the registry's functions.
func ContractTerms(terms invoice.Terms, invoiceID string) contracts.Terms {
	amount := terms.Amount.Bytes()
	return contracts.Terms{
		Merchant:  common.Address(terms.Merchant),
		Token:     common.Address(terms.Token),
		Amount:    new(big.Int).SetBytes(amount[:]),
		ExpiresAt: uint64(terms.ExpiresAt.Unix()),
		Salt:      contracts.Salt(invoiceID),
	}
}
