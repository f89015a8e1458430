// Package chaintest is a scripted EVM chain for tests: blocks are mined,
// replaced and tagged by method calls, and served over JSON-RPC by nodes that
// can lag and fail. No contract runs on it; transactions emit the logs that a
// test gives them.
package chaintest

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/quittance/quittance/internal/invoice"
)

// Genesis time, and the time between blocks, in seconds.
const (
	GenesisTime  = 1_800_000_000
	BlockSeconds = 12
)

// Chain is a chain with its forks. It is safe for concurrent use.
type Chain struct {
	ID uint64

	mu        sync.Mutex
	canonical []*Block // by number
	byHash    map[common.Hash]*Block
	txs       map[common.Hash]place // in the canonical blocks
	tags      map[string]uint64
	decimals  map[common.Address]int // of contracts; -1 for contracts that are not tokens
	nonces    map[common.Address]uint64
	mined     uint64 // number of blocks ever mined, so that all hashes differ
}

// Block is a mined block. It never changes.
type Block struct {
	Number uint64
	Hash   common.Hash
	Parent common.Hash
	Time   int64 // Unix seconds
	Txs    []Tx

	bloom types.Bloom
	logs  []types.Log
}

// New returns a chain that has only block 0.
func New(id uint64) *Chain { return NewAt(id, GenesisTime) }

// NewAt returns a chain of which the first block has a time, in Unix seconds.
func NewAt(id uint64, genesis int64) *Chain {
	c := &Chain{
		ID: id, byHash: map[common.Hash]*Block{}, txs: map[common.Hash]place{}, tags: map[string]uint64{},
		decimals: map[common.Address]int{}, nonces: map[common.Address]uint64{},
	}
	c.mine(genesis, nil)
	return c
}

// Token puts a token with the given number of decimals at an address.
func (c *Chain) Token(at invoice.Address, decimals int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decimals[common.Address(at)] = decimals
}

// Contract puts a contract that is not a token at an address.
func (c *Chain) Contract(at invoice.Address) { c.Token(at, -1) }

// SetNonce sets how many transactions an account has sent.
func (c *Chain) SetNonce(account common.Address, sent uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nonces[account] = sent
}

// Head returns the newest block.
func (c *Chain) Head() *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head()
}

func (c *Chain) head() *Block { return c.canonical[len(c.canonical)-1] }

// Blocks returns the canonical blocks; the index is the number.
func (c *Chain) Blocks() []*Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Block(nil), c.canonical...)
}

// Mine adds a block with these transactions, BlockSeconds after the head.
func (c *Chain) Mine(txs ...Tx) *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(c.head().Time+BlockSeconds, txs)
}

// MineAt is Mine with a block time, in Unix seconds.
func (c *Chain) MineAt(time int64, txs ...Tx) *Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine(time, txs)
}

// MineEmpty adds n blocks without transactions.
func (c *Chain) MineEmpty(n int) {
	for range n {
		c.Mine()
	}
}

// Fork removes the newest n blocks from the canonical chain. Blocks that are mined next replace them; until there are
// as many, the chain is shorter than before. Orphaned blocks can still be requested by hash.
func (c *Chain) Fork(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n >= len(c.canonical) {
		panic(fmt.Sprintf("chaintest: fork of %d blocks, but the chain has only %d above block 0", n, len(c.canonical)-1))
	}
	for _, b := range c.canonical[len(c.canonical)-n:] {
		for _, tx := range b.Txs {
			delete(c.txs, tx.Hash)
		}
	}
	c.canonical = c.canonical[:len(c.canonical)-n]
}

// IsAncestor reports whether a block is another one or an ancestor of it.
func (c *Chain) IsAncestor(b, of *Block) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for of != nil && of.Number > b.Number {
		of = c.byHash[of.Parent]
	}
	return of == b
}

// Tag sets the height of a tag, such as safe. Nodes do not know a tag that was not set.
func (c *Chain) Tag(tag string, number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tags[tag] = number
}

func (c *Chain) mine(time int64, txs []Tx) *Block {
	b := &Block{Number: uint64(len(c.canonical)), Time: time, Txs: txs}
	if b.Number > 0 {
		b.Parent = c.head().Hash
	}
	c.mined++
	b.Hash = crypto.Keccak256Hash(b.Parent[:], binary.BigEndian.AppendUint64(nil, c.ID), binary.BigEndian.AppendUint64(nil, c.mined))
	for i, tx := range txs {
		c.txs[tx.Hash] = place{b, i}
		for _, l := range tx.Logs {
			b.bloom.Add(l.Address[:])
			for _, topic := range l.Topics {
				b.bloom.Add(topic[:])
			}
			b.logs = append(b.logs, types.Log{
				Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: b.Number, BlockHash: b.Hash,
				BlockTimestamp: uint64(b.Time), TxHash: tx.Hash, TxIndex: uint(i), Index: uint(len(b.logs)),
			})
		}
	}
	c.canonical = append(c.canonical, b)
	c.byHash[b.Hash] = b
	return b
}

// place is the position of a transaction: its block, and its index there.
type place struct {
	block *Block
	index int
}
