package devchain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/legacypool"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/leveldb"
	"github.com/ethereum/go-ethereum/log"
	"github.com/ethereum/go-ethereum/miner"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gofrs/flock"
)

const (
	// chainFolder is the folder of the chain in the data folder, with lockFile and the folder of the database.
	chainFolder    = "chain"
	lockFile       = "LOCK"
	databaseFolder = "chaindata"
	// databaseMiB, the least that geth accepts, and trieMiB are the sizes of the caches, in MiB.
	databaseMiB = 16
	trieMiB     = 8
	// databaseFiles is the maximum number of open files of the database.
	databaseFiles = 64
)

// accountEther is the initial balance of each account, in ether.
const accountEther = 1_000_000

// node is go-ethereum's block chain with its transaction pool and its builder of blocks. JSON-RPC is above it.
type node struct {
	db     ethdb.Database
	blocks *core.BlockChain
	pool   *txpool.TxPool
	miner  *miner.Miner
}

// lockFolder creates the chain's folder in a data folder and locks it. For an empty name it returns nil.
func lockFolder(folder string) (*flock.Flock, error) {
	if folder == "" {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Join(folder, chainFolder), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(folder, chainFolder, lockFile))
	locked, err := lock.TryLock()
	if err == nil && !locked {
		err = fmt.Errorf("%s is in use by another process; stop it or choose another folder", folder)
	}
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// openNode opens the chain in a data folder, which must be locked, or in memory for an empty name.
func openNode(folder string, keys Keys) (*node, error) {
	n := new(node)
	if folder == "" {
		n.db = rawdb.NewMemoryDatabase()
	} else {
		store, err := leveldb.New(filepath.Join(folder, chainFolder, databaseFolder), databaseMiB, databaseFiles, "", false)
		if err != nil {
			return nil, err
		}
		n.db = rawdb.NewDatabase(store)
	}
	if err := n.start(keys); err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

// start starts the block chain, the pool and the builder on the database.
func (n *node) start(keys Keys) (err error) {
	engine := beacon.New(ethash.NewFaker())
	n.blocks, err = core.NewBlockChain(n.db, genesis(keys), engine, &core.BlockChainConfig{
		TrieCleanLimit:     trieMiB,
		StateScheme:        rawdb.HashScheme,
		ArchiveMode:        true, // a block's state is stored with the block
		TxLookupLimit:      -1,   // each block adds its transactions to the index
		SlowBlockThreshold: -1,
	})
	if err != nil {
		return err
	}
	conf := legacypool.DefaultConfig
	conf.NoLocals = true
	conf.Journal = ""
	n.pool, err = txpool.New(conf.PriceLimit, n.blocks, []txpool.SubPool{legacypool.New(conf, n.blocks)})
	if err != nil {
		return err
	}
	mining := miner.DefaultConfig
	mining.GasPrice = new(big.Int).SetUint64(conf.PriceLimit) // equal to the pool's, or it accepts transactions that are never mined
	n.miner = miner.New(n, mining, engine)
	return nil
}

// BlockChain implements miner.Backend.
func (n *node) BlockChain() *core.BlockChain { return n.blocks }

// TxPool implements miner.Backend.
func (n *node) TxPool() *txpool.TxPool { return n.pool }

// close stops what has been started.
func (n *node) close() error {
	var err error
	if n.pool != nil {
		err = n.pool.Close()
	}
	if n.blocks != nil {
		n.blocks.Stop()
	}
	return errors.Join(err, n.db.Close())
}

// header returns a block's header. It is nil if the chain does not have the block.
func (n *node) header(at rpc.BlockNumberOrHash) (*types.Header, error) {
	if hash, ok := at.Hash(); ok {
		header := n.blocks.GetHeaderByHash(hash)
		if header != nil && at.RequireCanonical && n.blocks.GetCanonicalHash(header.Number.Uint64()) != hash {
			return nil, fmt.Errorf("block %s is not canonical", hash)
		}
		return header, nil
	}
	number, ok := at.Number()
	if !ok {
		return nil, errors.New("neither the number nor the hash of a block was given")
	}
	switch number {
	case rpc.PendingBlockNumber:
		block, _, err := n.pending()
		if err != nil {
			return nil, err
		}
		return block.Header(), nil
	case rpc.LatestBlockNumber:
		return n.blocks.CurrentBlock(), nil
	case rpc.SafeBlockNumber:
		return n.blocks.CurrentSafeBlock(), nil
	case rpc.FinalizedBlockNumber:
		return n.blocks.CurrentFinalBlock(), nil
	case rpc.EarliestBlockNumber:
		return n.blocks.Genesis().Header(), nil
	}
	return n.blocks.GetHeaderByNumber(uint64(number)), nil
}

// block returns a block. It is nil if the chain does not have it.
func (n *node) block(at rpc.BlockNumberOrHash) (*types.Block, error) {
	if isPending(at) {
		block, _, err := n.pending()
		return block, err
	}
	header, err := n.header(at)
	if header == nil || err != nil {
		return nil, err
	}
	return n.blocks.GetBlock(header.Hash(), header.Number.Uint64()), nil
}

// errNoPending is the error for the block that is pending while geth cannot build it.
var errNoPending = errors.New("there is no pending block")

// pending returns the pending block and the state after it.
func (n *node) pending() (*types.Block, *state.StateDB, error) {
	block, _, after := n.miner.Pending()
	if block == nil || after == nil {
		return nil, nil, errNoPending
	}
	return block, after, nil
}

func isPending(at rpc.BlockNumberOrHash) bool {
	number, ok := at.Number()
	return ok && number == rpc.PendingBlockNumber
}

// stateAt returns the state after a block, which the caller may change, and the block's header.
func (n *node) stateAt(at rpc.BlockNumberOrHash) (*state.StateDB, *types.Header, error) {
	if isPending(at) {
		block, after, err := n.pending()
		if err != nil {
			return nil, nil, err
		}
		return after, block.Header(), nil
	}
	header, err := n.header(at)
	if err == nil && header == nil {
		err = errors.New("header not found")
	}
	if err != nil {
		return nil, nil, err
	}
	after, err := n.blocks.StateAt(header.Root, header.Number, header.Time)
	return after, header, err
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
		GasLimit:   miner.DefaultConfig.GasCeil,
		BaseFee:    big.NewInt(params.InitialBaseFee),
		Difficulty: common.Big0,
		Alloc:      alloc,
	}
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
