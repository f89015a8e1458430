package chain

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

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
