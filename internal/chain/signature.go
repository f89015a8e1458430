package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// signatureLen is the length of a signature of secp256k1 with its recovery id, in bytes.
const signatureLen = 65

// ErrSignature is returned for a signature that no account can have made.
var ErrSignature = errors.New("is not a signature of an Ethereum account: expected 0x and 130 hex digits")

// PersonalSigner returns the account that signed the text with personal_sign (EIP-191, version 0x45). The signature is
// 0x and 130 hex digits as wallets write it, with a recovery id of 0, 1, 27 or 28. The error for a malformed signature
// is ErrSignature. A signature of another text yields another account, so the caller has to compare the account.
func PersonalSigner(text, signature string) (invoice.Address, error) {
	digits, ok := strings.CutPrefix(signature, "0x")
	if !ok || len(digits) != 2*signatureLen {
		return invoice.Address{}, ErrSignature
	}
	sig, err := hex.DecodeString(digits)
	if err != nil {
		return invoice.Address{}, ErrSignature
	}
	if sig[64] >= 27 {
		sig[64] -= 27
	}
	r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])
	if !crypto.ValidateSignatureValues(sig[64], r, s, true) {
		return invoice.Address{}, ErrSignature
	}
	key, err := crypto.SigToPub(PersonalHash(text), sig)
	if err != nil {
		return invoice.Address{}, ErrSignature
	}
	return invoice.Address(crypto.PubkeyToAddress(*key)), nil
}

// PersonalHash returns the hash that personal_sign signs for a text.
func PersonalHash(text string) []byte {
	return crypto.Keccak256(fmt.Appendf(nil, "\x19Ethereum Signed Message:\n%d%s", len(text), text))
}

// ClaimText is the text that a payer signs to claim that a transaction pays an invoice. It names everything that the
// claim depends on, so that a signature cannot be used for another claim.
func ClaimText(chainID uint64, inv invoice.Invoice, tx invoice.Hash) string {
	return fmt.Sprintf("I sent the payment in the transaction below, and it is for this invoice.\n\n"+
		"Invoice: %s\nMerchant: %s\nPaid to: %s\nChain id: %d\nTransaction: %s\n\n"+
		"Signing this moves no money.", inv.ID, inv.MerchantID, Checksum(inv.Merchant), chainID, tx)
}

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

// AccountTimeout is how long the nodes may take to determine an account's kind.
const AccountTimeout = 2 * time.Second

// Account returns the kind of an account of a chain. It is unknown if no node answers in time. An
// account that delegates to a contract (EIP-7702) still has a key.
func (i *Inspector) Account(ctx context.Context, chainKey string, account invoice.Address) invoice.AccountKind {
	n := i.indexOf(chainKey)
	if n < 0 {
		return invoice.AccountUnknown
	}
	ctx, cancel := context.WithTimeout(ctx, AccountTimeout)
	defer cancel()
	var code *hexutil.Bytes
	batch := []rpc.BatchElem{{Method: "eth_getCode", Args: []any{common.Address(account), "latest"}, Result: &code}}
	err := i.sources[n].Node.BatchCallContext(ctx, batch)
	switch {
	case err != nil || batch[0].Error != nil || code == nil:
		return invoice.AccountUnknown
	case hasKey(*code):
		return invoice.AccountWithKey
	}
	return invoice.AccountContract
}

// Checksum writes an address in the mixed-case form of ERC-55, the form in which addresses leave the service.
func Checksum(a invoice.Address) string { return common.Address(a).Hex() }

// ParseAddress parses 0x and 40 hex digits. If all letters are lower-case or all are upper-case there is no checksum;
// in mixed case the checksum of ERC-55 must match, so that a mistyped address is not paid.
func ParseAddress(s string) (invoice.Address, error) {
	a, err := invoice.ParseAddress(s)
	if err != nil {
		return invoice.Address{}, err
	}
	digits := s[2:]
	if digits == strings.ToLower(digits) || digits == strings.ToUpper(digits) {
		return a, nil
	}
	if want := Checksum(a); s != want {
		return invoice.Address{}, fmt.Errorf("has a wrong ERC-55 checksum; if the digits are right it is written %s", want)
	}
	return a, nil
}

// MustAddress is ParseAddress for addresses in the source. It panics if s is not an address.
func MustAddress(s string) invoice.Address {
	a, err := ParseAddress(s)
	if err != nil {
		panic(fmt.Sprintf("chain: address %q %v", s, err))
	}
	return a
}
