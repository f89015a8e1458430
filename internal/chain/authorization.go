package chain

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// AuthorizationCall returns an authorization of a token as contracts take it. It fails for a
// signature that is not in the form of ERC-6492 though it ends so.
func AuthorizationCall(token invoice.Address, a invoice.Authorization) (contracts.RelayedAuthorization, error) {
	value := a.Value.Bytes()
	return contracts.AuthorizationOf(common.Address(token), contracts.Authorization{
		From: common.Address(a.From), To: common.Address(a.To), Value: new(big.Int).SetBytes(value[:]),
		ValidAfter: big.NewInt(a.ValidAfter.Unix()), ValidBefore: big.NewInt(a.ValidBefore.Unix()), Nonce: common.Hash(a.Nonce),
	}, a.Signature)
}
