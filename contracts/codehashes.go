package contracts

import "github.com/ethereum/go-ethereum/common"

// Hashes of the code of contracts that have the same code wherever they are deployed. A node returns that code as
// eth_getCode.
var (
	DepositFactoryCodeHash     = common.HexToHash("0x8e19db174a3c9ba7ccdb8242bc6fb65036071f9e163b81c69014d554f9776468")
	DepositCodeHash            = common.HexToHash("0x93da604c92143087bd1dc5ee872f47e4de6c31ffdba5e2ee3e172d3b9dbe4e39") // of the implementation, which deposit addresses call
	AuthorizationRelayCodeHash = common.HexToHash("0x47abd70d9de6b6a2458e46dfd91ddc6d89b5d57e5cbc1161c35f93e7fed01841")
)
