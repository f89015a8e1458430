package main

import (
	"context"
	"crypto/ecdsa"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/gasestimator"
	"github.com/ethereum/go-ethereum/params"
)

const (
	blockGas   = 30_000_000
	deployGas  = 5_000_000
	callGas    = 500_000
	firstChain = 900_001 // EIP-155 id of a world's first chain
)

// block is a block of a chain. It never changes.
type block struct {
	header   *types.Header
	hash     common.Hash
	number   uint64
	time     time.Time
	txs      []*types.Transaction
	receipts []*types.Receipt
	state    *state.StateDB // after the block; only copies of it are changed
	seq      uint64         // blocks of the chain that were made before it, also on other branches
	encoded  sync.Map       // parts in JSON, as nodes answer them, by name
}

// evmChain is a chain with its forks. It runs real contracts in go-ethereum's virtual machine.
type evmChain struct {
	id     *big.Int
	config *params.ChainConfig
	signer types.Signer
	contractAddresses

	mu        sync.Mutex
	canonical []*block // by number; a reorg makes a new list
	byHash    map[common.Hash]*block
	places    map[common.Hash][]*block // the blocks that a transaction was mined in
	pool      []*types.Transaction     // in the order of arrival
	waiting   map[common.Hash]uint64   // the block from which on a transaction can be mined
	hidden    map[common.Hash]withheld // transactions that nodes do not return
	made      uint64
	minTip    *big.Int
	tag       uint64 // number of the block with the tags safe and finalized
}

// contractAddresses are the contracts of a chain. The burner is an account that accepts any signature and can burn gas,
// and disperse makes many transfers in one transaction.
type contractAddresses struct{ token, other, registry, burner, disperse, factory, relay common.Address }

func (c *evmChain) head() *block { return c.canonical[len(c.canonical)-1] }

// view returns the canonical blocks, which the caller must not change.
func (c *evmChain) view() []*block { return c.tagged().blocks }

// blockView is the blocks that a node has, by number, and the number of the one with the tags safe and finalized.
type blockView struct {
	blocks []*block
	tag    uint64
}

// tagged returns the canonical blocks, which the caller must not change, with the tag.
func (c *evmChain) tagged() blockView {
	c.mu.Lock()
	defer c.mu.Unlock()
	return blockView{c.canonical, c.tag}
}

// append makes a block on the head.
func (c *evmChain) append(parent *block, at time.Time, after *state.StateDB, txs []*types.Transaction, receipts []*types.Receipt) *block {
	h := &types.Header{
		Number: new(big.Int), Time: uint64(at.Unix()), GasLimit: blockGas, BaseFee: big.NewInt(params.GWei), Difficulty: new(big.Int),
		Extra: binary.BigEndian.AppendUint64(nil, c.made), UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash,
		ReceiptHash: types.EmptyReceiptsHash, Root: crypto.Keccak256Hash(c.id.Bytes()),
	}
	if parent != nil {
		h.ParentHash = parent.hash
		h.Number.SetUint64(parent.number + 1)
	}
	for _, r := range receipts {
		h.GasUsed += r.GasUsed
		for i := range h.Bloom {
			h.Bloom[i] |= r.Bloom[i]
		}
	}
	b := &block{header: h, number: h.Number.Uint64(), time: at, txs: txs, receipts: receipts, state: after, seq: c.made}
	b.hash = h.Hash()
	c.made++
	logs := uint(0)
	for i, r := range receipts {
		r.BlockHash, r.BlockNumber, r.TransactionIndex = b.hash, h.Number, uint(i)
		for _, l := range r.Logs {
			l.BlockHash, l.BlockNumber, l.BlockTimestamp, l.TxIndex, l.Index = b.hash, b.number, h.Time, uint(i), logs
			logs++
		}
		c.places[r.TxHash] = append(c.places[r.TxHash], b)
	}
	c.byHash[b.hash] = b
	c.canonical = append(c.canonical, b)
	return b
}

// mine adds a block with the transactions of the pool that can be mined.
func (c *evmChain) mine(at time.Time) *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mineOn(at)
}

// mineBranch returns blocks with one more, which is on no branch but theirs.
func (c *evmChain) mineBranch(blocks []*block, at time.Time, txs []*types.Transaction) []*block {
	c.mu.Lock()
	defer c.mu.Unlock()
	canonical, pool := c.canonical, c.pool
	c.canonical, c.pool = blocks, txs
	c.mineOn(at)
	blocks, c.canonical, c.pool = c.canonical, canonical, pool
	return blocks
}

func (c *evmChain) mineOn(at time.Time) *block {
	parent := c.head()
	if !at.After(parent.time) {
		at = parent.time.Add(time.Second)
	}
	if len(c.pool) == 0 {
		return c.append(parent, at, parent.state, nil, nil)
	}
	after := parent.state.Copy()
	header := &types.Header{Number: new(big.Int).SetUint64(parent.number + 1), Time: uint64(at.Unix()), GasLimit: blockGas, BaseFee: big.NewInt(params.GWei), Difficulty: new(big.Int)}
	gas := core.NewGasPool(blockGas)
	var txs []*types.Transaction
	var receipts []*types.Receipt
	for mined := true; mined; { // a transaction may arrive before the one whose nonce precedes its
		mined = false
		for i := 0; i < len(c.pool); i++ {
			tx := c.pool[i]
			from := c.senderOf(tx)
			switch next := after.GetNonce(from); {
			case tx.Nonce() < next:
				c.pool = slices.Delete(c.pool, i, i+1)
				i--
				continue
			case tx.Nonce() > next || c.waiting[tx.Hash()] > parent.number+1 || tx.EffectiveGasTipValue(header.BaseFee).Cmp(c.minTip) < 0:
				continue
			}
			r, err := c.apply(after, header, gas, tx, len(txs))
			if err != nil {
				continue // it waits
			}
			txs, receipts, mined = append(txs, tx), append(receipts, r), true
			c.pool = slices.Delete(c.pool, i, i+1)
			i--
		}
	}
	return c.append(parent, at, after, txs, receipts)
}

// apply runs a transaction.
func (c *evmChain) apply(on *state.StateDB, header *types.Header, gas *core.GasPool, tx *types.Transaction, index int) (*types.Receipt, error) {
	msg, err := core.TransactionToMessage(tx, c.signer, header.BaseFee)
	if err != nil {
		return nil, err
	}
	on.SetTxContext(tx.Hash(), index, uint32(index)+1)
	evm := vm.NewEVM(c.context(header), on, c.config, vm.Config{})
	defer evm.Release()
	before := on.Snapshot()
	result, err := core.ApplyMessage(evm, msg, gas)
	if err != nil {
		on.RevertToSnapshot(before)
		return nil, err
	}
	on.Finalise(evm.GetRules())
	r := &types.Receipt{
		Type: tx.Type(), TxHash: tx.Hash(), GasUsed: result.UsedGas, CumulativeGasUsed: gas.CumulativeUsed(), Status: types.ReceiptStatusSuccessful,
		EffectiveGasPrice: new(big.Int).Add(tx.EffectiveGasTipValue(header.BaseFee), header.BaseFee), Logs: on.GetLogs(tx.Hash(), header.Number.Uint64(), common.Hash{}, header.Time),
	}
	if result.Failed() {
		r.Status, r.Logs = types.ReceiptStatusFailed, nil
	}
	if tx.To() == nil {
		from := c.senderOf(tx)
		r.ContractAddress = crypto.CreateAddress(from, tx.Nonce())
	}
	logs := make([]*types.Log, len(r.Logs))
	for i, l := range r.Logs {
		logs[i] = new(*l) // a state has its logs until it is copied
	}
	r.Logs = logs
	r.Bloom = types.CreateBloom(r)
	return r, nil
}

func (c *evmChain) context(header *types.Header) vm.BlockContext {
	return core.NewEVMBlockContext(header, chainContext{c}, &common.Address{})
}

// chainContext is what the virtual machine asks of a chain.
type chainContext struct{ *evmChain }

func (c chainContext) Engine() consensus.Engine                        { return engine{} }
func (c chainContext) Config() *params.ChainConfig                     { return c.config }
func (c chainContext) CurrentHeader() *types.Header                    { return c.head().header }
func (c chainContext) GetHeader(h common.Hash, _ uint64) *types.Header { return c.GetHeaderByHash(h) }
func (c chainContext) GetHeaderByNumber(n uint64) *types.Header        { return c.canonical[n].header }
func (c chainContext) GetHeaderByHash(h common.Hash) *types.Header     { return c.byHash[h].header }

// engine is the part of a consensus engine that the virtual machine asks for.
type engine struct{ consensus.Engine }

func (engine) Author(*types.Header) (common.Address, error) { return common.Address{}, nil }

// call runs a message on the state after a block, and forgets its changes.
func (c *evmChain) call(at *block, msg *core.Message) (*core.ExecutionResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	header := types.CopyHeader(at.header)
	header.BaseFee = new(big.Int)
	evm := vm.NewEVM(c.context(header), at.state.Copy(), c.config, vm.Config{NoBaseFee: true})
	defer evm.Release()
	return core.ApplyMessage(evm, msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck().SkipExecutionGasCapCheck(), core.NewGasPool(math.MaxUint64))
}

// estimate returns how much gas a message needs on the state after a block, as go-ethereum's nodes do, or what a
// contract returned when it refused it.
func (c *evmChain) estimate(at *block, msg *core.Message) (gas uint64, revert []byte, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return gasestimator.Estimate(context.Background(), msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck(), &gasestimator.Options{
		Config: c.config, Chain: chainContext{c}, Header: at.header, State: at.state.Copy(), ErrorRatio: 0.015,
	}, blockGas)
}

// add takes a transaction into the pool, as a node does that receives it.
func (c *evmChain) add(tx *types.Transaction) error {
	from, err := types.Sender(c.signer, tx)
	if err != nil {
		return err
	}
	if tx.Gas() > params.MaxTxGas {
		return core.ErrGasLimitTooHigh
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if tx.Nonce() < c.head().state.GetNonce(from) {
		return core.ErrNonceTooLow
	}
	for i, other := range c.pool {
		sender := c.senderOf(other)
		switch {
		case other.Hash() == tx.Hash():
			return errKnown
		case sender == from && other.Nonce() == tx.Nonce():
			if least := new(big.Int).Div(new(big.Int).Mul(other.GasFeeCap(), big.NewInt(110)), big.NewInt(100)); tx.GasFeeCap().Cmp(least) < 0 {
				return errUnderpriced
			}
			c.pool[i] = tx
			return nil
		}
	}
	c.pool = append(c.pool, tx)
	return nil
}

// senderOf returns the sender of a transaction that the chain has taken.
func (c *evmChain) senderOf(tx *types.Transaction) common.Address {
	from, err := types.Sender(c.signer, tx)
	if err != nil {
		panic(err)
	}
	return from
}

// minedBy reports whether the chain's block of a number is dated at most at a time, in Unix seconds.
func (c *evmChain) minedBy(number, at int64) bool {
	view := c.view()
	return number < int64(len(view)) && view[number].time.Unix() <= at
}

// nextNonce returns the nonce after the account's transactions, including the pool's.
func (c *evmChain) nextNonce(of common.Address, after *block) uint64 {
	next := after.state.GetNonce(of)
	for again := true; again; {
		again = slices.ContainsFunc(c.pool, func(tx *types.Transaction) bool {
			from := c.senderOf(tx)
			return from == of && tx.Nonce() == next
		})
		if again {
			next++
		}
	}
	return next
}

func (c *evmChain) sign(key *ecdsa.PrivateKey, nonce uint64, to *common.Address, data []byte, gas uint64) *types.Transaction {
	return types.MustSignNewTx(key, c.signer, &types.DynamicFeeTx{
		ChainID: c.id, Nonce: nonce, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(100 * params.GWei), Gas: gas, To: to, Data: data,
	})
}

// send signs a transaction and adds it to the pool.
func (c *evmChain) send(key *ecdsa.PrivateKey, to *common.Address, data []byte, gas uint64) *types.Transaction {
	c.mu.Lock()
	nonce := c.nextNonce(addressOf(key), c.head())
	c.mu.Unlock()
	tx := c.sign(key, nonce, to, data, gas)
	if err := c.add(tx); err != nil {
		panic(fmt.Sprintf("send a transaction: %v", err))
	}
	return tx
}

// reorg replaces the newest blocks by one more than that. keep decides whether a transaction of theirs can be mined
// again; one with a nonce behind a dropped transaction of its sender waits until that is sent again.
func (c *evmChain) reorg(depth int, keep func(*types.Transaction) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	replaced := c.canonical[len(c.canonical)-depth:]
	c.canonical = slices.Clone(c.canonical[:len(c.canonical)-depth])
	var again []*types.Transaction
	for _, b := range replaced {
		for _, tx := range b.txs {
			if keep(tx) {
				again = append(again, tx)
			}
		}
	}
	later := c.pool
	c.pool = nil
	for i, b := range replaced {
		if i > 0 || depth == 1 {
			c.pool = append(c.pool, again...)
			again = nil
		}
		c.mineOn(b.time)
	}
	c.pool = append(c.pool, later...)
	c.mineOn(c.head().time.Add(time.Second))
}

// unmine replaces the blocks from the one with a transaction on, if that is not final yet. The transaction returns to the
// pool, and is mined some blocks later.
func (c *worldChain) unmine(tx common.Hash, later uint64) {
	final, view := len(c.final()), c.view()
	for at := final; at > 0 && at < len(view); at++ {
		if slices.ContainsFunc(view[at].txs, func(t *types.Transaction) bool { return t.Hash() == tx }) {
			c.mu.Lock()
			c.waiting[tx] = uint64(len(view)) + 1 + later
			c.mu.Unlock()
			c.reorg(len(view)-at, func(*types.Transaction) bool { return true })
			return
		}
	}
}
