package devchain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/clock"
)

// reopenPause is the pause between two attempts to reopen the JSON-RPC port.
const reopenPause = 100 * time.Millisecond

// ErrRefusing is the error of Refuse if the node already refuses requests.
var ErrRefusing = errors.New("the node refuses requests already")

// Hold stops periodic sealing for a time, counted from now; 0 resumes it. Seal and Reorg still seal.
func (c *Chain) Hold(d time.Duration) {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	c.heldUntil = time.Now().Add(d)
}

// Reorg replaces the chain's last depth blocks by depth+1 empty blocks. The transactions of the replaced blocks return
// to the pool, and are sealed again by the next block. With drop they and the pool's other transactions are dropped.
func (c *Chain) Reorg(ctx context.Context, depth uint64, drop bool) error {
	c.headAndPool.Lock()
	defer c.headAndPool.Unlock()
	if err := c.fork(ctx, depth, make([][]*types.Transaction, depth+1)); err != nil {
		return err
	}
	if drop {
		c.node.pool.Clear()
	}
	return nil
}

// Refuse closes the JSON-RPC port and its connections, and reopens it after d. It returns when the port is closed, and
// fails with ErrRefusing if it is closed already.
func (c *Chain) Refuse(d time.Duration) error {
	if !c.refusing.TryLock() {
		return ErrRefusing
	}
	if err := c.port.close(); err != nil {
		c.refusing.Unlock()
		return fmt.Errorf("close the node's port: %w", err)
	}
	c.background.Go(func() {
		defer c.refusing.Unlock()
		if clock.Sleep(c.running, d, nil) {
			c.reopen()
		}
	})
	return nil
}

// reopen reopens the JSON-RPC port. Another program, or a client's outgoing connection, may have taken the port in
// between, so it retries until the port is free or the chain is closed.
func (c *Chain) reopen() {
	for tries := 0; ; tries++ {
		listener, err := listen(c.running, c.port.addr)
		if err == nil {
			c.port.serve(listener)
			return
		}
		if tries == 0 {
			c.conf.Logger.Warn("development chain: the port of JSON-RPC was not opened again, will retry", "err", err)
		}
		if !clock.Sleep(c.running, reopenPause, nil) {
			return
		}
	}
}
