package devchain

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts"
)

// Gas limits. They are fixed because estimates fail for transactions that depend on pending ones, and for transactions
// that tests expect to fail.
const (
	callGas   = 500_000
	deployGas = 5_000_000
)

// headBacklog is the buffer of heads in Mined.
const headBacklog = 16

// Send signs a contract call with the next nonce and adds it to the pool. Its gas limit is 500,000. It may fail when it
// is mined: check the receipt's status.
func (c *Chain) Send(ctx context.Context, from *ecdsa.PrivateKey, to common.Address, data []byte) (common.Hash, error) {
	return c.send(ctx, from, &to, nil, data, callGas)
}

// SendWithGas is Send with another gas limit.
func (c *Chain) SendWithGas(
	ctx context.Context, from *ecdsa.PrivateKey, to common.Address, data []byte, gas uint64,
) (common.Hash, error) {
	return c.send(ctx, from, &to, nil, data, gas)
}

// Create sends a transaction that creates a contract from creation code and constructor arguments. The receipt has its
// address.
func (c *Chain) Create(ctx context.Context, from *ecdsa.PrivateKey, code []byte) (common.Hash, error) {
	return c.send(ctx, from, nil, nil, code, deployGas)
}

// SendCoins transfers wei.
func (c *Chain) SendCoins(ctx context.Context, from *ecdsa.PrivateKey, to common.Address, wei *big.Int) (common.Hash, error) {
	return c.send(ctx, from, &to, wei, nil, callGas)
}

// SendToken transfers amount minor units of the token. trailing, which may be empty, is appended to the calldata: the
// token ignores it, and an indexer may find an invoice's on-chain id there.
func (c *Chain) SendToken(
	ctx context.Context, from *ecdsa.PrivateKey, to common.Address, amount *big.Int, trailing []byte,
) (common.Hash, error) {
	data, err := contracts.NewTestUSDC().TryPackTransfer(to, amount)
	if err != nil {
		return common.Hash{}, fmt.Errorf("send tokens: %w", err)
	}
	return c.Send(ctx, from, c.Token, append(data, trailing...))
}

// Approve lets spender move amount minor units of the owner's tokens.
func (c *Chain) Approve(
	ctx context.Context, owner *ecdsa.PrivateKey, spender common.Address, amount *big.Int,
) (common.Hash, error) {
	data, err := contracts.NewTestUSDC().TryPackApprove(spender, amount)
	if err != nil {
		return common.Hash{}, fmt.Errorf("approve: %w", err)
	}
	return c.Send(ctx, owner, c.Token, data)
}

// Pay pays an invoice through the registry, with an approval before the payment, and returns the payment's
// transaction.
func (c *Chain) Pay(ctx context.Context, payer *ecdsa.PrivateKey, terms contracts.Terms) (common.Hash, error) {
	data, err := contracts.NewInvoiceRegistry().TryPackPay(terms)
	if err != nil {
		return common.Hash{}, fmt.Errorf("pay: %w", err)
	}
	if _, err := c.Approve(ctx, payer, c.Registry, terms.Amount); err != nil {
		return common.Hash{}, err
	}
	return c.Send(ctx, payer, c.Registry, data)
}

// PayWithAuthorization pays an invoice through the registry with an EIP-3009 authorization that the payer signs and the
// sender submits. It is valid until the invoice expires.
func (c *Chain) PayWithAuthorization(
	ctx context.Context, sender, payer *ecdsa.PrivateKey, terms contracts.Terms,
) (common.Hash, error) {
	auth := contracts.Authorization{
		From:        Address(payer),
		To:          terms.Merchant,
		Value:       terms.Amount,
		ValidAfter:  new(big.Int),
		ValidBefore: new(big.Int).SetUint64(terms.ExpiresAt + 1),
		Nonce:       terms.ID(c.ChainID(), c.Registry),
	}
	sig, err := auth.Sign(contracts.TestUSDCDomain(c.ChainID(), c.Token), payer)
	if err != nil {
		return common.Hash{}, err
	}
	data, err := contracts.NewInvoiceRegistry().TryPackPayWithAuthorization(
		terms, auth.From, auth.ValidAfter, auth.ValidBefore, sig.V, sig.R, sig.S)
	if err != nil {
		return common.Hash{}, fmt.Errorf("pay with authorization: %w", err)
	}
	return c.Send(ctx, sender, c.Registry, data)
}

// TransferWithAuthorization submits the payer's EIP-3009 authorization directly to the token.
func (c *Chain) TransferWithAuthorization(
	ctx context.Context, sender, payer *ecdsa.PrivateKey, auth contracts.Authorization,
) (common.Hash, error) {
	sig, err := auth.Sign(contracts.TestUSDCDomain(c.ChainID(), c.Token), payer)
	if err != nil {
		return common.Hash{}, err
	}
	data, err := contracts.NewTestUSDC().TryPackTransferWithAuthorization0(
		auth.From, auth.To, auth.Value, auth.ValidAfter, auth.ValidBefore, auth.Nonce, sig.V, sig.R, sig.S)
	if err != nil {
		return common.Hash{}, fmt.Errorf("transfer with authorization: %w", err)
	}
	return c.Send(ctx, sender, c.Token, data)
}

// Balance returns an account's token balance at the head, in minor units.
func (c *Chain) Balance(ctx context.Context, of common.Address) (*big.Int, error) {
	token := contracts.NewTestUSDC()
	answer, err := c.client.CallContract(ctx, ethereum.CallMsg{To: &c.Token, Data: token.PackBalanceOf(of)}, nil)
	if err != nil {
		return nil, fmt.Errorf("read a balance: %w", err)
	}
	return token.UnpackBalanceOf(answer)
}

// StatusOf returns the registry's state of an invoice's commitment at the head.
func (c *Chain) StatusOf(ctx context.Context, id common.Hash) (contracts.Status, error) {
	return contracts.ReadStatus(ctx, c.client, c.Registry, id)
}

// Mined waits until a transaction is mined and returns its receipt, which may report failure. On a chain that seals on
// demand, the caller must seal.
func (c *Chain) Mined(ctx context.Context, hash common.Hash) (*types.Receipt, error) {
	heads := make(chan core.ChainHeadEvent, headBacklog)
	subscription := c.node.blocks.SubscribeChainHeadEvent(heads)
	defer subscription.Unsubscribe()
	for {
		receipt, err := c.client.TransactionReceipt(ctx, hash)
		if err == nil {
			return receipt, nil
		}
		if !errors.Is(err, ethereum.NotFound) {
			return nil, fmt.Errorf("wait for transaction %s: %w", hash, err)
		}
		select {
		case <-heads:
		case <-subscription.Err():
			return nil, fmt.Errorf("wait for transaction %s: the chain has stopped", hash)
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for transaction %s: %w", hash, ctx.Err())
		}
	}
}

// Sign signs a contract call like Send, with the given nonce, without sending it. Fork accepts such transactions.
func (c *Chain) Sign(
	from *ecdsa.PrivateKey, nonce uint64, to common.Address, data []byte,
) (*types.Transaction, error) {
	return c.sign(from, nonce, &to, nil, data, callGas)
}

// SendSigned adds a transaction to the pool. If the transaction has the account's next nonce, it waits until the pool's
// next nonce includes it, which an RPC call does not do.
func (c *Chain) SendSigned(ctx context.Context, tx *types.Transaction) error {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	return c.add(ctx, tx)
}

func (c *Chain) add(ctx context.Context, tx *types.Transaction) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send transaction %s: %w", tx.Hash(), err)
	}
	if err := c.node.pool.Add([]*types.Transaction{tx}, true)[0]; err != nil {
		return fmt.Errorf("send transaction %s: %w", tx.Hash(), err)
	}
	return nil
}

// send signs a transaction with the next nonce and adds it to the pool as SendSigned does.
func (c *Chain) send(
	ctx context.Context, from *ecdsa.PrivateKey, to *common.Address, wei *big.Int, data []byte, gas uint64,
) (common.Hash, error) {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	tx, err := c.sign(from, c.node.pool.PoolNonce(Address(from)), to, wei, data, gas)
	if err != nil {
		return common.Hash{}, err
	}
	if err := c.add(ctx, tx); err != nil {
		return common.Hash{}, fmt.Errorf("from %s: %w", Address(from), err)
	}
	return tx.Hash(), nil
}

func (c *Chain) sign(
	from *ecdsa.PrivateKey, nonce uint64, to *common.Address, wei *big.Int, data []byte, gas uint64,
) (*types.Transaction, error) {
	tip := big.NewInt(params.GWei)
	tx, err := types.SignNewTx(from, types.LatestSignerForChainID(c.ChainID()), &types.DynamicFeeTx{
		ChainID:   c.ChainID(),
		Nonce:     nonce,
		GasTipCap: tip,
		GasFeeCap: new(big.Int).Add(tip, new(big.Int).Lsh(c.head().BaseFee, 1)), // enough until the base fee doubles
		Gas:       gas,
		To:        to,
		Value:     wei,
		Data:      data,
	})
	if err != nil {
		return nil, fmt.Errorf("sign a transaction: %w", err)
	}
	return tx, nil
}
