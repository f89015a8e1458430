package chain

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// Upper bounds of the gas that a transaction with one authorization may use.
const (
	MaxAuthorizationGas = 300_000
	// MaxDeployGas is the bound if the payer's account is deployed as well.
	MaxDeployGas = 650_000
)

// AuthorizationGas returns the most gas that a transaction with one authorization may use.
func AuthorizationGas(deploys bool) uint64 {
	if deploys {
		return MaxDeployGas
	}
	return MaxAuthorizationGas
}

// AuthorizationCall returns an authorization of a token as the argument of the contracts. It fails if the signature
// ends like one of ERC-6492 but does not have its form.
func AuthorizationCall(token invoice.Address, a invoice.Authorization) (contracts.RelayedAuthorization, error) {
	value := a.Value.Bytes()
	return contracts.AuthorizationOf(common.Address(token), contracts.Authorization{
		From: common.Address(a.From), To: common.Address(a.To), Value: new(big.Int).SetBytes(value[:]),
		ValidAfter: big.NewInt(a.ValidAfter.Unix()), ValidBefore: big.NewInt(a.ValidBefore.Unix()), Nonce: common.Hash(a.Nonce),
	}, a.Signature)
}
