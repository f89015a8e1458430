package chain

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// deployTimeout bounds a deployment, including mining.
const deployTimeout = 5 * time.Minute

// Contract is one of the service's contracts, named by its setting in the configuration of a chain.
type Contract string

// The service's contracts.
const (
	Registry           Contract = "registry"
	DepositFactory     Contract = "depositFactory"
	AuthorizationRelay Contract = "authorizationRelay"
)

// Contracts are the service's contracts, in the order in which they are deployed. The registry is the last one, because
// only the registry is deployed anew each time.
var Contracts = []Contract{DepositFactory, AuthorizationRelay, Registry}

// Deployment is a contract to be deployed.
type Deployment struct {
	RPC      string            // URL of a node
	Key      *ecdsa.PrivateKey // of the account that pays and that administers the registry
	Operator invoice.Address   // opens and closes invoices; zero for Key's account
}

// Deploy deploys a contract and returns its address once the transaction was mined and succeeded. If it fails after the
// transaction was sent, the error names the transaction. It sends no transaction if the contract exists already; see
// contracts.DeployDepositFactory.
func (d Deployment) Deploy(ctx context.Context, contract Contract) (invoice.Address, error) {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	client, done, err := Dial(d.RPC)
	if err != nil {
		return invoice.Address{}, fmt.Errorf("reach the node: %w", err)
	}
	defer done()
	id, err := client.ChainID(ctx)
	if err != nil {
		return invoice.Address{}, fmt.Errorf("ask the node for its chain id: %w", sanitize(err))
	}
	address, tx, err := d.send(ctx, client, id, contract)
	if err != nil {
		return invoice.Address{}, fmt.Errorf("from the account %s on chain %s: %w", crypto.PubkeyToAddress(d.Key.PublicKey), id, sanitize(err))
	}
	if tx == nil {
		return invoice.Address(address), nil
	}
	receipt, err := bind.WaitMined(ctx, client, tx.Hash())
	if err != nil {
		return invoice.Address{}, fmt.Errorf("wait for transaction %s, which creates %s: %w", tx.Hash(), address, sanitize(err))
	}
	if receipt.Status != types.ReceiptStatusSuccessful {
		return invoice.Address{}, fmt.Errorf("transaction %s was mined and failed", tx.Hash())
	}
	return invoice.Address(address), nil
}

// send sends the transaction that creates a contract. The transaction is nil if the contract exists already.
func (d Deployment) send(
	ctx context.Context, client *ethclient.Client, chainID *big.Int, contract Contract,
) (common.Address, *types.Transaction, error) {
	opts := bind.NewKeyedTransactor(d.Key, chainID)
	opts.Context = ctx
	switch contract {
	case DepositFactory:
		return contracts.DeployDepositFactory(opts, client)
	case AuthorizationRelay:
		return contracts.DeployAuthorizationRelay(opts, client)
	case Registry:
	}
	operator := common.Address(d.Operator)
	if d.Operator.IsZero() {
		operator = opts.From
	}
	return contracts.DeployRegistry(opts, client, opts.From, operator)
}
