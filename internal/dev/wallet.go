package dev

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts"
)

// Gas of the transactions. It is free in a development world.
const (
	transferGas = 200_000
	gasFeeCap   = 100 * params.GWei
)

// minedPoll is how often the node is polled for a receipt.
const minedPoll = 100 * time.Millisecond

// wallet is an account of a development world's chain.
type wallet struct {
	node  *ethclient.Client
	chain ChainInfo
	key   *ecdsa.PrivateKey
}

// openWallet returns the wallet of a key of dev.Info.
func openWallet(node *ethclient.Client, chain ChainInfo, key string) (*wallet, error) {
	k, err := crypto.HexToECDSA(strings.TrimPrefix(key, "0x"))
	if err != nil {
		return nil, fmt.Errorf("the world's key: %w", err)
	}
	return &wallet{node, chain, k}, nil
}

// send sends minor units of the token, with trailing appended to the calldata. Transfers
// with different tips, in gwei, are different transactions.
func (w *wallet) send(ctx context.Context, to, amount string, trailing []byte, tip int64) (common.Hash, error) {
	n, ok := new(big.Int).SetString(amount, 10)
	if !ok {
		return common.Hash{}, fmt.Errorf("transfer %q: want a number of minor units", amount)
	}
	data, err := contracts.NewTestUSDC().TryPackTransfer(common.HexToAddress(to), n)
	if err != nil {
		return common.Hash{}, fmt.Errorf("transfer: %w", err)
	}
	nonce, err := w.node.PendingNonceAt(ctx, crypto.PubkeyToAddress(w.key.PublicKey))
	if err != nil {
		return common.Hash{}, fmt.Errorf("ask the chain for a nonce: %w", err)
	}
	id, token := new(big.Int).SetUint64(w.chain.ChainID), common.HexToAddress(w.chain.Token)
	tx, err := types.SignNewTx(w.key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, GasTipCap: new(big.Int).Mul(big.NewInt(tip), big.NewInt(params.GWei)), GasFeeCap: big.NewInt(gasFeeCap),
		Gas: transferGas, To: &token, Data: append(data, trailing...),
	})
	if err != nil {
		return common.Hash{}, fmt.Errorf("sign the transfer: %w", err)
	}
	if err := w.node.SendTransaction(ctx, tx); err != nil {
		return common.Hash{}, fmt.Errorf("send the transfer: %w", err)
	}
	return tx.Hash(), nil
}

// awaitMined waits until a transaction is mined. It fails if the transaction reverted.
func (w *wallet) awaitMined(ctx context.Context, tx common.Hash) error {
	ticker := time.NewTicker(minedPoll)
	defer ticker.Stop()
	for {
		receipt, err := w.node.TransactionReceipt(ctx, tx)
		switch {
		case err == nil && receipt.Status == types.ReceiptStatusSuccessful:
			return nil
		case err == nil:
			return fmt.Errorf("the transfer %s failed on the chain", tx.Hex())
		case !errors.Is(err, ethereum.NotFound):
			return fmt.Errorf("ask for the transfer %s: %w", tx.Hex(), err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the transfer %s was not mined: %w", tx.Hex(), ctx.Err())
		}
	}
}
