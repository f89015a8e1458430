package contracts

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// RelayedAuthorization is a signed authorization as the argument of AuthorizationRelay and AuthorizationCheck.
type RelayedAuthorization = SignedAuthorization

// erc6492Suffix ends a signature that includes the deployment of its signer's account.
var erc6492Suffix = bytes.Repeat([]byte{0x64, 0x92}, 16)

// erc6492 are the contents of such a signature: the deployer, its calldata and the account's signature.
var erc6492 = abi.Arguments{{Type: abiType("address")}, {Type: abiType("bytes")}, {Type: abiType("bytes")}}

func abiType(name string) abi.Type {
	t, err := abi.NewType(name, "", nil)
	if err != nil {
		panic(err) // the name is a constant
	}
	return t
}

// AuthorizationOf returns an authorization with its signature, unwrapped from ERC-6492, and the deployment of the
// payer's account. It fails if the signature has the suffix of ERC-6492 but not its form.
func AuthorizationOf(token common.Address, a Authorization, signature []byte) (RelayedAuthorization, error) {
	r := RelayedAuthorization{
		Token: token, From: a.From, To: a.To, Value: a.Value, ValidAfter: a.ValidAfter, ValidBefore: a.ValidBefore,
		Nonce: a.Nonce, Signature: signature, DeployData: []byte{},
	}
	wrapped, ok := bytes.CutSuffix(signature, erc6492Suffix)
	if !ok {
		return r, nil
	}
	fields, err := erc6492.Unpack(wrapped)
	if err != nil {
		return RelayedAuthorization{}, fmt.Errorf("unpack deployer, calldata and signature: %w", err)
	}
	var deployed, unwrapped bool
	r.Deployer, ok = fields[0].(common.Address)
	r.DeployData, deployed = fields[1].([]byte)
	r.Signature, unwrapped = fields[2].([]byte)
	if !ok || !deployed || !unwrapped || r.Deployer == (common.Address{}) {
		return RelayedAuthorization{}, errors.New("the deployer is missing")
	}
	return r, nil
}

// WrapSignature returns an account's signature in the form of ERC-6492, with the deployment of the account.
func WrapSignature(deployer common.Address, deployData, signature []byte) ([]byte, error) {
	packed, err := erc6492.Pack(deployer, deployData, signature)
	return append(packed, erc6492Suffix...), err
}

// PackTransferWithAuthorization returns the token call that makes the transfer. A signature of 65 bytes is passed as v,
// r and s, which every version of the token accepts.
func PackTransferWithAuthorization(a RelayedAuthorization) []byte {
	token := NewTestUSDC()
	if len(a.Signature) != signatureLen {
		return token.PackTransferWithAuthorization(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, a.Signature)
	}
	return token.PackTransferWithAuthorization0(a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce,
		a.Signature[64], [32]byte(a.Signature[:32]), [32]byte(a.Signature[32:64]))
}

// PackRelay returns the call of AuthorizationRelay that submits authorizations. limits has the maximum gas of each.
func PackRelay(all []RelayedAuthorization, limits []uint64) []byte {
	numbers := make([]*big.Int, len(limits))
	for i, n := range limits {
		numbers[i] = new(big.Int).SetUint64(n)
	}
	return NewAuthorizationRelay().PackRelay(all, numbers)
}

// Gas that the relay requires for each authorization in addition to its limit: GAS_BESIDES and GAS_PER_BYTE.
const (
	relayGas        = 15_000
	relayGasPerByte = 8
)

// RelayGas returns the gas that the relay requires for an authorization with that limit.
func RelayGas(a RelayedAuthorization, limit uint64) uint64 {
	return limit + limit/63 + relayGas + relayGasPerByte*uint64(len(a.Signature)+len(a.DeployData))
}

// RelayLimit returns the highest gas limit of an authorization with which a transaction of only this authorization
// takes no more than most in total. It is 0 if the calldata takes more than that.
func RelayLimit(a RelayedAuthorization, most uint64) uint64 {
	// A number without zero bytes makes the calldata as expensive as possible.
	before, least := TransactionGas(PackRelay([]RelayedAuthorization{a}, []uint64{0x01010101}))
	besides := before + RelayGas(a, 0)
	if least > most || besides > most {
		return 0
	}
	return most - besides
}

// TransactionGas returns the gas that a transaction with this calldata uses before its call (EIP-2028), and the least
// gas that it uses in total (EIP-7623).
func TransactionGas(data []byte) (before, least uint64) {
	zeros := uint64(bytes.Count(data, []byte{0}))
	tokens := zeros + 4*(uint64(len(data))-zeros)
	return params.TxGas + 4*tokens, params.TxGas + 10*tokens
}

// PackRelayOne returns the call of AuthorizationRelay that reverts if the token refuses the authorization.
func PackRelayOne(a RelayedAuthorization) []byte { return NewAuthorizationRelay().PackRelayOne(a) }

// signatureLen is the length of a signature of a key, in bytes.
const signatureLen = 65

// PackAuthorizationCheck returns the data of an eth_call without a destination that checks an authorization.
func PackAuthorizationCheck(a RelayedAuthorization) []byte {
	return append(common.FromHex(AuthorizationCheckMetaData.Bin), NewAuthorizationCheck().PackConstructor(a)...)
}

// AuthorizationFinding is the result of checking an authorization, as of one block.
type AuthorizationFinding struct {
	Time        time.Time   // of the block
	Separator   common.Hash // the token's DOMAIN_SEPARATOR; zero if it has none
	Contract    bool        // the payer's account is a contract by then
	Signed      bool        // the payer has signed
	Used        bool        // the nonce was used or canceled
	Blacklisted bool        // the payer or the recipient is blocked
	Paused      bool
	Transferred bool     // the transfer would be made
	Deploying   bool     // the payer's account had no code, and its deployer was called
	Balance     *big.Int // of the payer, minor units
	Gas         uint64   // of the account's deployment and the transfer
	Failure     []byte   // first bytes of the transfer's revert data
}

// findingWords is how many words a finding has before its failure: the offset of the struct, eleven fields and the offset
// of the failure.
const findingWords = 13

// ParseAuthorizationFinding parses the return data of an authorization's check.
func ParseAuthorizationFinding(answer []byte) (AuthorizationFinding, error) {
	if len(answer) < 32*(findingWords+1) {
		return AuthorizationFinding{}, fmt.Errorf("the check of an authorization returned %d bytes", len(answer))
	}
	field := func(i int) *big.Int { return new(big.Int).SetBytes(answer[32*(i+1) : 32*(i+2)]) }
	is := func(i int) bool { return field(i).Sign() != 0 }
	seconds, gas, length := field(0), field(10), field(12)
	if !seconds.IsInt64() || !gas.IsInt64() || !length.IsInt64() || int64(len(answer)-32*(findingWords+1)) < length.Int64() {
		return AuthorizationFinding{}, errors.New("the check of an authorization returned something else")
	}
	return AuthorizationFinding{
		Time: time.Unix(seconds.Int64(), 0).UTC(), Separator: common.BigToHash(field(1)),
		Contract: is(2), Signed: is(3), Used: is(4), Blacklisted: is(5), Paused: is(6), Transferred: is(7),
		Deploying: is(8), Balance: field(9), Gas: gas.Uint64(), Failure: answer[32*(findingWords+1):][:length.Int64()],
	}, nil
}

// Reason returns why the transfer reverted: the text of a require, or the selector of an error.
func (f AuthorizationFinding) Reason() string {
	if text, err := abi.UnpackRevert(f.Failure); err == nil {
		return fmt.Sprintf("%.120q", text)
	}
	if len(f.Failure) >= 4 {
		return fmt.Sprintf("error %#x", f.Failure[:4])
	}
	return "without a reason"
}
