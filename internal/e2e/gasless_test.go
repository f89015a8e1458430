package e2e

import (
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
)

// authorize returns the body of a request that pays an invoice by an authorization of the
// wallet's account, with the invoice's on-chain id as nonce.
func (a *wallet) authorize(tb testing.TB, made apitypes.CreateInvoiceResponse) string {
	tb.Helper()
	return a.authorizeAs(tb, made, a.address, common.HexToHash(made.OnChainInvoiceID), func(signature []byte) []byte { return signature })
}

// authorizeAs is authorize for an account that the wallet's key signs for, with a nonce; wrap
// returns the account's signature from the key's.
func (a *wallet) authorizeAs(tb testing.TB, made apitypes.CreateInvoiceResponse, from common.Address, nonce common.Hash, wrap func([]byte) []byte) string {
	tb.Helper()
	const window = 10 * time.Minute
	auth := contracts.Authorization{
		From: from, To: common.HexToAddress(made.Invoice.MerchantAddress), Value: units(tb, made.Invoice.Amount),
		ValidAfter: new(big.Int), ValidBefore: big.NewInt(time.Now().Add(window).Unix()), Nonce: nonce,
	}
	chain := a.info().Chain
	domain := contracts.TestUSDCDomain(new(big.Int).SetUint64(chain.ChainID), common.HexToAddress(chain.Token))
	signature, err := auth.Sign(domain, a.key)
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf(`{
  "from": %q,
  "to": %q,
  "value": %q,
  "validAfter": 0,
  "validBefore": %s,
  "nonce": %q,
  "signature": "%#x"
}`, from.Hex(), auth.To.Hex(), auth.Value.String(), auth.ValidBefore, auth.Nonce.Hex(), wrap(signature.Bytes()))
}
