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

// FinalityDepth is the depth of the block with the tags safe and finalized.
const FinalityDepth uint64 = 2

// maxAhead is how far the timestamp of a periodically sealed block may be ahead of the clock.
const maxAhead = 2 * time.Second

// Seal adds one block with the pool's transactions. Its timestamp is the clock's, or one second after the parent's if
// that is later.
func (c *Chain) Seal(ctx context.Context) error {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	return c.sealNow(ctx)
}

// SealAt adds one block with the pool's transactions and the given timestamp, in whole seconds. It fails if the
// timestamp is not after the parent's.
func (c *Chain) SealAt(ctx context.Context, at time.Time) error {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	parent := c.head()
	if at.Unix() <= int64(parent.Time) {
		return fmt.Errorf("seal a block at %d: want a time after its parent's, %d", at.Unix(), parent.Time)
	}
	return c.sealOnHead(ctx, uint64(at.Unix()))
}

// Fork replaces the chain's last depth blocks by blocks with exactly the given transactions. The head changes once, as
// in a reorg of a public network. Without blocks, the head moves back.
//
// Transactions of the replaced blocks that are still valid return to the pool. DropPending drops them.
func (c *Chain) Fork(ctx context.Context, depth uint64, blocks ...[]*types.Transaction) error {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	return c.fork(ctx, depth, blocks)
}

// fork is Fork; the caller holds headAndPool.
func (c *Chain) fork(ctx context.Context, depth uint64, blocks [][]*types.Transaction) error {
	head := c.head().Number.Uint64()
	if depth > head {
		return fmt.Errorf("fork %d blocks deep: the chain has %d", depth, head)
	}
	parent := c.node.blocks.GetBlockByNumber(head - depth)
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
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	c.node.pool.Clear()
}

// sealPeriodically calls sealOnTime every BlockTime until ctx ends.
func (c *Chain) sealPeriodically(ctx context.Context) {
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

// sealOnTime seals a block if the clock is past the head's timestamp. While transactions are not final, timestamps may
// be up to maxAhead ahead of the clock, so that payments become final soon with a BlockTime below a second.
func (c *Chain) sealOnTime(ctx context.Context) error {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	if time.Now().Before(c.heldUntil) {
		return nil
	}
	latest := c.conf.Now()
	if c.hasUnfinalTxs() {
		latest = latest.Add(maxAhead)
	}
	if int64(c.head().Time) >= latest.Unix() {
		return nil
	}
	return c.sealNow(ctx)
}

// hasUnfinalTxs reports whether transactions are pending, or mined in a block that is not final.
func (c *Chain) hasUnfinalTxs() bool {
	if pending, _ := c.node.pool.Stats(); pending > 0 {
		return true
	}
	chain, head := c.node.blocks, c.head().Number.Uint64()
	for above := range min(FinalityDepth, head) {
		if len(chain.GetBlockByNumber(head-above).Transactions()) > 0 {
			return true
		}
	}
	return false
}

func (c *Chain) sealNow(ctx context.Context) error {
	return c.sealOnHead(ctx, c.nextTime(c.head()))
}

// sealOnHead seals a block on the head, once the pool has processed the head.
func (c *Chain) sealOnHead(ctx context.Context, timestamp uint64) error {
	if err := c.node.pool.Sync(); err != nil {
		return fmt.Errorf("seal a block: wait for the pool: %w", err)
	}
	block, err := c.build(ctx, c.head(), timestamp, nil, false)
	if err != nil {
		return err
	}
	return c.adopt(block)
}

// build builds a block and stores it without making it the head. If txs is empty and empty is not set, the block has
// the pool's transactions.
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
	// Randomness makes blocks with equal content differ, so that a fork differs from the replaced blocks.
	if _, err := io.ReadFull(c.conf.Rand, args.Random[:]); err != nil {
		return nil, fmt.Errorf("seal a block: %w", err)
	}
	block, _, err := c.node.miner.BuildTestingPayload(args, txs, empty, nil)
	if err != nil {
		return nil, fmt.Errorf("build block %d: %w", parent.Number.Uint64()+1, err)
	}
	if _, err := c.node.blocks.InsertBlockWithoutSetHead(ctx, block, false); err != nil {
		return nil, fmt.Errorf("insert block %d: %w", block.NumberU64(), err)
	}
	return block, nil
}

// adopt makes a stored block the head, updates the tags safe and finalized, and waits until the pool has processed the
// head.
func (c *Chain) adopt(block *types.Block) error {
	chain := c.node.blocks
	if _, err := chain.SetCanonical(block); err != nil {
		return fmt.Errorf("make block %d the head: %w", block.NumberU64(), err)
	}
	final := chain.GetHeaderByNumber(block.NumberU64() - min(FinalityDepth, block.NumberU64()))
	chain.SetFinalized(final)
	chain.SetSafe(final)
	if err := c.node.pool.Sync(); err != nil {
		return fmt.Errorf("update the pool to block %d: %w", block.NumberU64(), err)
	}
	return nil
}

func (c *Chain) head() *types.Header {
	return c.node.blocks.CurrentBlock()
}

func (c *Chain) nextTime(parent *types.Header) uint64 {
	return max(parent.Time+1, uint64(c.conf.Now().Unix()))
}
