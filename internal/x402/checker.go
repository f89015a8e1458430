package x402

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// ErrUnavailable is the error of a check that no node has answered.
var ErrUnavailable = errors.New("the chain's nodes do not answer")

// Caller makes JSON-RPC calls. *chain.Requests implements it, and bounds them.
type Caller interface {
	CallContext(ctx context.Context, result any, method string, args ...any) error
}

// Checker checks authorizations at the nodes of chains. It is safe for concurrent use.
type Checker struct {
	caller   func(chainKey string) Caller
	relaying map[string]bool
}

// NewChecker returns a checker for the chains. caller returns the nodes of a chain, or nil for an unknown chain.
func NewChecker(chains []chain.Chain, caller func(chainKey string) Caller) *Checker {
	c := &Checker{caller: caller, relaying: make(map[string]bool)}
	for _, network := range chains {
		c.relaying[network.Key] = !network.AuthorizationRelay.IsZero()
	}
	return c
}

// relays reports whether a chain has an authorization relay.
func (c *Checker) relays(chainKey string) bool { return c.relaying[chainKey] }

// CheckAuthorization simulates an authorization at the chain's newest block: the deployment
// of the payer's account if ERC-6492 asks for it, the signature, and the transfer. It
// implements ledger.AuthorizationChecker.
func (c *Checker) CheckAuthorization(ctx context.Context, chainKey string, token invoice.Address, a invoice.Authorization) (ledger.AuthorizationCheck, error) {
	call, err := chain.AuthorizationCall(token, a)
	if err != nil {
		return ledger.AuthorizationCheck{}, invoice.Refuse(invoice.RefusedSignature, "The signature is not in the form of ERC-6492: %s.", err)
	}
	found, err := c.simulate(ctx, chainKey, call)
	if err != nil {
		return ledger.AuthorizationCheck{}, err
	}
	if err := judge(a, call, found); err != nil {
		return ledger.AuthorizationCheck{}, err
	}
	if found.Used {
		return ledger.AuthorizationCheck{Time: found.Time, Gas: found.Gas, IsUsed: true}, nil
	}
	if found.Deploying && !c.relays(chainKey) {
		return ledger.AuthorizationCheck{}, invoice.Refuse(invoice.RefusedNotDeployed)
	}
	return ledger.AuthorizationCheck{Time: found.Time, Gas: found.Gas}, nil
}

// simulate runs contracts.AuthorizationCheck at the newest block.
func (c *Checker) simulate(ctx context.Context, chainKey string, call contracts.RelayedAuthorization) (contracts.AuthorizationFinding, error) {
	caller := c.caller(chainKey)
	if caller == nil {
		return contracts.AuthorizationFinding{}, invoice.Refuse(invoice.RefusedGaslessOff)
	}
	ctx, cancel := context.WithTimeout(ctx, chain.CallTimeout)
	defer cancel()
	var answer hexutil.Bytes
	err := caller.CallContext(ctx, &answer, "eth_call", map[string]any{"data": hexutil.Bytes(contracts.PackAuthorizationCheck(call))}, "latest")
	if err != nil {
		return contracts.AuthorizationFinding{}, fmt.Errorf("%w: simulate an authorization: %w", ErrUnavailable, err)
	}
	found, err := contracts.ParseAuthorizationFinding(answer)
	if err != nil {
		return contracts.AuthorizationFinding{}, fmt.Errorf("%w: simulate an authorization: %w", ErrUnavailable, err)
	}
	return found, nil
}

// judge returns why an authorization would fail, in the order in which a payer can fix it. If the nonce was used, it
// judges only the signature.
func judge(a invoice.Authorization, call contracts.RelayedAuthorization, found contracts.AuthorizationFinding) error {
	value, most := a.Value.Bytes(), contracts.RelayLimit(call, chain.AuthorizationGas(found.Deploying))
	switch {
	case found.Separator == (common.Hash{}):
		return invoice.Refuse(invoice.RefusedDomain)
	case !found.Signed:
		return invoice.Refuse(invoice.RefusedSignature)
	case found.Used:
		return nil
	case found.Blacklisted:
		return invoice.Refuse(invoice.RefusedBlacklisted)
	case found.Paused:
		return invoice.Refuse(invoice.RefusedPaused)
	case found.Balance.Cmp(new(big.Int).SetBytes(value[:])) < 0:
		return invoice.Refuse(invoice.RefusedBalance, "The payer has %s minor units of the token, and the authorization is over %s.", found.Balance, a.Value)
	case !found.Transferred:
		return invoice.Refuse(invoice.RefusedReverts, "The token refuses the transfer: %s.", found.Reason())
	case found.Gas > most:
		return invoice.Refuse(invoice.RefusedGas, "The transfer uses %d gas, and the service pays for at most %d.", found.Gas, most)
	}
	return nil
}

// TokenDomain is the EIP-712 domain under which authorizations of a token are signed.
type TokenDomain struct {
	Name, Version string
}

// TokenDomain returns the domain of a token, read from its contract and compared with the
// contract's DOMAIN_SEPARATOR. The error is an *invoice.RefusalError if they differ.
func (c *Checker) TokenDomain(ctx context.Context, network chain.Chain, token invoice.Address) (TokenDomain, error) {
	caller := c.caller(network.Key)
	if caller == nil {
		return TokenDomain{}, invoice.Refuse(invoice.RefusedGaslessOff)
	}
	ctx, cancel := context.WithTimeout(ctx, chain.CallTimeout)
	defer cancel()
	abi := contracts.NewTestUSDC()
	read := func(data []byte) ([]byte, error) {
		var answer hexutil.Bytes
		err := caller.CallContext(ctx, &answer, "eth_call", map[string]any{"to": common.Address(token), "data": hexutil.Bytes(data)}, "latest")
		if err != nil {
			return nil, fmt.Errorf("%w: read the domain of token %s: %w", ErrUnavailable, token, err)
		}
		return answer, nil
	}
	var d TokenDomain
	for _, field := range []struct {
		call   []byte
		unpack func([]byte) (string, error)
		to     *string
	}{{abi.PackName(), abi.UnpackName, &d.Name}, {abi.PackVersion(), abi.UnpackVersion, &d.Version}} {
		answer, err := read(field.call)
		if err != nil {
			return TokenDomain{}, err
		}
		if *field.to, err = field.unpack(answer); err != nil {
			return TokenDomain{}, invoice.Refuse(invoice.RefusedDomain)
		}
	}
	answer, err := read(abi.PackDOMAINSEPARATOR())
	if err != nil {
		return TokenDomain{}, err
	}
	want := contracts.Domain{Name: d.Name, Version: d.Version, ChainID: new(big.Int).SetUint64(network.ID), Token: common.Address(token)}.Separator()
	if !bytes.Equal(answer, want[:]) {
		return TokenDomain{}, invoice.Refuse(invoice.RefusedDomain)
	}
	return d, nil
}
