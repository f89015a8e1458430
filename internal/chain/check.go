package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// ErrMismatch means that the node's answers contradict the chain's configuration. Retrying does not help.
var ErrMismatch = errors.New("the configuration does not match the node")

// decimalsCall is the calldata of ERC-20's decimals().
const decimalsCall = "0x313ce567"

// Check compares the node with the chain's configuration: the chain id, the decimals of the tokens, that the registry
// is a contract, and the code of the deposit factory and of the authorization relay. If they differ the error is an
// ErrMismatch; other errors mean that the node did not answer.
func (c *Client) Check(ctx context.Context, conf Chain) error {
	var id Quantity
	if err := c.call(ctx, &id, "eth_chainId"); err != nil {
		return err
	}
	if id.N != conf.ID {
		return fmt.Errorf("%w: %s serves chain id %d, but chain %s has chain id %d; correct its rpc or chainId",
			ErrMismatch, c.name, id.N, conf.Key, conf.ID)
	}
	for _, token := range conf.Tokens {
		if err := c.checkToken(ctx, conf, token); err != nil {
			return err
		}
	}
	if !conf.Registry.IsZero() {
		if _, err := c.codeOf(ctx, conf, "registry", conf.Registry); err != nil {
			return err
		}
	}
	return c.checkContracts(ctx, conf)
}

// checkContracts compares the code of the deposit factory and of the authorization relay with this release's code.
// Other code can have created a factory with the right code and given it another implementation, so the implementation
// is compared, too.
func (c *Client) checkContracts(ctx context.Context, conf Chain) error {
	implementation := contracts.DepositImplementation(common.Address(conf.DepositFactory))
	for _, contract := range []struct {
		of   invoice.Address // no check if it is zero
		what string
		at   invoice.Address
		hash common.Hash
	}{
		{conf.DepositFactory, "depositFactory", conf.DepositFactory, contracts.DepositFactoryCodeHash},
		{conf.DepositFactory, "implementation of deposits", invoice.Address(implementation), contracts.DepositCodeHash},
		{conf.AuthorizationRelay, "authorizationRelay", conf.AuthorizationRelay, contracts.AuthorizationRelayCodeHash},
	} {
		if contract.of.IsZero() {
			continue
		}
		code, err := c.codeOf(ctx, conf, contract.what, contract.at)
		if err != nil {
			return err
		}
		if crypto.Keccak256Hash(code) != contract.hash {
			return fmt.Errorf("%w: the contract at %s on chain %s, where its %s should be, has other code than this release deploys; correct the address",
				ErrMismatch, Checksum(contract.at), conf.Key, contract.what)
		}
	}
	return nil
}

func (c *Client) checkToken(ctx context.Context, conf Chain, token Token) error {
	if _, err := c.codeOf(ctx, conf, "token "+token.Currency, token.Address); err != nil {
		return err
	}
	var word hexutil.Bytes
	call := map[string]any{"to": common.Address(token.Address), "data": decimalsCall}
	if err := c.call(ctx, &word, "eth_call", call, "latest"); err != nil && !IsRevert(err) {
		return err
	}
	if len(word) != 32 || new(big.Int).SetBytes(word).Cmp(big.NewInt(int64(token.Decimals))) != 0 {
		return fmt.Errorf("%w: the contract at %s on chain %s answers %s when asked for its decimals, but token %s has %d; correct its address or decimals",
			ErrMismatch, Checksum(token.Address), conf.Key, word, token.Currency, token.Decimals)
	}
	return nil
}

// codeOf returns the code of a contract. Without code, the error is an ErrMismatch.
func (c *Client) codeOf(ctx context.Context, conf Chain, what string, at invoice.Address) ([]byte, error) {
	var code hexutil.Bytes
	if err := c.call(ctx, &code, "eth_getCode", common.Address(at), "latest"); err != nil {
		return nil, err
	}
	if len(code) == 0 {
		return nil, fmt.Errorf("%w: there is no contract at %s on chain %s, where its %s should be; correct the address",
			ErrMismatch, Checksum(at), conf.Key, what)
	}
	return code, nil
}
