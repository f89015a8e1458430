package walk_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/dev"
	"github.com/quittance/quittance/internal/test/browsertest"
	"github.com/quittance/quittance/internal/test/expect"
)

// network is the network that a person's wallet uses.
type network struct {
	w    *walk
	Info dev.Info
	node *ethclient.Client
}

// networkOf returns the network of a development world.
func (w *walk) networkOf(base string) *network {
	w.Helper()
	n := &network{w: w}
	answer, err := http.Get(base + "/dev/world")
	expect.OK(w, err)
	err = json.NewDecoder(answer.Body).Decode(&n.Info)
	if err = errors.Join(err, answer.Body.Close()); err == nil {
		n.node, err = ethclient.DialContext(w.Context(), n.Info.Chain.RPCURL)
	}
	expect.OK(w, err)
	w.Cleanup(n.node.Close)
	return n
}

// send sends a transaction of an account with 64 digits as its key, and waits until it is mined.
func (n *network) send(digits string, to common.Address, data []byte) common.Hash {
	ctx := context.WithoutCancel(n.w.Context())
	key, err := crypto.HexToECDSA(strings.TrimPrefix(digits, "0x"))
	var nonce uint64
	if err == nil {
		nonce, err = n.node.PendingNonceAt(ctx, crypto.PubkeyToAddress(key.PublicKey))
	}
	var price *big.Int
	if err == nil {
		price, err = n.node.SuggestGasPrice(ctx)
	}
	var tx *types.Transaction
	if err == nil {
		tx, err = types.SignNewTx(key, types.NewEIP155Signer(new(big.Int).SetUint64(n.Info.Chain.ChainID)),
			&types.LegacyTx{Nonce: nonce, GasPrice: price, Gas: 200_000, To: &to, Data: data})
	}
	if err == nil {
		err = n.node.SendTransaction(ctx, tx)
	}
	if err != nil {
		n.w.Error(err) // a wallet calls it from another goroutine
		return common.Hash{}
	}
	if !n.w.await(func() bool {
		receipt, err := n.node.TransactionReceipt(ctx, tx.Hash())
		return err == nil && receipt.Status == types.ReceiptStatusSuccessful
	}) {
		n.w.Errorf("transaction %s is not mined", tx.Hash())
	}
	return tx.Hash()
}

// transfer sends USDC from the payer's account: a decimal amount to an address, as the person typed both.
func (n *network) transfer(address, amount string) common.Hash {
	n.w.Helper()
	n.w.steps += 2
	units, ok := new(big.Rat).SetString(strings.ReplaceAll(amount, ",", "."))
	if !ok || !common.IsHexAddress(address) {
		n.w.Fatalf("the wallet takes no amount %q or address %q", amount, address)
	}
	minor := units.Mul(units, big.NewRat(1_000_000, 1)).Num()
	return n.send(n.Info.Payer.PrivateKey, common.HexToAddress(n.Info.Chain.Token), contracts.NewTestUSDC().PackTransfer(common.HexToAddress(address), minor))
}

// fox returns a browser's wallet with the account that has some 64 digits as its key.
func (n *network) fox(digits string) *browsertest.Wallet {
	n.w.Helper()
	key := expect.Must(crypto.HexToECDSA(strings.TrimPrefix(digits, "0x")))
	fox := browsertest.NewWallet(n.w, &browsertest.World{Info: n.Info}, "Fox", key)
	fox.Answer(func(c browsertest.Call) (any, bool, error) {
		if c.Method != "eth_sendTransaction" {
			return nil, false, nil
		}
		var tx struct {
			To   common.Address
			Data hexutil.Bytes
		}
		if err := json.Unmarshal(c.Params[0], &tx); err != nil {
			return nil, true, err
		}
		return n.send(digits, tx.To, tx.Data), true, nil
	})
	return fox
}
