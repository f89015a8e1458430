package devchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"

	"github.com/quittance/quittance/contracts"
)

// indexPoll is how often the transaction index is checked.
const indexPoll = time.Millisecond

// payerTokens is the initial balance of the payer, in minor units: a billion tokens.
const payerTokens = 1_000_000_000_000_000

// completeFile exists once the first start of a chain has completed.
const completeFile = "complete"

// isComplete reports whether the first start of the folder's chain has completed.
func isComplete(folder string) (bool, error) {
	_, err := os.Stat(filepath.Join(folder, chainFolder, completeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// removeIncomplete removes databases that LevelDB may be unable to open because a start was killed while it created
// them: the peers' database, and the chain's unless its first start has completed. The folder must be locked.
func removeIncomplete(folder string) (complete bool, err error) {
	if complete, err = isComplete(folder); err != nil {
		return false, err
	}
	doomed := []string{peersFolder}
	if !complete {
		doomed = append(doomed, databaseFolder)
	}
	for _, name := range doomed {
		if err := os.RemoveAll(filepath.Join(folder, chainFolder, name)); err != nil {
			return false, err
		}
	}
	return complete, nil
}

// startWorld starts the chain on a node, which holds the folder's lock.
func startWorld(ctx context.Context, conf Config, stack *node.Node) (*Chain, error) {
	keys, err := loadKeys(conf.DataDir, conf.Rand)
	if err != nil {
		return nil, err
	}
	complete := false
	if conf.DataDir != "" {
		if complete, err = removeIncomplete(conf.DataDir); err != nil {
			return nil, err
		}
	}
	deployer := Address(keys.Deployer)
	c := &Chain{
		Token:    crypto.CreateAddress(deployer, 0),
		Registry: crypto.CreateAddress(deployer, 1),
		Keys:     keys,
		conf:     conf,
		node:     stack,
	}
	c.DepositFactory, _ = contracts.Create2(&contracts.DepositFactoryMetaData)
	c.AuthorizationRelay, _ = contracts.Create2(&contracts.AuthorizationRelayMetaData)
	if c.eth, err = startEth(stack, keys); err != nil {
		return nil, err
	}
	c.client = ethclient.NewClient(stack.Attach())
	if complete {
		if err := c.awaitIndex(ctx); err != nil {
			return nil, err
		}
		return c, c.deployAdded(ctx)
	}
	if err := c.deploy(ctx); err != nil {
		return nil, fmt.Errorf("deploy the contracts: %w", err)
	}
	if conf.DataDir == "" {
		return c, nil
	}
	return c, os.WriteFile(filepath.Join(conf.DataDir, chainFolder, completeFile), nil, 0o600)
}

// step is a transaction of the deployer.
type step struct {
	to   *common.Address // nil creates a contract
	data []byte
}

// deploy deploys the contracts and mints the payer's tokens, in one block.
func (c *Chain) deploy(ctx context.Context) error {
	return c.carryOut(ctx, append(c.first(), added()...))
}

// first returns the deployer's transactions on chains of every release.
func (c *Chain) first() []step {
	deployer := Address(c.Keys.Deployer)
	token, registry := contracts.NewTestUSDC(), contracts.NewInvoiceRegistry()
	return []step{
		{nil, append(common.FromHex(contracts.TestUSDCMetaData.Bin), token.PackConstructor(deployer)...)},
		{nil, append(common.FromHex(contracts.InvoiceRegistryMetaData.Bin),
			registry.PackConstructor(deployer, Address(c.Keys.Operator))...)},
		{&c.Token, token.PackMint(Address(c.Keys.Payer), big.NewInt(payerTokens))},
	}
}

// added returns the deployments that chains of the first releases lack.
func added() []step {
	var steps []step
	for _, contract := range []*bind.MetaData{&contracts.DepositFactoryMetaData, &contracts.AuthorizationRelayMetaData} {
		_, data := contracts.Create2(contract)
		steps = append(steps, step{&contracts.Create2Deployer, data})
	}
	return steps
}

// deployAdded deploys the contracts that a chain of an earlier release lacks.
func (c *Chain) deployAdded(ctx context.Context) error {
	code, err := c.client.CodeAt(ctx, c.AuthorizationRelay, nil)
	if err != nil || len(code) > 0 {
		return err
	}
	return c.carryOut(ctx, added())
}

// carryOut sends transactions of the deployer and seals them in one block. It fails if one of them fails.
func (c *Chain) carryOut(ctx context.Context, steps []step) error {
	var sent []common.Hash
	for _, s := range steps {
		hash, err := c.send(ctx, c.Keys.Deployer, s.to, nil, s.data, deployGas)
		if err != nil {
			return err
		}
		sent = append(sent, hash)
	}
	if err := errors.Join(c.Seal(ctx), c.awaitIndex(ctx)); err != nil {
		return err
	}
	for _, hash := range sent {
		receipt, err := c.Mined(ctx, hash)
		if err != nil {
			return err
		}
		if receipt.Status != types.ReceiptStatusSuccessful {
			return fmt.Errorf("transaction %s failed", hash)
		}
	}
	return nil
}

// awaitIndex waits until the node finds transactions by hash. Until its transaction indexer has run once, at the first
// block and after a restart, the node answers with an error instead of null.
func (c *Chain) awaitIndex(ctx context.Context) error {
	poll := time.NewTicker(indexPoll) // the indexer has no completion event
	defer poll.Stop()
	for !c.eth.APIBackend.TxIndexDone() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for the transaction index: %w", ctx.Err())
		}
	}
	return nil
}
