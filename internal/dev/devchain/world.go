package devchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/accounts/abi/bind/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
)

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

// removeIncomplete removes the chain's database if its first start has not completed: LevelDB may be unable to open one
// if a start was killed while it created it. The folder must be locked; with an empty name it does nothing.
func removeIncomplete(folder string) (complete bool, err error) {
	if folder == "" {
		return false, nil
	}
	if complete, err = isComplete(folder); err != nil || complete {
		return complete, err
	}
	return false, os.RemoveAll(filepath.Join(folder, chainFolder, databaseFolder))
}

// completeWorld sets the addresses of the contracts, and deploys them unless done is set.
func (c *Chain) completeWorld(ctx context.Context, done bool) error {
	deployer := Address(c.Keys.Deployer)
	c.Token, c.Registry = crypto.CreateAddress(deployer, 0), crypto.CreateAddress(deployer, 1)
	c.DepositFactory, _ = contracts.Create2(&contracts.DepositFactoryMetaData)
	c.AuthorizationRelay, _ = contracts.Create2(&contracts.AuthorizationRelayMetaData)
	if done {
		return nil
	}
	if err := c.deploy(ctx); err != nil {
		return fmt.Errorf("deploy the contracts: %w", err)
	}
	if c.conf.DataDir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(c.conf.DataDir, chainFolder, completeFile), nil, 0o600)
}

// step is a transaction of the deployer.
type step struct {
	to   *common.Address // nil creates a contract
	data []byte
}

// deploy deploys the contracts and mints the payer's tokens, in one block. It fails if one of the transactions does.
func (c *Chain) deploy(ctx context.Context) error {
	var sent []common.Hash
	for _, s := range c.steps() {
		hash, err := c.send(ctx, c.Keys.Deployer, s.to, nil, s.data, deployGas)
		if err != nil {
			return err
		}
		sent = append(sent, hash)
	}
	if err := c.Seal(ctx); err != nil {
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

// steps returns the transactions of the first block. The addresses of the contracts depend on their order.
func (c *Chain) steps() []step {
	deployer := Address(c.Keys.Deployer)
	token, registry := contracts.NewTestUSDC(), contracts.NewInvoiceRegistry()
	steps := []step{
		{nil, append(common.FromHex(contracts.TestUSDCMetaData.Bin), token.PackConstructor(deployer)...)},
		{nil, append(common.FromHex(contracts.InvoiceRegistryMetaData.Bin),
			registry.PackConstructor(deployer, Address(c.Keys.Operator))...)},
		{&c.Token, token.PackMint(Address(c.Keys.Payer), big.NewInt(payerTokens))},
	}
	for _, contract := range []*bind.MetaData{&contracts.DepositFactoryMetaData, &contracts.AuthorizationRelayMetaData} {
		_, data := contracts.Create2(contract)
		steps = append(steps, step{&contracts.Create2Deployer, data})
	}
	return steps
}
