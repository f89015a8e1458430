package contracts

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
)

// Signature is an ECDSA signature in the form of Solidity's ecrecover; V is 27 or 28.
type Signature struct {
	V    uint8
	R, S [32]byte
}

// Domain is the EIP-712 domain of a token, read from the token's name, version and DOMAIN_SEPARATOR.
type Domain struct {
	Name    string
	Version string
	ChainID *big.Int
	Token   common.Address
}

// TestUSDCDomain returns the domain under which the test token at that address signs.
func TestUSDCDomain(chainID *big.Int, token common.Address) Domain {
	return Domain{Name: "USD Coin", Version: "2", ChainID: chainID, Token: token}
}

// Separator returns the domain's hash.
func (d Domain) Separator() common.Hash {
	return crypto.Keccak256Hash(
		crypto.Keccak256([]byte("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)")),
		crypto.Keccak256([]byte(d.Name)),
		crypto.Keccak256([]byte(d.Version)),
		word(d.ChainID),
		address(d.Token),
	)
}

// Authorization is an EIP-3009 transfer that its payer signs and anyone can submit. It is valid in blocks with a
// timestamp (Unix seconds) strictly between ValidAfter and ValidBefore.
type Authorization struct {
	From, To                common.Address
	Value                   *big.Int // minor units
	ValidAfter, ValidBefore *big.Int
	Nonce                   common.Hash // to pay an invoice: the invoice's on-chain id
}

// Sign returns the payer's signature for transferWithAuthorization.
func (a Authorization) Sign(d Domain, payer *ecdsa.PrivateKey) (Signature, error) {
	return a.sign(d, payer, "TransferWithAuthorization")
}

// SignReceive returns the payer's signature for receiveWithAuthorization, which only To can submit.
func (a Authorization) SignReceive(d Domain, payer *ecdsa.PrivateKey) (Signature, error) {
	return a.sign(d, payer, "ReceiveWithAuthorization")
}

func (a Authorization) sign(d Domain, payer *ecdsa.PrivateKey, name string) (Signature, error) {
	form := name + "(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
	return sign(d, payer, crypto.Keccak256([]byte(form)),
		address(a.From), address(a.To), word(a.Value), word(a.ValidAfter), word(a.ValidBefore), a.Nonce[:])
}

// SignCancel returns the payer's signature for cancelAuthorization, which makes the authorization worthless. It covers
// only From and Nonce.
func (a Authorization) SignCancel(d Domain, payer *ecdsa.PrivateKey) (Signature, error) {
	const form = "CancelAuthorization(address authorizer,bytes32 nonce)"
	return sign(d, payer, crypto.Keccak256([]byte(form)), address(a.From), a.Nonce[:])
}

// Bytes returns the signature in the 65-byte form r, s, v, for functions with one signature argument.
func (s Signature) Bytes() []byte {
	return append(append(append(make([]byte, 0, 65), s.R[:]...), s.S[:]...), s.V)
}

// Permit is an EIP-2612 allowance that its owner signs and anyone can submit.
type Permit struct {
	Owner, Spender common.Address
	Value          *big.Int // minor units
	Nonce          *big.Int // the token's nonces(Owner)
	Deadline       *big.Int // Unix seconds, the last valid block timestamp
}

// Sign returns the owner's signature for permit.
func (p Permit) Sign(d Domain, owner *ecdsa.PrivateKey) (Signature, error) {
	const form = "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
	return sign(d, owner, crypto.Keccak256([]byte(form)),
		address(p.Owner), address(p.Spender), word(p.Value), word(p.Nonce), word(p.Deadline))
}

// sign signs the EIP-712 digest of a struct, given as its type's hash and its fields, 32 bytes each.
func sign(d Domain, key *ecdsa.PrivateKey, words ...[]byte) (Signature, error) {
	digest := crypto.Keccak256([]byte{0x19, 0x01}, d.Separator().Bytes(), crypto.Keccak256(words...))
	raw, err := crypto.Sign(digest, key)
	if err != nil {
		return Signature{}, fmt.Errorf("sign typed data: %w", err)
	}
	return Signature{V: raw[64] + 27, R: [32]byte(raw[:32]), S: [32]byte(raw[32:64])}, nil
}

func word(n *big.Int) []byte { return math.U256Bytes(new(big.Int).Set(n)) }

func address(a common.Address) []byte { return common.LeftPadBytes(a.Bytes(), 32) }

// Signed returns the authorization of a token with its signature, as the relay's argument. The signer is a key, or a
// deployed account.
func (a Authorization) Signed(token common.Address, signature []byte) SignedAuthorization {
	return SignedAuthorization{
		Token: token, From: a.From, To: a.To, Value: a.Value,
		ValidAfter: a.ValidAfter, ValidBefore: a.ValidBefore, Nonce: a.Nonce, Signature: signature,
	}
}
