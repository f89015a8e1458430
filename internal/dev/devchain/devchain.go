// Package devchain runs a real Ethereum chain inside the process, for development, the demo and tests.
//
// It is go-ethereum's virtual machine, block chain, transaction pool and miner without its node (packages node and eth),
// which takes long to compile. JSON-RPC over HTTP is go-ethereum's server with methods of this package.
// Seal replaces the consensus client: it makes the miner build a block on a given parent with a given timestamp, inserts
// the block and makes it the head.
//
// The first start generates keys and deploys a token and an invoice registry. With a data folder, a killed process
// loses no sealed block: each block's state is written with the block, and LevelDB passes each write to the operating
// system.
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
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/log"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gofrs/flock"
)

// ChainID is the EIP-155 id of every development chain.
const ChainID uint64 = 1337

// closeTimeout bounds how long Close waits for the node.
const closeTimeout = 15 * time.Second

// Config is the configuration of a chain. The zero value is a chain in memory that seals only on demand.
type Config struct {
	// DataDir is the folder of the chain and its keys. It is created if missing. Empty means in memory.
	DataDir string
	// BlockTime is the time between blocks; 0 means only on demand. Timestamps are whole seconds and increase, so a
	// BlockTime below a second gives one block per second on average. While transactions are pending or not final,
	// timestamps may be up to two seconds ahead of the clock.
	BlockTime time.Duration
	// RPCAddr is the IP address and port of JSON-RPC; empty means 127.0.0.1:0, a free port.
	RPCAddr string
	// Logger receives the chain's warnings and errors; nil discards them. geth has one logger per process, so with
	// several chains the logger of the last one started receives the lines of all chains.
	Logger *slog.Logger
	// Now is the clock of block timestamps; nil means time.Now.
	Now func() time.Time
	// Rand is the source of keys and block randomness; nil means crypto/rand.
	Rand io.Reader
}

// Chain is a running chain. It is safe for concurrent use.
type Chain struct {
	// Token is the test USDC: 6 decimals, with EIP-2612 and EIP-3009 as in Circle's contract.
	Token common.Address
	// Registry is the invoice registry, operated by Keys.Operator.
	Registry common.Address
	// DepositFactory deploys and sweeps deposit addresses.
	DepositFactory common.Address
	// AuthorizationRelay submits several signed authorizations at once.
	AuthorizationRelay common.Address
	// Keys are the accounts of the genesis block.
	Keys Keys

	conf    Config
	lock    *flock.Flock // of the data folder; nil in memory
	node    *node
	methods *rpc.Server // of client and port
	client  *ethclient.Client
	port    *rpcPort

	// headAndPool is held while a block is built and adopted by the pool, and while a transaction is given a nonce and
	// added to the pool. The two must exclude each other: on a new head, geth's pool validates added transactions
	// before it removes mined ones, and then returns a nonce that is already used.
	headAndPool sync.Mutex
	heldUntil   time.Time // no periodic sealing before this time of the runtime's clock; guarded by headAndPool

	refusing sync.Mutex // held while the JSON-RPC port is closed

	running    context.Context // ends when Close begins
	stop       context.CancelFunc
	background sync.WaitGroup // of the periodic sealer and of Refuse
	closing    sync.Once
	closed     error
}

// Start starts a chain. The first start in a data folder deploys the contracts; the next start completes one that was
// killed. ctx bounds only the start.
//
// It fails if the folder or the port is in use, or if the folder holds a chain without its keys.
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
	log.SetDefault(gethLogger(conf.Logger))
	listener, err := listen(ctx, conf.RPCAddr)
	if err != nil {
		return nil, fmt.Errorf("open the development chain: %w", err)
	}
	c := &Chain{conf: conf, port: &rpcPort{addr: listener.Addr().String(), logger: conf.Logger}}
	c.running, c.stop = context.WithCancel(context.Background())
	if err := c.open(ctx); err != nil {
		return nil, fmt.Errorf("start the development chain: %w", errors.Join(err, c.shutDown(), listener.Close()))
	}
	c.port.serve(listener)
	c.background.Go(func() { c.sealPeriodically(c.running) })
	return c, nil
}

// open opens the chain and completes its world. JSON-RPC is not served yet.
func (c *Chain) open(ctx context.Context) (err error) {
	if c.lock, err = lockFolder(c.conf.DataDir); err != nil {
		return err
	}
	if c.Keys, err = loadKeys(c.conf.DataDir, c.conf.Rand); err != nil {
		return err
	}
	complete, err := removeIncomplete(c.conf.DataDir)
	if err != nil {
		return err
	}
	if c.node, err = openNode(c.conf.DataDir, c.Keys); err != nil {
		return err
	}
	if c.methods, err = newRPCServer(newAPIs(c.node)); err != nil {
		return err
	}
	c.port.methods = c.methods
	c.client = ethclient.NewClient(rpc.DialInProc(c.methods))
	return c.completeWorld(ctx, complete)
}

// shutDown closes what is open, JSON-RPC first.
func (c *Chain) shutDown() error {
	c.stop()
	c.background.Wait()
	err := c.port.close()
	if c.client != nil {
		c.client.Close()
		c.methods.Stop()
	}
	if c.node != nil {
		err = errors.Join(err, c.node.close())
	}
	if c.lock != nil {
		err = errors.Join(err, c.lock.Unlock())
	}
	return err
}

// Close stops sealing and shuts the chain down. It fails if that takes longer than 15 s. Further calls return the
// result of the first.
func (c *Chain) Close() error {
	c.closing.Do(func() {
		done := make(chan error, 1)
		go func() { done <- c.shutDown() }()
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

// RPCURL returns the http:// URL of JSON-RPC.
func (c *Chain) RPCURL() string { return "http://" + c.port.addr }

// Client returns an in-process client of JSON-RPC. It is closed with the chain.
func (c *Chain) Client() *ethclient.Client { return c.client }
