package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// ErrMismatch means that the node's answers contradict the chain's
// configuration. Retrying does not help.
var ErrMismatch = errors.New("the configuration does not match the node")

// decimalsCall is the calldata of ERC-20's decimals().
const decimalsCall = "0x313ce567"

// Check compares the node with the chain's configuration: the chain id, the
// decimals of the tokens, and that the registry is a contract. A difference is an
// ErrMismatch; other errors mean that the node did not answer.
func (e *Client) Check(ctx context.Context, c Chain) error {
	var id hexutil.Uint64
	if err := e.call(ctx, &id, "eth_chainId"); err != nil {
		return err
	}
	if uint64(id) != c.ID {
		return fmt.Errorf("%w: %s serves chain id %d, but chain %s has chain id %d; correct its rpc or chainId",
			ErrMismatch, e.name, id, c.Key, c.ID)
	}
	for _, token := range c.Tokens {
		if err := e.checkToken(ctx, c, token); err != nil {
			return err
		}
	}
	if c.Registry.IsZero() {
		return nil
	}
	return e.checkCode(ctx, c, "registry", c.Registry)
}

func (e *Client) checkToken(ctx context.Context, c Chain, token Token) error {
	if err := e.checkCode(ctx, c, "token "+token.Currency, token.Address); err != nil {
		return err
	}
	var word hexutil.Bytes
	call := map[string]any{"to": common.Address(token.Address), "data": decimalsCall}
	var refused rpc.Error
	if err := e.call(ctx, &word, "eth_call", call, "latest"); err != nil && !(errors.As(err, &refused) && refused.ErrorCode() == codeReverted) {
		return err
	}
	if len(word) != 32 || new(big.Int).SetBytes(word).Cmp(big.NewInt(int64(token.Decimals))) != 0 {
		return fmt.Errorf("%w: the contract at %s on chain %s answers %s when asked for its decimals, but token %s has %d; correct its address or decimals",
			ErrMismatch, Checksum(token.Address), c.Key, word, token.Currency, token.Decimals)
	}
	return nil
}

func (e *Client) checkCode(ctx context.Context, c Chain, what string, at invoice.Address) error {
	var code hexutil.Bytes
	if err := e.call(ctx, &code, "eth_getCode", common.Address(at), "latest"); err != nil {
		return err
	}
	if len(code) == 0 {
		return fmt.Errorf("%w: there is no contract at %s on chain %s, where its %s should be; correct the address",
			ErrMismatch, Checksum(at), c.Key, what)
	}
	return nil
}
