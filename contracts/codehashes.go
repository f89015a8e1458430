package contracts

import "github.com/ethereum/go-ethereum/common"

// Code hashes of contracts that have the same code wherever they are deployed. eth_getCode returns that code.
var (
	DepositFactoryCodeHash     = common.HexToHash("0x8e19db174a3c9ba7ccdb8242bc6fb65036071f9e163b81c69014d554f9776468")
	DepositCodeHash            = common.HexToHash("0x19c5fe68decf1bf64773e8dededfbb363f667c00fbe23571df8aa0ba2b2c8c1c") // of the implementation, which deposit addresses call
	AuthorizationRelayCodeHash = common.HexToHash("0x47abd70d9de6b6a2458e46dfd91ddc6d89b5d57e5cbc1161c35f93e7fed01841")
)
