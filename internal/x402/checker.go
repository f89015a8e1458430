package x402

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// ErrUnavailable is the error of a check that no node has answered.
var ErrUnavailable = errors.New("the chain's nodes do not answer")

// DomainsLast is how long the domain of a token is believed before it is read again.
const DomainsLast = 10 * time.Minute

// Checker checks authorizations at the nodes of chains. It is safe for concurrent use.
type Checker struct {
	nodes  func(chainKey string) chain.TransactionNode
	chains map[string]chain.Chain
	now    func() time.Time

	mu      sync.Mutex
	domains map[token]readDomain // of the configured tokens that were asked for
}

// token identifies a token.
type token struct {
	chainKey string
	address  invoice.Address
}

// readDomain is a token's domain, with the time when it is read again.
type readDomain struct {
	Domain
	until time.Time
}

// NewChecker returns a checker for the chains. nodes returns the nodes of a chain, or nil for an unknown chain.
func NewChecker(chains []chain.Chain, nodes func(chainKey string) chain.TransactionNode, now func() time.Time) *Checker {
	c := &Checker{nodes: nodes, chains: make(map[string]chain.Chain), now: now, domains: make(map[token]readDomain)}
	for _, network := range chains {
		c.chains[network.Key] = network
	}
	return c
}

// CheckAuthorization simulates an authorization at the chain's newest block: the deployment
// of the payer's account if ERC-6492 asks for it, the signature, and the transfer. It
// implements ledger.AuthorizationChecker.
func (c *Checker) CheckAuthorization(ctx context.Context, chainKey string, token invoice.Address, a invoice.Authorization) (ledger.AuthorizationCheck, error) {
	call, err := chain.AuthorizationCall(token, a)
	if err != nil {
		return ledger.AuthorizationCheck{}, invoice.Refuse(invoice.RefusedSignature, "The signature is not in the form of ERC-6492: %s.", err)
	}
	nodes := c.nodes(chainKey)
	if nodes == nil {
		return ledger.AuthorizationCheck{}, invoice.Refuse(invoice.RefusedGaslessOff)
	}
	ctx, cancel := context.WithTimeout(ctx, chain.CallTimeout)
	defer cancel()
	found, err := simulate(ctx, nodes, call)
	if err != nil {
		return ledger.AuthorizationCheck{}, err
	}
	if err := judge(a, call, found); err != nil {
		if found, err = outvote(ctx, nodes, a, call, err); err != nil {
			return ledger.AuthorizationCheck{}, err
		}
	}
	if found.Used {
		return ledger.AuthorizationCheck{Time: found.Time, Gas: found.Gas, IsUsed: true}, nil
	}
	if found.Deploying && c.chains[chainKey].AuthorizationRelay.IsZero() {
		return ledger.AuthorizationCheck{}, invoice.Refuse(invoice.RefusedNotDeployed)
	}
	return ledger.AuthorizationCheck{Time: found.Time, Gas: found.Gas}, nil
}

// outvote returns a finding by which an authorization would be carried out, after one node refused it. The error is the
// refusal if more nodes refuse it than do not, and ErrUnavailable if as many do.
func outvote(ctx context.Context, nodes chain.TransactionNode, a invoice.Authorization, call contracts.RelayedAuthorization, refusal error) (carriedOut contracts.AuthorizationFinding, err error) {
	var mu sync.Mutex
	refusals := 0
	_, err = nodes.Each(ctx, 1, func(ctx context.Context, node chain.BatchCaller) error {
		found, err := simulate(ctx, node, call)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if judge(a, call, found) != nil {
			refusals++
			return nil
		}
		refusals, carriedOut = refusals-1, found
		return nil
	})
	switch {
	case err != nil || refusals > 0: // if no node answers, it stays refused
		return contracts.AuthorizationFinding{}, refusal
	case refusals == 0:
		return contracts.AuthorizationFinding{}, fmt.Errorf("%w: check an authorization: %w", ErrUnavailable, errDisagree)
	}
	return carriedOut, nil
}

// simulate runs contracts.AuthorizationCheck at the newest block.
func simulate(ctx context.Context, node chain.BatchCaller, call contracts.RelayedAuthorization) (contracts.AuthorizationFinding, error) {
	answers, err := read(ctx, node, map[string]any{"data": hexutil.Bytes(contracts.PackAuthorizationCheck(call))})
	if err != nil {
		return contracts.AuthorizationFinding{}, fmt.Errorf("%w: simulate an authorization: %w", ErrUnavailable, err)
	}
	found, err := contracts.ParseAuthorizationFinding(answers[0])
	if err != nil {
		return contracts.AuthorizationFinding{}, fmt.Errorf("%w: simulate an authorization: %w", ErrUnavailable, err)
	}
	return found, nil
}

// read makes calls of contracts at the newest block.
func read(ctx context.Context, node chain.BatchCaller, calls ...map[string]any) ([]hexutil.Bytes, error) {
	answers, batch := make([]hexutil.Bytes, len(calls)), make([]rpc.BatchElem, len(calls))
	for i, call := range calls {
		batch[i] = rpc.BatchElem{Method: "eth_call", Args: []any{call, "latest"}, Result: &answers[i]}
	}
	return answers, node.BatchCallContext(ctx, batch)
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

// Domain returns the EIP-712 domain under which authorizations of a token are signed, by more than half of the nodes
// that answer. It is read from the token's contract, and compared with the contract's DOMAIN_SEPARATOR. The error is an
// *invoice.RefusalError if they differ. Without a majority, the domain is the one that was read before.
func (c *Checker) Domain(ctx context.Context, chainKey string, address invoice.Address) (Domain, error) {
	key := token{chainKey, address}
	c.mu.Lock()
	known := c.domains[key]
	c.mu.Unlock()
	if c.now().Before(known.until) {
		return known.Domain, nil
	}
	nodes := c.nodes(chainKey)
	if nodes == nil {
		return Domain{}, invoice.Refuse(invoice.RefusedGaslessOff)
	}
	found, err := pollDomain(ctx, nodes, c.chains[chainKey].ID, address)
	switch {
	case err != nil && known.Domain != Domain{}:
		return known.Domain, nil
	case err != nil:
		return Domain{}, fmt.Errorf("%w: read the domain of token %s: %w", ErrUnavailable, address, err)
	case found == Domain{}:
		return Domain{}, invoice.Refuse(invoice.RefusedDomain)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.domains[key] = readDomain{found, c.now().Add(DomainsLast)}
	return found, nil
}

// pollDomain returns what domainOf returns for more than half of the nodes that answer.
func pollDomain(ctx context.Context, nodes chain.TransactionNode, chainID uint64, address invoice.Address) (Domain, error) {
	ctx, cancel := context.WithTimeout(ctx, chain.CallTimeout)
	defer cancel()
	var mu sync.Mutex
	answers, votes := 0, make(map[Domain]int)
	_, err := nodes.Each(ctx, callsOfDomain, func(ctx context.Context, node chain.BatchCaller) error {
		found, err := domainOf(ctx, node, chainID, address)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answers++
		votes[found]++
		return nil
	})
	for found, n := range votes {
		if 2*n > answers {
			return found, nil
		}
	}
	return Domain{}, cmp.Or(err, errDisagree)
}

// errDisagree is the error of a question on which no majority of the nodes agrees.
var errDisagree = errors.New("the nodes disagree")

// callsOfDomain is how many calls domainOf makes.
const callsOfDomain = 3

// domainOf returns a token's domain by a node, or the zero Domain if it does not fit the contract's DOMAIN_SEPARATOR.
func domainOf(ctx context.Context, node chain.BatchCaller, chainID uint64, address invoice.Address) (Domain, error) {
	abi := contracts.NewTestUSDC()
	call := func(data []byte) map[string]any {
		return map[string]any{"to": common.Address(address), "data": hexutil.Bytes(data)}
	}
	answers, err := read(ctx, node, call(abi.PackName()), call(abi.PackVersion()), call(abi.PackDOMAINSEPARATOR()))
	if err != nil {
		return Domain{}, err
	}
	name, nameErr := abi.UnpackName(answers[0])
	version, versionErr := abi.UnpackVersion(answers[1])
	want := contracts.Domain{Name: name, Version: version, ChainID: new(big.Int).SetUint64(chainID), Token: common.Address(address)}.Separator()
	if nameErr != nil || versionErr != nil || !bytes.Equal(answers[2], want[:]) {
		return Domain{}, nil //nolint:nilerr // the token has no such domain
	}
	return Domain{name, version}, nil
}
