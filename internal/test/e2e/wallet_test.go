package e2e

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/apitypes"
	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/expect"
)

// wallet is an account of a world's chain, used over JSON-RPC. It survives kills of the
// chain: a lost transaction is sent again.
type wallet struct {
	info    func() *dev.Info
	key     *ecdsa.PrivateKey
	address common.Address

	mu  sync.Mutex // held until a transaction is mined, so that nonces are consecutive
	url string     // of node
	rpc *ethclient.Client
}

// callGas is enough for every transaction of a wallet.
const callGas = 500_000

// newWallet returns the wallet of a private key in hex, or of a new key if text is empty.
func (w *world) newWallet(text string) *wallet {
	w.Helper()
	key, err := crypto.GenerateKey()
	if text != "" {
		key, err = crypto.HexToECDSA(strings.TrimPrefix(text, "0x"))
	}
	expect.OK(w, err)
	a := &wallet{info: w.info.Load, key: key, address: crypto.PubkeyToAddress(key.PublicKey)}
	w.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.rpc != nil {
			a.rpc.Close()
		}
	})
	return a
}

func (w *world) payer() *wallet    { return w.newWallet(w.info.Load().Payer.PrivateKey) }
func (w *world) merchant() *wallet { return w.newWallet(w.info.Load().Merchant.PrivateKey) }

// node returns a client of the running node. The wallet must be locked.
func (a *wallet) node(ctx context.Context) (*ethclient.Client, error) {
	url := a.info().Chain.RPCURL
	if a.rpc != nil && a.url == url {
		return a.rpc, nil
	}
	rpc, err := ethclient.DialContext(ctx, url)
	if err != nil {
		return nil, err
	}
	if a.rpc != nil {
		a.rpc.Close()
	}
	a.rpc, a.url = rpc, url
	return rpc, nil
}

// send mines a transaction. It calls signed with the hash before it sends the transaction.
func (a *wallet) send(ctx context.Context, to common.Address, value *big.Int, data []byte, signed func(common.Hash)) (*types.Receipt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var tx *types.Transaction
	var receipt *types.Receipt
	var last error
	err := await(ctx, func() bool {
		node, err := a.node(ctx)
		if err == nil && tx == nil {
			if tx, err = a.sign(ctx, node, to, value, data); err == nil && signed != nil {
				signed(tx.Hash())
			}
		}
		if err == nil {
			if receipt, err = node.TransactionReceipt(ctx, tx.Hash()); err == nil {
				return true
			}
			err = node.SendTransaction(ctx, tx) // already known or mined: the next poll finds it
		}
		last = err
		return false
	})
	if err != nil {
		return nil, fmt.Errorf("transaction from %s: %w; the node said: %w", a.address, err, last)
	}
	return receipt, nil
}

func (a *wallet) sign(ctx context.Context, node *ethclient.Client, to common.Address, value *big.Int, data []byte) (*types.Transaction, error) {
	nonce, err := node.NonceAt(ctx, a.address, nil)
	if err != nil {
		return nil, err
	}
	chainID := new(big.Int).SetUint64(a.info().Chain.ChainID)
	return types.SignNewTx(a.key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
		Gas: callGas, To: &to, Value: value, Data: data,
	})
}

// transfer sends tokens; trailing is appended to the calldata.
func (a *wallet) transfer(ctx context.Context, to common.Address, amount *big.Int, trailing []byte, signed func(common.Hash)) (*types.Receipt, error) {
	data := contracts.NewTestUSDC().PackTransfer(to, amount)
	return a.send(ctx, common.HexToAddress(a.info().Chain.Token), nil, append(data, trailing...), signed)
}

// approve lets the registry take any amount.
func (a *wallet) approve(ctx context.Context) error {
	chain := a.info().Chain
	everything := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	data := contracts.NewTestUSDC().PackApprove(common.HexToAddress(chain.Registry), everything)
	_, err := a.send(ctx, common.HexToAddress(chain.Token), nil, data, nil)
	return err
}

// pay pays through the registry, which must be approved.
func (a *wallet) pay(ctx context.Context, terms contracts.Terms, signed func(common.Hash)) (*types.Receipt, error) {
	return a.send(ctx, common.HexToAddress(a.info().Chain.Registry), nil, contracts.NewInvoiceRegistry().PackPay(terms), signed)
}

// head returns the chain's newest header, or nil while there is no chain.
func (a *wallet) head(ctx context.Context) *types.Header {
	a.mu.Lock()
	defer a.mu.Unlock()
	node, err := a.node(ctx)
	if err != nil {
		return nil
	}
	header, err := node.HeaderByNumber(ctx, nil)
	if err != nil {
		return nil
	}
	return header
}

// mustTransfer is transfer on a chain that is not killed.
func (a *wallet) mustTransfer(tb testing.TB, to, amount string, trailing []byte) common.Hash {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	receipt, err := a.transfer(ctx, common.HexToAddress(to), units(tb, amount), trailing, nil)
	expect.OK(tb, err)
	if receipt.Status != types.ReceiptStatusSuccessful {
		tb.Fatalf("the transfer %s failed", receipt.TxHash)
	}
	return receipt.TxHash
}

// units parses minor units.
func units(tb testing.TB, text string) *big.Int {
	tb.Helper()
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		tb.Fatalf("%q is no amount", text)
	}
	return n
}

// within returns a context that ends after a limit.
func within(tb testing.TB, limit time.Duration) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	tb.Cleanup(cancel)
	return ctx
}

// authorize returns the body of a request that pays an invoice by an authorization of the wallet's account, with the
// invoice's on-chain id as nonce.
func (a *wallet) authorize(tb testing.TB, made apitypes.CreateInvoiceResponse) string {
	tb.Helper()
	auth := contracts.Authorization{
		From: a.address, To: common.HexToAddress(cmp.Or(made.Invoice.DepositAddress, made.Invoice.MerchantAddress)), Value: units(tb, made.Invoice.Amount),
		ValidAfter: new(big.Int), ValidBefore: big.NewInt(time.Now().Add(10 * time.Minute).Unix()), Nonce: common.HexToHash(made.OnChainInvoiceID),
	}
	chain := a.info().Chain
	signature, err := auth.Sign(contracts.TestUSDCDomain(new(big.Int).SetUint64(chain.ChainID), common.HexToAddress(chain.Token)), a.key)
	expect.OK(tb, err)
	return fmt.Sprintf(`{
  "from": %q,
  "to": %q,
  "value": %q,
  "validAfter": 0,
  "validBefore": %s,
  "nonce": %q,
  "signature": "%#x"
}`, auth.From.Hex(), auth.To.Hex(), auth.Value.String(), auth.ValidBefore, auth.Nonce.Hex(), signature.Bytes())
}
