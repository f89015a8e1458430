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

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"

	"github.com/quittance/quittance/contracts"
)

// indexPoll is the time between two looks at whether the transaction index is ready.
const indexPoll = time.Millisecond

// richTokens is what the payer begins with, in minor units: a billion tokens.
const richTokens = 1_000_000_000_000_000

// completeFile marks, by being there, a chain whose first start has come to its end.
const completeFile = "complete"

// isComplete says whether the folder's chain has been deployed.
func isComplete(folder string) (bool, error) {
	_, err := os.Stat(filepath.Join(folder, chainFolder, completeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// sweep removes what a killed start may have left in a state that LevelDB cannot open: it cannot when it was killed
// while it made a database. The peers' database is never of use. The chain's own is removed unless it is complete:
// before that, nobody was told of it. The folder must be locked.
func sweep(folder string) (complete bool, err error) {
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

// startWorld starts the chain on a node that holds the folder's lock.
func startWorld(ctx context.Context, conf Config, stack *node.Node) (*Chain, error) {
	keys, err := loadKeys(conf.DataDir, conf.Rand)
	if err != nil {
		return nil, err
	}
	complete := false
	if conf.DataDir != "" {
		if complete, err = sweep(conf.DataDir); err != nil {
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
		stopped:  make(chan struct{}),
	}
	if c.eth, err = startEth(stack, keys); err != nil {
		return nil, err
	}
	c.client = ethclient.NewClient(stack.Attach())
	if complete {
		return c, c.awaitIndex(ctx)
	}
	if err := c.deploy(ctx); err != nil {
		return nil, fmt.Errorf("deploy the contracts: %w", err)
	}
	if conf.DataDir == "" {
		return c, nil
	}
	return c, os.WriteFile(filepath.Join(conf.DataDir, chainFolder, completeFile), nil, 0o600)
}

// deploy brings the contracts and the payer's tokens onto a new chain, in one block.
func (c *Chain) deploy(ctx context.Context) error {
	deployer := Address(c.Keys.Deployer)
	token, registry := contracts.NewTestUSDC(), contracts.NewInvoiceRegistry()
	var sent []common.Hash
	for _, step := range []struct {
		to   *common.Address // nil creates a contract
		data []byte
	}{
		{nil, append(common.FromHex(contracts.TestUSDCMetaData.Bin), token.PackConstructor(deployer)...)},
		{nil, append(common.FromHex(contracts.InvoiceRegistryMetaData.Bin),
			registry.PackConstructor(deployer, Address(c.Keys.Operator))...)},
		{&c.Token, token.PackMint(Address(c.Keys.Payer), big.NewInt(richTokens))},
	} {
		hash, err := c.send(ctx, c.Keys.Deployer, step.to, step.data, deployGas)
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

// awaitIndex waits until the node can find transactions by hash. Until its indexer has run once, which it does at the
// first block and after a restart, it answers with an error where it should say that there is none.
func (c *Chain) awaitIndex(ctx context.Context) error {
	poll := time.NewTicker(indexPoll) // the indexer does not tell when it is done
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
