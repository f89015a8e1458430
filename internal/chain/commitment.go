package chain

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// CommitmentID is the on-chain id of an invoice: the hash of its terms, its
// id's salt, the chain and the registry, as the registry contract computes it.
// It is known before any transaction is sent, and anyone can recompute it.
// Without a registry pass the zero address.
func CommitmentID(chainID uint64, registry invoice.Address, terms invoice.Terms, invoiceID string) invoice.Hash {
	t := ContractTerms(terms, invoiceID)
	return invoice.Hash(t.ID(new(big.Int).SetUint64(chainID), common.Address(registry)))
}

// DepositAddress returns where an invoice with that settlement address and
// commitment is paid by its deposit address. It is the zero address where no
// deposit factory is configured.
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

// TakesPayment reports whether the configured registry takes payments of an
// invoice: its commitment names that one and no other.
func (c Chain) TakesPayment(inv invoice.Invoice) bool {
	return !c.Registry.IsZero() && inv.Registry == c.Registry && c.Commits(inv)
}

// ContractTerms returns an invoice's terms as the registry's functions take
// them.
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
