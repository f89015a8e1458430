package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/dev/devchain"
	"github.com/quittance/quittance/internal/invoice"
)

// history describes the blocks of a node. All logs are Transfers of one token.
type history struct {
	Blocks int // blocks that exist at the start
	Noise  int // transfers to unwatched accounts per block, in one transaction
	Paid   int // payments of invoices per block, each in a separate transaction
	Strays int // additional payments per block, of amounts that match no invoice
	Shops  int // number of settlement addresses that get the payments
}

const (
	nodeRole = "node"
	// historyAge is how far in the past the blocks are dated.
	historyAge = 2 * time.Hour
	// historyTail is the number of empty blocks after the payments, which make them final by any rule.
	historyTail = 8
	// noiseGas and callGas are gas limits of transactions.
	noiseGas, callGas = 5_000_000, 200_000
	// strayAmount is the least amount of a stray payment. All are less than the price of an invoice.
	strayAmount = 100_000
)

// backfilled is the history that is back-filled. One transfer of ten pays an invoice.
func backfilled(blocks int) history {
	return history{Blocks: blocks, Noise: 450, Paid: 50, Shops: 1000}
}

func (h history) payments() int { return h.Blocks * h.Paid }
func (h history) logs() int     { return h.Blocks * (h.Noise + h.Strays + h.Paid) }

// hashOf returns a hash of a number.
func hashOf(n int) invoice.Hash {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

// account returns the nth settlement address.
func account(n int) invoice.Address {
	hash := hashOf(-n - 1)
	return invoice.Address(hash[:20])
}

// invoiceOf returns the invoice that the history's nth payment pays. Each has a different amount. It belongs to one of
// the shops, or to a merchant with its own address. Each merchant has one address.
func (h history) invoiceOf(n int, ownAddress bool, token invoice.Address, now time.Time) invoice.Invoice {
	shop, price := n%h.Shops, uint64(1_000_000+1000*(n/h.Shops))
	if ownAddress {
		shop = n
	}
	return invoice.Invoice{
		ID: fmt.Sprintf("inv_%026d", n), CommitmentID: hashOf(n), MerchantID: fmt.Sprint("shop-", shop),
		ChainKey: chain.Local, Currency: chain.USDC, Status: invoice.Open, Collection: invoice.Direct,
		CreatedAt:      now.Add(-2 * historyAge),
		TransferAmount: invoice.NewAmount(price + 1 + uint64(n%invoice.MaxSuffix)),
		Terms: invoice.Terms{
			Merchant: account(shop), Token: token, Amount: invoice.NewAmount(price), ExpiresAt: now.Add(24 * time.Hour),
		},
	}
}

// nodeReady is the line that a node's process prints when it is ready.
type nodeReady struct {
	HTTP            string
	Token, Registry invoice.Address
	First, Last     uint64 // blocks that hold the history
	Newest          invoice.Header
}

// serveNode runs a chain that holds a history until its standard input ends. Each line of the input seals a block: an
// empty one, or the history's next block for fullBlock.
func serveNode(ctx context.Context, text string) (err error) {
	var h history
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return err
	}
	age := historyAge
	if h.Blocks == 0 {
		age = 0
	}
	node, err := devchain.Start(ctx, devchain.Config{Now: func() time.Time { return time.Now().Add(-age) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	w, ready, err := h.write(ctx, node)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var block sealed
		if lines.Text() == fullBlock {
			block, err = w.full(ctx, node)
		} else {
			err = node.Seal(ctx)
		}
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(block); err != nil {
			return err
		}
	}
	return nil
}

// sealed is a block with payments that a node has sealed.
type sealed struct {
	LastTx common.Hash
	At     time.Time
}

// write makes the blocks. The token emits logs without moving balances, which is faster. A reader of logs sees no
// difference.
func (h history) write(ctx context.Context, node *devchain.Chain) (w *historyWriter, ready nodeReady, err error) {
	payer := devchain.Address(node.Keys.Payer)
	nonce, err := node.Client().PendingNonceAt(ctx, payer)
	if err != nil {
		return nil, ready, err
	}
	stranger := new(big.Int).SetBytes(crypto.Keccak256([]byte("stranger"))[:20])
	w = &historyWriter{history: h, key: node.Keys.Payer, nonce: nonce, stranger: stranger}
	w.sign(nil, common.FromHex(hostile.FakeTokenMetaData.Bin), noiseGas)
	w.token = crypto.CreateAddress(payer, nonce)
	if _, err := w.seal(ctx, node); err != nil {
		return nil, ready, err
	}
	first, err := node.Client().BlockNumber(ctx)
	if err != nil {
		return nil, ready, err
	}
	for range h.Blocks {
		if _, err := w.full(ctx, node); err != nil {
			return nil, ready, err
		}
	}
	for range historyTail {
		if err := node.Seal(ctx); err != nil {
			return nil, ready, err
		}
	}
	head, err := node.Client().HeaderByNumber(ctx, nil)
	if err != nil {
		return nil, ready, err
	}
	newest := invoice.Header{
		Number: head.Number.Uint64(), Hash: invoice.Hash(head.Hash()), Time: time.Unix(int64(head.Time), 0),
	}
	return w, nodeReady{
		HTTP:  node.RPCURL(),
		Token: invoice.Address(w.token), Registry: invoice.Address(node.Registry),
		First: first + 1, Last: first + uint64(h.Blocks), Newest: newest,
	}, nil
}

// historyWriter makes the transactions of a history.
type historyWriter struct {
	history
	key           *ecdsa.PrivateKey
	nonce         uint64
	token         common.Address
	stranger      *big.Int // the newest unwatched account
	paid, strayed int      // payments so far, of invoices and of other amounts
	txs           []*types.Transaction
}

// full seals the next block of the history.
func (w *historyWriter) full(ctx context.Context, node *devchain.Chain) (sealed, error) {
	token := hostile.NewFakeToken()
	strangers := make([]common.Address, w.Noise)
	for i := range strangers {
		w.stranger.Add(w.stranger, common.Big1)
		strangers[i] = common.BigToAddress(w.stranger)
	}
	if w.Noise > 0 {
		w.sign(&w.token, token.PackEmitMany(strangers, big.NewInt(1_000_000)), noiseGas)
	}
	for range w.Paid {
		inv := w.invoiceOf(w.paid, false, invoice.Address(w.token), time.Time{})
		w.paid++
		amount, _ := new(big.Int).SetString(inv.TransferAmount.String(), 10)
		w.sign(&w.token, token.PackTransfer(common.Address(inv.Merchant), amount), callGas)
	}
	for range w.Strays {
		w.strayed++
		amount := big.NewInt(int64(strayAmount + w.strayed))
		w.sign(&w.token, token.PackTransfer(common.Address(account(0)), amount), callGas)
	}
	return w.seal(ctx, node)
}

// sign adds a transaction to the next block.
func (w *historyWriter) sign(to *common.Address, data []byte, gas uint64) {
	chainID := new(big.Int).SetUint64(devchain.ChainID)
	w.txs = append(w.txs, types.MustSignNewTx(w.key, types.LatestSignerForChainID(chainID), &types.DynamicFeeTx{
		ChainID: chainID, Nonce: w.nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei),
		Gas: gas, To: to, Data: data,
	}))
	w.nonce++
}

// seal makes a block of the transactions, without the pool, and fails unless all of them succeeded.
func (w *historyWriter) seal(ctx context.Context, node *devchain.Chain) (block sealed, err error) {
	txs := w.txs
	w.txs = nil
	if err := node.Fork(ctx, 0, txs); err != nil {
		return block, err
	}
	block.At = time.Now()
	last, err := node.Client().TransactionReceipt(ctx, txs[len(txs)-1].Hash())
	if err != nil {
		return block, err
	}
	if last.Status != types.ReceiptStatusSuccessful || int(last.TransactionIndex) != len(txs)-1 {
		return block, fmt.Errorf("the last of %d transactions of block %s failed or others are missing: %+v",
			len(txs), last.BlockNumber, last)
	}
	block.LastTx = last.TxHash
	return block, nil
}

// node is a running process of a chain that holds a history.
type node struct {
	*process
	nodeReady
	history
	baseline time.Duration // for a back-fill; 0 until it is measured
}

// startNode runs a chain in a separate process and returns when it holds the history.
func startNode(ctx context.Context, program string, h history) (*node, error) {
	p, line, err := startProcess(ctx, program, nodeRole, h)
	if err != nil {
		return nil, err
	}
	n := &node{process: p, history: h}
	if err := json.Unmarshal([]byte(line), &n.nodeReady); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return n, nil
}

// fullBlock is a line that makes a node seal the next block of its history. An empty line makes it seal an empty block.
const fullBlock = "full"

// seal adds a block.
func (n *node) seal(line string) (block sealed, err error) {
	if _, err := io.WriteString(n.stdin, line+"\n"); err != nil {
		return block, err
	}
	text, err := n.lines.ReadBytes('\n')
	if err != nil {
		return block, err
	}
	n.Newest.Number++
	return block, json.Unmarshal(text, &block)
}
