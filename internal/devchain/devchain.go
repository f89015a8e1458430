// Package devchain runs a real Ethereum chain inside the process, for development, the demo and tests.
//
// It is go-ethereum's own node (packages node and eth) without peers: the same virtual machine, transaction pool and
// JSON-RPC over HTTP and WebSocket that a public node has. In the consensus client's place stands Seal, which has the
// node's miner build a block, inserts it and makes it the head; so blocks come when they are asked for, at the time
// that is asked for, and on whichever parent.
//
// The first start makes keys and deploys a token and an invoice registry. With a data folder, all of it is there again
// after a restart, and so is every sealed block, though the process were killed: the node runs as an archive, so a
// block's state is written with the block, into a LevelDB that hands each write to the operating system before it goes
// on. (geth's default database keeps the last writes in the process for a while.) Only a failing machine can lose
// blocks.
package devchain

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/node"
)

// ChainID is the EIP-155 id of every development chain.
const ChainID uint64 = 1337

// closeTimeout bounds how long Close waits for the node.
const closeTimeout = 15 * time.Second

// Config says how to run a chain. The zero value is a chain in memory that seals on demand only.
type Config struct {
	// DataDir holds the chain and its keys, and is made when it is missing. Empty keeps all in memory.
	DataDir string
	// BlockTime is the time between blocks; 0 seals on demand only. Blocks carry whole seconds and each is younger
	// than its parent, so with a BlockTime below a second there is one block a second all the same, but for short
	// bursts: while transactions wait, or are not final yet, blocks may be dated up to two seconds ahead of the clock.
	BlockTime time.Duration
	// RPCAddr is the IP address and port of JSON-RPC, both HTTP and WebSocket; empty means 127.0.0.1:0, a free port.
	RPCAddr string
	// Logger receives the node's warnings and errors; nil discards them. geth logs through one logger for the whole
	// process, so with several chains the last one started receives what they all say.
	Logger *slog.Logger
	// Now is the clock that dates blocks; nil means time.Now.
	Now func() time.Time
	// Rand makes keys and block randomness; nil means crypto/rand.
	Rand io.Reader
}

// Chain is a running chain. Its methods may be called at the same time.
type Chain struct {
	// Token is the test USDC: 6 decimals, EIP-2612 and EIP-3009 as Circle has them.
	Token common.Address
	// Registry is the invoice registry that Keys.Operator operates.
	Registry common.Address
	// Keys are the accounts that the chain begins with.
	Keys Keys

	conf   Config
	node   *node.Node
	eth    *eth.Ethereum
	client *ethclient.Client

	// turn is held from choosing a parent until its child is the head and the pool knows, and from choosing a nonce
	// until the pool has it. They exclude each other: geth's pool, when told of a new head, judges what has just been
	// added before it removes what was mined, leaves it aside, and then answers with a nonce that is taken.
	turn sync.Mutex

	stop    context.CancelFunc
	stopped chan struct{} // closed when the periodic sealer has returned
	closing sync.Once
	closed  error
}

// Start runs a chain. On the first start in a data folder it deploys the contracts; a start that was killed half-way
// is finished by the next. ctx bounds starting only.
//
// It fails when the folder is in use, when the port is taken, or when the folder holds a chain without its keys.
func Start(ctx context.Context, conf Config) (*Chain, error) {
	if conf.RPCAddr == "" {
		conf.RPCAddr = "127.0.0.1:0"
	}
	if conf.Logger == nil {
		conf.Logger = slog.New(slog.DiscardHandler)
	}
	if conf.Now == nil {
		conf.Now = time.Now
	}
	if conf.Rand == nil {
		conf.Rand = rand.Reader
	}
	stack, err := openNode(ctx, conf)
	if err != nil {
		return nil, fmt.Errorf("open the development chain: %w", err)
	}
	// From here on this process alone uses the folder.
	c, err := startWorld(ctx, conf, stack)
	if err != nil {
		return nil, fmt.Errorf("start the development chain: %w", errors.Join(err, closeNode(stack)))
	}
	running, stop := context.WithCancel(context.Background())
	c.stop = stop
	go c.sealPeriodically(running)
	return c, nil
}

// Close stops sealing and shuts the node down. It waits 15 s at most, and says so when that was not enough. Further
// calls return what the first returned.
func (c *Chain) Close() error {
	c.closing.Do(func() {
		if c.stop != nil {
			c.stop()
		}
		<-c.stopped
		c.client.Close()
		done := make(chan error, 1)
		go func() { done <- c.node.Close() }()
		timeout := time.NewTimer(closeTimeout)
		defer timeout.Stop()
		select {
		case c.closed = <-done:
		case <-timeout.C:
			c.closed = fmt.Errorf("the development chain did not stop within %s", closeTimeout)
		}
	})
	return c.closed
}

// ChainID returns the chain's EIP-155 id.
func (c *Chain) ChainID() *big.Int { return new(big.Int).SetUint64(ChainID) }

// RPCURL returns the http:// address of JSON-RPC.
func (c *Chain) RPCURL() string { return c.node.HTTPEndpoint() }

// WSURL returns the ws:// address of JSON-RPC.
func (c *Chain) WSURL() string { return c.node.WSEndpoint() }

// Client returns a client that reaches the node inside the process. It is closed with the chain.
func (c *Chain) Client() *ethclient.Client { return c.client }
