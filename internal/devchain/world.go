package devchain

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/contracts"
)

// indexPoll is the time between two looks at whether the transaction index is ready.
const indexPoll = time.Millisecond

// richTokens is what the payer begins with, in minor units: a billion tokens.
const richTokens = 1_000_000_000_000_000

// deployWorld brings the contracts and the payer's tokens onto the chain. Each step is one transaction of the
// deployer's and its index is its nonce, so the chain itself tells which steps are done, however a start ended, and
// the contracts' addresses are known beforehand.
func (c *Chain) deployWorld(ctx context.Context) error {
	deployer := Address(c.Keys.Deployer)
	token, registry := contracts.NewTestUSDC(), contracts.NewInvoiceRegistry()
	c.Token, c.Registry = crypto.CreateAddress(deployer, 0), crypto.CreateAddress(deployer, 1)
	steps := []struct {
		to   *common.Address // nil creates a contract
		data []byte
	}{
		{nil, append(common.FromHex(contracts.TestUSDCMetaData.Bin), token.PackConstructor(deployer)...)},
		{nil, append(common.FromHex(contracts.InvoiceRegistryMetaData.Bin),
			registry.PackConstructor(deployer, Address(c.Keys.Operator))...)},
		{&c.Token, token.PackMint(Address(c.Keys.Payer), big.NewInt(richTokens))},
	}
	done, err := c.client.NonceAt(ctx, deployer, nil)
	if err != nil {
		return err
	}
	if done >= uint64(len(steps)) {
		return c.awaitIndex(ctx)
	}
	var sent []common.Hash
	for _, step := range steps[done:] {
		hash, err := c.send(ctx, c.Keys.Deployer, step.to, step.data, deployGas)
		if err != nil {
			return err
		}
		sent = append(sent, hash)
	}
	if err := c.Seal(ctx); err != nil {
		return err
	}
	if err := c.awaitIndex(ctx); err != nil {
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
