package contracts

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// The code of a deposit address is OpenZeppelin's minimal clone of the implementation, followed by the merchant's
// address. See contracts/proxy/Clones.sol.
var (
	cloneInit   = common.FromHex("3d81600a3d39f3")       // returns the bytes that follow, as many as the PUSH2 before it says
	cloneBefore = common.FromHex("363d3d373d3d3d363d73") // then the implementation
	cloneAfter  = common.FromHex("5af43d82803e903d91602b57fd5bf3")
)

const opPush2 = 0x61

// DepositAddress returns the address where an invoice with that commitment id is paid if its settlement address is
// merchant: the CREATE2 address of a clone that the factory deploys. It depends on nothing else, and nothing needs to be
// deployed there before it is paid.
func DepositAddress(factory, merchant common.Address, commitmentID common.Hash) common.Address {
	code := DepositCode(factory, merchant)
	init := slices.Concat(binary.BigEndian.AppendUint16([]byte{opPush2}, uint16(len(code))), cloneInit, code)
	return crypto.CreateAddress2(factory, commitmentID, crypto.Keccak256(init))
}

// DepositCode returns the code that a deposit address of the merchant has once the factory has deployed it.
func DepositCode(factory, merchant common.Address) []byte {
	return slices.Concat(cloneBefore, DepositImplementation(factory).Bytes(), cloneAfter, merchant.Bytes())
}

// DepositImplementation returns the address of the contract that the factory's constructor creates, which the clones
// call.
func DepositImplementation(factory common.Address) common.Address {
	return crypto.CreateAddress(factory, 1)
}
