package devchain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/log"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/p2p"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	// chainFolder is the node's folder in the data folder, and databaseFolder its database in that folder.
	chainFolder    = "chain"
	databaseFolder = "chaindata" // set by geth, as is peersFolder
	// peersFolder is the database of peers, which is not used.
	peersFolder = "nodes"
	// databaseMiB, the least that geth accepts, and trieMiB are the sizes of the node's caches, in MiB.
	databaseMiB = 16
	trieMiB     = 8
	// databaseFiles is the maximum number of open files of the node's database.
	databaseFiles = 64
)

// accountEther is the initial balance of each account, in ether.
const accountEther = 1_000_000

// openNode creates geth's node, without peers and without a chain, and locks the data folder.
func openNode(ctx context.Context, conf Config) (*node.Node, error) {
	host, port, err := splitAddr(conf.RPCAddr)
	if err != nil {
		return nil, err
	}
	if err := checkFree(ctx, conf.RPCAddr); err != nil {
		return nil, err
	}
	log.SetDefault(gethLogger(conf.Logger))

	nodeKey, err := newKey(conf.Rand) // given here so that geth does not store one
	if err != nil {
		return nil, err
	}
	modules := []string{"eth", "net", "web3", "txpool"}
	stack, err := node.New(&node.Config{
		Name:        chainFolder,
		DataDir:     conf.DataDir,
		DBEngine:    rawdb.DBLeveldb,
		P2P:         p2p.Config{NoDiscovery: true, NoDial: true, PrivateKey: nodeKey},
		HTTPHost:    host,
		HTTPPort:    port,
		HTTPModules: modules,
		WSHost:      host,
		WSPort:      port,
		WSModules:   modules,
		Logger:      log.Root(),

		HTTPTimeouts:         rpc.DefaultHTTPTimeouts,
		HTTPVirtualHosts:     node.DefaultConfig.HTTPVirtualHosts,
		BatchRequestLimit:    node.DefaultConfig.BatchRequestLimit,
		BatchResponseMaxSize: node.DefaultConfig.BatchResponseMaxSize,
	})
	if errors.Is(err, node.ErrDatadirUsed) {
		return nil, fmt.Errorf("%s is in use by another process; stop it or choose another folder", conf.DataDir)
	}
	return stack, err
}

// startEth adds the chain to the node and opens the RPC port.
func startEth(stack *node.Node, keys Keys) (*eth.Ethereum, error) {
	conf := ethconfig.Defaults
	conf.Genesis = genesis(keys)
	conf.SyncMode = ethconfig.FullSync
	conf.NoPruning = true // the state is as durable as its block
	conf.StateScheme = rawdb.HashScheme
	conf.TransactionHistory = 0 // index all
	conf.LogNoHistory = true    // search logs by block blooms
	conf.DatabaseCache = databaseMiB
	conf.DatabaseHandles = databaseFiles
	conf.TrieCleanCache = trieMiB
	conf.TrieDirtyCache = 0
	conf.SnapshotCache = 0
	conf.EngineMaxReorgDepth = 0
	conf.Miner.GasPrice = new(big.Int).SetUint64(conf.TxPool.PriceLimit) // equal to the pool's, or it accepts transactions that are never mined
	conf.TxPool.NoLocals = true
	conf.TxPool.Journal = ""
	conf.BlobPool.Datadir = "" // blobs are not used
	backend, err := eth.New(stack, &conf)
	if err != nil {
		return nil, err
	}
	filterSystem := filters.NewFilterSystem(backend.APIBackend, filters.Config{LogQueryLimit: conf.LogQueryLimit})
	stack.RegisterAPIs([]rpc.API{{Namespace: "eth", Service: filters.NewFilterAPI(filterSystem)}})
	if err := stack.Start(); err != nil {
		return nil, err
	}
	backend.SetSynced()
	return backend, nil
}

// genesis returns the genesis block, with ether for every account. It depends only on the keys, so a restart finds the
// same block.
func genesis(keys Keys) *core.Genesis {
	config := *params.AllDevChainProtocolChanges
	config.BogotaTime = nil // not active on public chains, and raises the gas cost of storage
	alloc := core.SystemContractAllocs()
	for _, key := range keys.all() {
		alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{
			Balance: new(big.Int).Mul(big.NewInt(accountEther), big.NewInt(params.Ether)),
		}
	}
	return &core.Genesis{
		Config:     &config,
		GasLimit:   ethconfig.Defaults.Miner.GasCeil,
		BaseFee:    big.NewInt(params.InitialBaseFee),
		Difficulty: common.Big0,
		Alloc:      alloc,
	}
}

// checkFree fails if the address is in use. geth would fail only after it has started other services.
func checkFree(ctx context.Context, addr string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("RPC address %s cannot be used: %w; stop what listens there or choose another", addr, err)
	}
	return listener.Close()
}

// closeNode closes a node, which may be closed already because its start failed.
func closeNode(stack *node.Node) error {
	if err := stack.Close(); !errors.Is(err, node.ErrNodeStopped) {
		return err
	}
	return nil
}

func splitAddr(addr string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("RPC address %q: %w; want IP:PORT", addr, err)
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || net.ParseIP(host) == nil {
		return "", 0, fmt.Errorf("RPC address %q: want an IP address and a port, such as 127.0.0.1:8545", addr)
	}
	return host, int(number), nil
}

// gethLogger returns a geth logger that logs geth's errors as errors and its warnings, which include rejected requests,
// at debug level. Other lines are dropped. The wrapper is needed because SetDefault would replace the process's default
// slog logger by a plain geth logger.
func gethLogger(to *slog.Logger) log.Logger {
	return struct{ log.Logger }{log.NewLogger(demotingHandler{to.With("component", "geth").Handler()})}
}

type demotingHandler struct{ slog.Handler }

func demotedLevel(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return slog.LevelError
	}
	return slog.LevelDebug
}

func (h demotingHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, demotedLevel(level))
}

func (h demotingHandler) Handle(ctx context.Context, record slog.Record) error {
	record.Level = demotedLevel(record.Level)
	return h.Handler.Handle(ctx, record)
}

func (h demotingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return demotingHandler{h.Handler.WithAttrs(attrs)}
}

func (h demotingHandler) WithGroup(name string) slog.Handler {
	return demotingHandler{h.Handler.WithGroup(name)}
}
