package chain

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/crypto"

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
