package devchain

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/miner"
)

// finalityDepth is how many blocks stand above the one that the safe and finalized tags name.
const finalityDepth uint64 = 2

// maxAhead is how far ahead of the clock a block that is sealed periodically may be dated.
const maxAhead = 2 * time.Second

// Seal adds one block with what the pool holds. Its timestamp is the clock's, or one second after the parent's when
// the clock has not got past that.
func (c *Chain) Seal(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.sealNow(ctx)
}

// SealAt adds one block with what the pool holds and with this very timestamp, in whole seconds. It fails when that is
// not after the parent's. A later Seal carries on from there.
func (c *Chain) SealAt(ctx context.Context, at time.Time) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	parent := c.head()
	if at.Unix() <= int64(parent.Time) {
		return fmt.Errorf("seal a block at %d: want a time after its parent's, %d", at.Unix(), parent.Time)
	}
	return c.sealOnHead(ctx, uint64(at.Unix()))
}

// Fork replaces the chain's last depth blocks. Each of the blocks given holds exactly the transactions listed for it;
// together they become the chain in one switch, as on a public network. With no blocks the head steps back.
//
// What the replaced blocks held goes back to the pool, if it is still valid, and would come with the next Seal:
// DropPending prevents that.
func (c *Chain) Fork(ctx context.Context, depth uint64, blocks ...[]*types.Transaction) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	head := c.head().Number.Uint64()
	if depth > head {
		return fmt.Errorf("fork %d blocks deep: the chain has %d", depth, head)
	}
	parent := c.eth.BlockChain().GetBlockByNumber(head - depth)
	for _, txs := range blocks {
		block, err := c.build(ctx, parent.Header(), c.nextTime(parent.Header()), txs, len(txs) == 0)
		if err != nil {
			return err
		}
		parent = block
	}
	return c.adopt(parent)
}

// DropPending empties the transaction pool.
func (c *Chain) DropPending() {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.eth.TxPool().Clear()
}

// sealPeriodically seals every BlockTime, as Config has it, until ctx ends.
func (c *Chain) sealPeriodically(ctx context.Context) {
	defer close(c.stopped)
	if c.conf.BlockTime <= 0 {
		return
	}
	ticker := time.NewTicker(c.conf.BlockTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := c.sealOnTime(ctx); err != nil && ctx.Err() == nil {
			c.conf.Logger.Error("development chain: no block sealed; trying again", "err", err)
		}
	}
}

// sealOnTime seals when the clock has got past the head. While money moves it may also date blocks maxAhead ahead of the
// clock, so that a payment is soon final also where the ticks come faster than the seconds.
func (c *Chain) sealOnTime(ctx context.Context) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	latest := c.conf.Now()
	if c.moneyMoves() {
		latest = latest.Add(maxAhead)
	}
	if int64(c.head().Time) >= latest.Unix() {
		return nil
	}
	return c.sealNow(ctx)
}

// moneyMoves reports whether transactions wait for a block, or are in one that is not final yet.
func (c *Chain) moneyMoves() bool {
	if pending, _ := c.eth.TxPool().Stats(); pending > 0 {
		return true
	}
	chain, head := c.eth.BlockChain(), c.head().Number.Uint64()
	for above := range min(finalityDepth, head) {
		if len(chain.GetBlockByNumber(head-above).Transactions()) > 0 {
			return true
		}
	}
	return false
}

func (c *Chain) sealNow(ctx context.Context) error {
	return c.sealOnHead(ctx, c.nextTime(c.head()))
}

// sealOnHead waits until the pool has caught up with the head, so that it neither offers what is mined already nor
// holds back what has just become valid.
func (c *Chain) sealOnHead(ctx context.Context, timestamp uint64) error {
	if err := c.eth.TxPool().Sync(); err != nil {
		return fmt.Errorf("seal a block: wait for the pool: %w", err)
	}
	block, err := c.build(ctx, c.head(), timestamp, nil, false)
	if err != nil {
		return err
	}
	return c.adopt(block)
}

// build makes a block and stores it beside the chain. Without txs and unless empty, it takes what the pool holds.
func (c *Chain) build(
	ctx context.Context, parent *types.Header, timestamp uint64, txs []*types.Transaction, empty bool,
) (*types.Block, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("seal a block: %w", err)
	}
	args := &miner.BuildPayloadArgs{
		Parent:       parent.Hash(),
		Timestamp:    timestamp,
		FeeRecipient: Address(c.Keys.Deployer),
		BeaconRoot:   new(common.Hash),
	}
	// Randomness sets blocks of equal content apart, so that a fork differs from what it replaces.
	if _, err := io.ReadFull(c.conf.Rand, args.Random[:]); err != nil {
		return nil, fmt.Errorf("seal a block: %w", err)
	}
	block, _, err := c.eth.Miner().BuildTestingPayload(args, txs, empty, nil)
	if err != nil {
		return nil, fmt.Errorf("build block %d: %w", parent.Number.Uint64()+1, err)
	}
	if _, err := c.eth.BlockChain().InsertBlockWithoutSetHead(ctx, block, false); err != nil {
		return nil, fmt.Errorf("insert block %d: %w", block.NumberU64(), err)
	}
	return block, nil
}

// adopt makes a stored block the head, moves the safe and finalized tags, and waits until the pool knows.
func (c *Chain) adopt(block *types.Block) error {
	chain := c.eth.BlockChain()
	if _, err := chain.SetCanonical(block); err != nil {
		return fmt.Errorf("make block %d the head: %w", block.NumberU64(), err)
	}
	final := chain.GetHeaderByNumber(block.NumberU64() - min(finalityDepth, block.NumberU64()))
	chain.SetFinalized(final)
	chain.SetSafe(final)
	if err := c.eth.TxPool().Sync(); err != nil {
		return fmt.Errorf("tell the pool of block %d: %w", block.NumberU64(), err)
	}
	return nil
}

func (c *Chain) head() *types.Header {
	return c.eth.BlockChain().CurrentBlock()
}

func (c *Chain) nextTime(parent *types.Header) uint64 {
	return max(parent.Time+1, uint64(c.conf.Now().Unix()))
}
