package indexer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/chain/chaintest"
)

// fastChain is a chain with a block every quarter of a second, on a paced fixture. One block in twenty has a payment.
type fastChain struct {
	*paced
	mu           sync.Mutex
	passed, owed time.Duration
	stopped      bool
}

// pass advances the time, without the fixture's clock.
func (c *fastChain) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	const every = 250 * time.Millisecond
	for c.owed += d; c.owed >= every && !c.stopped; c.owed -= every {
		c.passed += every
		var txs []chaintest.Tx
		if n := c.chain.Head().Number; n%20 == 0 {
			txs = append(txs, chaintest.NewTx(pays(alice, n+1)))
		}
		c.chain.MineAt(chaintest.GenesisTime+1+int64(c.passed/time.Second), txs...)
	}
}

// sleep waits for a node's pace while the chain continues. It fails once the test takes far longer than it should.
func (c *fastChain) sleep(ctx context.Context, d time.Duration) error {
	c.clock.Add(d)
	c.pass(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed > 15*time.Minute {
		return errors.New("the node's pace is too slow to follow the chain")
	}
	return ctx.Err()
}

// TestFollowsFastChainAtNodesWithLimits follows a chain with four blocks a second while an invoice is open, at nodes
// that refuse longer ranges in randomly chosen ways. The indexer does not take a refused range for a rate limit, so the
// newest indexed block stays close to the head.
func TestFollowsFastChainAtNodesWithLimits(t *testing.T) {
	const seconds, mostBehind, mostCalls = 180, 16, 14 // in blocks, and calls a second
	seed := uint64(0)
	for _, blocks := range []int{1, 3, 10} {
		for _, batch := range []int{0, 1} {
			seed++
			t.Run(fmt.Sprintf("range %d, batch %d", blocks, batch), func(t *testing.T) {
				c := &fastChain{paced: newPaced(t, nil)}
				c.awaited.Any = true
				limited := chaintest.NewLimited(t, c.node, chaintest.Allowance{Range: blocks, Batch: batch}, c.clock.Now, seed)
				c.restartAt(t, c.sleep, c.configure, limited.URL)
				behind, began := uint64(0), c.clock.Now()
				calls := c.follow(t, seconds, func(int) {
					behind = max(behind, c.chain.Head().Number-c.tracker.Tip().Number)
					c.pass(time.Second)
				})
				took := c.clock.Now().Sub(began)
				if limits := c.cfg.Pool.Health()[0]; behind > mostBehind || calls > mostCalls*seconds || limits.Pace != 0 {
					t.Errorf("up to %d blocks behind, want %d; %d calls in %s; pace %g", behind, mostBehind, calls, took, limits.Pace)
				}
				if limited.BySize == 0 || c.cfg.Pool.Health()[0].Limits == nil {
					t.Error("no range was refused")
				}
				t.Logf("up to %d blocks behind; %d calls in %s; %d refused; limits %+v", behind, calls, took, limited.BySize, c.cfg.Pool.Health()[0].Limits)
				c.stopped = true
				c.check(t)
			})
		}
	}
}

// TestTriesLongerRangesAgain has a node refuse every range for a while. Some time later the indexer reads blocks
// together again.
func TestTriesLongerRangesAgain(t *testing.T) {
	for _, refused := range []uint64{1, 2} {
		c := &fastChain{paced: newPaced(t, nil)}
		c.awaited.Any = true
		c.follow(t, 20, func(int) { c.pass(time.Second) })
		limit := c.cfg.Pool.Usable()[0].Limit(chain.KindRange)
		for n := uint64(64); n >= refused; n /= 2 {
			limit.Refused(n)
		}
		c.follow(t, 300, func(int) { c.pass(time.Second) })
		if got := limit.Size(); got < 4 {
			t.Errorf("ranges of up to %d were refused: those of %d blocks are read next", refused, got)
		}
	}
}
