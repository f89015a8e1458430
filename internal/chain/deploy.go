package chain

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
)

// deployTimeout bounds a deployment, mining included.
const deployTimeout = 5 * time.Minute

// Deployment is a registry to be deployed.
type Deployment struct {
	RPC      string            // URL of a node
	Key      *ecdsa.PrivateKey // of the account that pays, and that administers the registry
	Operator invoice.Address   // opens and closes invoices; zero for Key's account
}

// Deploy deploys the registry and returns its address once the transaction
// has been mined with success. When it fails after the transaction was sent,
// the error names it.
func (d Deployment) Deploy(ctx context.Context) (invoice.Address, error) {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	client, done, err := Dial(ctx, d.RPC)
	if err != nil {
		return invoice.Address{}, fmt.Errorf("reach the node: %w", err)
	}
	defer done()
	id, err := client.ChainID(ctx)
	if err != nil {
		return invoice.Address{}, fmt.Errorf("ask the node for its chain id: %w", sanitize(err))
	}
	admin := crypto.PubkeyToAddress(d.Key.PublicKey)
	operator := common.Address(d.Operator)
	if d.Operator.IsZero() {
		operator = admin
	}
	opts := bind.NewKeyedTransactor(d.Key, id)
	opts.Context = ctx
	address, tx, err := contracts.DeployRegistry(opts, client, admin, operator)
	if err != nil {
		return invoice.Address{}, fmt.Errorf("from the account %s on chain %s: %w", admin, id, sanitize(err))
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
