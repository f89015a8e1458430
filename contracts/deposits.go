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
	cloneInit   = common.FromHex("3d81600a3d39f3")       // returns the following bytes; PUSH2 has their number
	cloneBefore = common.FromHex("363d3d373d3d3d363d73") // followed by the implementation
	cloneAfter  = common.FromHex("5af43d82803e903d91602b57fd5bf3")
)

const opPush2 = 0x61

// DepositAddress returns the deposit address of an invoice with that commitment id and with merchant as its settlement
// address: the CREATE2 address of a clone that the factory deploys. It depends only on these, and the clone need not be
// deployed before the address is paid.
func DepositAddress(factory, merchant common.Address, commitmentID common.Hash) common.Address {
	code := DepositCode(factory, merchant)
	init := slices.Concat(binary.BigEndian.AppendUint16([]byte{opPush2}, uint16(len(code))), cloneInit, code)
	return crypto.CreateAddress2(factory, commitmentID, crypto.Keccak256(init))
}

// DepositCode returns the code of the merchant's deposit addresses after the factory has deployed them.
func DepositCode(factory, merchant common.Address) []byte {
	return slices.Concat(cloneBefore, DepositImplementation(factory).Bytes(), cloneAfter, merchant.Bytes())
}

// DepositImplementation returns the address of the contract that the factory's constructor creates. The clones call it.
func DepositImplementation(factory common.Address) common.Address {
	return crypto.CreateAddress(factory, 1)
}
