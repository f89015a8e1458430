package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts/hostile"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/devchain"
	"github.com/quittance/quittance/internal/invoice"
)

// history describes the blocks that a back-fill reads. All logs are Transfers of one
// token. Most go to accounts that are not watched, each to another one; a twentieth
// pay invoices.
type history struct {
	Blocks  int
	Noise   int // logs to unwatched accounts in a block, up to noiseSize in a transaction
	Singles int // payments in a block, each in a transaction of its own
	Batches int // transactions in a block that pay BatchSize invoices each
	// Deposits says that each second block pays to deposit addresses.
	Deposits bool
}

const (
	// noiseSize is how many logs to unwatched accounts a transaction has.
	noiseSize = 450
	// batchSize is how many invoices a transaction of a batch pays.
	batchSize = 20
	// shops is how many settlement addresses the payments go to.
	shops = 1000
	// historyAge is how far in the past the blocks are dated.
	historyAge = 2 * time.Hour
	// historyTail is the number of empty blocks after the payments, which make
	// them final by any rule.
	historyTail = 8
	// noiseGas and batchGas are the gas limits of transactions with many logs.
	noiseGas, batchGas = 5_000_000, 3_000_000
	callGas            = 200_000
)

// mixed and single are the histories. In mixed, a fifth of the payments are alone in their
// transactions, as for a busy service. In single, the worst case, all are.
func mixed(blocks int) history {
	return history{Blocks: blocks, Noise: noiseSize, Singles: 10, Batches: 2}
}
func single(blocks int) history {
	return history{Blocks: blocks, Noise: noiseSize, Singles: 50}
}

func (h history) perBlock() int { return h.Singles + h.Batches*batchSize }
func (h history) payments() int { return h.Blocks * h.perBlock() }
func (h history) logs() int     { return h.Blocks * (h.Noise + h.perBlock()) }

// transactions is how many transactions hold payments.
func (h history) transactions() int { return h.Blocks * (h.Singles + h.Batches) }

// paysDeposit reports whether the nth payment goes to a deposit address.
func (h history) paysDeposit(n int) bool { return h.Deposits && n/h.perBlock()%2 == 1 }

// account returns the nth settlement address.
func account(n int) invoice.Address {
	var word [8]byte
	binary.BigEndian.PutUint64(word[:], uint64(n))
	return invoice.Address(crypto.Keccak256([]byte("settlement"), word[:])[:20])
}

// invoiceOf returns the invoice that the history's nth payment pays. Beyond the number of
// payments it returns an unpaid invoice with its own address.
func (h history) invoiceOf(n int, token invoice.Address, now time.Time) invoice.Invoice {
	shop := n
	if n < h.payments() || h.paysDeposit(n) {
		shop = n % shops
	}
	amount := uint64(1_000_000 + 1000*(n/shops))
	inv := invoice.Invoice{
		ID: fmt.Sprintf("inv_%026d", n), MerchantID: "shop", ChainKey: chain.Local, Currency: chain.USDC, Status: invoice.Open,
		CreatedAt:      now.Add(-2 * historyAge),
		TransferAmount: invoice.NewAmount(amount + 1 + uint64(n%999)),
		Terms: invoice.Terms{
			Merchant: account(shop), Token: token, Amount: invoice.NewAmount(amount), ExpiresAt: now.Add(24 * time.Hour),
		},
	}
	inv.CommitmentID = numberHash(uint64(n))
	if h.paysDeposit(n) {
		inv.Collection, inv.TransferAmount, inv.DepositFactory = invoice.Deposit, invoice.Amount{}, depositFactory
		inv.DepositAddress = chain.Chain{DepositFactory: depositFactory}.DepositAddress(inv.Merchant, inv.CommitmentID)
	}
	return inv
}

// nodeReady is what the process of a node prints when it is ready.
type nodeReady struct {
	HTTP, WS    string
	Token       invoice.Address
	First, Last uint64 // blocks that hold the history
}

// serveNode runs a chain that holds a history until its standard input ends.
// Each line of the input seals a block: an empty one, or the history's next for fullBlock.
func serveNode(ctx context.Context, text string) (err error) {
	var h history
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return err
	}
	node, err := devchain.Start(ctx, devchain.Config{Now: func() time.Time { return time.Now().Add(-historyAge) }})
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
		if lines.Text() == fullBlock {
			w.fill()
			err = w.seal(ctx, node)
		} else {
			err = node.Seal(ctx)
		}
		if err != nil {
			return err
		}
		fmt.Println("sealed")
	}
	return nil
}

// write makes the blocks. The token emits logs without moving balances, which is faster. A
// reader of logs sees no difference.
func (h history) write(ctx context.Context, node *devchain.Chain) (w *historyWriter, ready nodeReady, err error) {
	payer := devchain.Address(node.Keys.Payer)
	nonce, err := node.Client().PendingNonceAt(ctx, payer)
	if err != nil {
		return nil, ready, err
	}
	w = &historyWriter{history: h, key: node.Keys.Payer, nonce: nonce, stranger: new(big.Int).SetBytes(crypto.Keccak256([]byte("stranger"))[:20])}
	for _, code := range []string{hostile.FakeTokenMetaData.Bin, hostile.DisperseMetaData.Bin} {
		w.sign(nil, common.FromHex(code), noiseGas)
	}
	w.token, w.disperse = crypto.CreateAddress(payer, nonce), crypto.CreateAddress(payer, nonce+1)
	if err := w.seal(ctx, node); err != nil {
		return nil, ready, err
	}
	first, err := node.Client().BlockNumber(ctx)
	if err != nil {
		return nil, ready, err
	}
	for range h.Blocks {
		w.fill()
		if err := w.seal(ctx, node); err != nil {
			return nil, ready, err
		}
	}
	for range historyTail {
		if err := node.Seal(ctx); err != nil {
			return nil, ready, err
		}
	}
	return w, nodeReady{
		HTTP: node.RPCURL(), WS: node.WSURL(), Token: invoice.Address(w.token),
		First: first + 1, Last: first + uint64(h.Blocks),
	}, nil
}

// historyWriter makes the transactions of a history.
type historyWriter struct {
	history
	key             *ecdsa.PrivateKey
	nonce           uint64
	token, disperse common.Address
	stranger        *big.Int // the newest account that is not watched
	paid            int      // invoices so far
	txs             []*types.Transaction
}

// fill makes a block's transactions.
func (w *historyWriter) fill() {
	token, disperse := hostile.NewFakeToken(), hostile.NewDisperse()
	strangers := make([]common.Address, w.Noise)
	for i := range strangers {
		w.stranger.Add(w.stranger, common.Big1)
		strangers[i] = common.BigToAddress(w.stranger)
	}
	for some := range slices.Chunk(strangers, noiseSize) {
		w.sign(&w.token, token.PackEmitMany(some, big.NewInt(1_000_000)), noiseGas)
	}
	for range w.Singles {
		to, amount := w.pay()
		w.sign(&w.token, token.PackTransfer(to, amount), callGas)
	}
	for range w.Batches {
		var all []common.Address
		var amounts []*big.Int
		for range batchSize {
			to, amount := w.pay()
			all, amounts = append(all, to), append(amounts, amount)
		}
		w.sign(&w.disperse, disperse.PackDisperse(w.token, all, amounts), batchGas)
	}
}

// pay returns the receiver and the amount of the next payment.
func (w *historyWriter) pay() (common.Address, *big.Int) {
	inv := w.invoiceOf(w.paid, invoice.Address(w.token), time.Time{})
	w.paid++
	due := inv.TransferAmount
	if inv.IsDeposit() {
		due = inv.Amount
	}
	amount, _ := new(big.Int).SetString(due.String(), 10)
	return common.Address(inv.PayTo()), amount
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

// seal makes a block of the transactions, without the pool, and fails unless all of them
// succeeded.
func (w *historyWriter) seal(ctx context.Context, node *devchain.Chain) error {
	txs := w.txs
	w.txs = nil
	if err := node.Fork(ctx, 0, txs); err != nil {
		return err
	}
	last, err := node.Client().TransactionReceipt(ctx, txs[len(txs)-1].Hash())
	if err != nil {
		return err
	}
	if last.Status != types.ReceiptStatusSuccessful || int(last.TransactionIndex) != len(txs)-1 {
		return fmt.Errorf("the last of %d transactions of block %s failed or others are missing: %+v", len(txs), last.BlockNumber, last)
	}
	return nil
}

// node is a running process of a chain that holds a history.
type node struct {
	*process
	nodeReady
	history
	ceilings map[string]ceiling // by the node's URL
	sealed   int                // blocks with payments
}

// startNode runs a chain in a process of its own and returns when it holds the
// history.
func startNode(ctx context.Context, h history) (*node, error) {
	p, line, err := startProcess(ctx, "node", h)
	if err != nil {
		return nil, err
	}
	n := &node{process: p, history: h, ceilings: make(map[string]ceiling), sealed: h.Blocks}
	if err := json.Unmarshal([]byte(line), &n.nodeReady); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return n, nil
}

// fullBlock is a line that has a node seal the next block of its history.
const fullBlock = "full"

// sealFull adds the next block of the history.
func (n *node) sealFull() error {
	n.sealed++
	return n.sealBlock(fullBlock)
}

// seal adds an empty block.
func (n *node) seal() error { return n.sealBlock("") }

func (n *node) sealBlock(line string) error {
	if _, err := io.WriteString(n.stdin, line+"\n"); err != nil {
		return err
	}
	_, err := n.lines.ReadString('\n')
	return err
}
