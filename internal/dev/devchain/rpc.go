package devchain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/gasprice"
	"github.com/ethereum/go-ethereum/event"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
)

// clientVersion is what web3_clientVersion returns.
const clientVersion = "quittance/devchain"

// Settings of the suggested tip, equal to geth's.
const (
	tipBlocks     = 20
	tipPercentile = 60
	feeHistory    = 1024 // blocks
)

// newAPIs returns the methods of JSON-RPC by their prefix. go-ethereum's rpc package serves each exported method.
func newAPIs(n *node) map[string]any {
	eth := &ethAPI{node: n, fees: gasprice.NewOracle(feeSource{n}, gasprice.Config{
		Blocks: tipBlocks, Percentile: tipPercentile, MaxHeaderHistory: feeHistory, MaxBlockHistory: feeHistory,
		MaxPrice: gasprice.DefaultMaxPrice, IgnorePrice: gasprice.DefaultIgnorePrice,
	}, big.NewInt(1))}
	return map[string]any{"eth": eth, "net": netAPI{}, "web3": web3API{}}
}

// ethAPI has the methods eth_*.
type ethAPI struct {
	node *node
	fees *gasprice.Oracle
}

// latest is the default of a parameter that names a block.
func latest(at *rpc.BlockNumberOrHash) rpc.BlockNumberOrHash {
	if at == nil {
		return rpc.BlockNumberOrHashWithNumber(rpc.LatestBlockNumber)
	}
	return *at
}

// ChainId returns the chain's EIP-155 id.
func (*ethAPI) ChainId() *hexutil.Big { return (*hexutil.Big)(new(big.Int).SetUint64(ChainID)) }

// BlockNumber returns the number of the head.
func (a *ethAPI) BlockNumber() hexutil.Uint64 {
	return hexutil.Uint64(a.node.blocks.CurrentBlock().Number.Uint64())
}

// Syncing returns false.
func (*ethAPI) Syncing() bool { return false }

// Accounts returns an empty list: the node does not sign.
func (*ethAPI) Accounts() []common.Address { return []common.Address{} }

// MaxPriorityFeePerGas suggests a tip.
func (a *ethAPI) MaxPriorityFeePerGas(ctx context.Context) (*hexutil.Big, error) {
	tip, err := a.fees.SuggestTipCap(ctx)
	return (*hexutil.Big)(tip), err
}

// GasPrice suggests a price that includes the base fee.
func (a *ethAPI) GasPrice(ctx context.Context) (*hexutil.Big, error) {
	tip, err := a.fees.SuggestTipCap(ctx)
	if err != nil {
		return nil, err
	}
	return (*hexutil.Big)(tip.Add(tip, a.node.blocks.CurrentBlock().BaseFee)), nil
}

// BlobBaseFee returns the price of blobs at the head.
func (a *ethAPI) BlobBaseFee() *hexutil.Big {
	return (*hexutil.Big)(eip4844.CalcBlobFee(a.node.blocks.Config(), a.node.blocks.CurrentBlock()))
}

// feeHistoryAnswer is the answer of eth_feeHistory.
type feeHistoryAnswer struct {
	OldestBlock      *hexutil.Big     `json:"oldestBlock"`
	Reward           [][]*hexutil.Big `json:"reward,omitempty"`
	BaseFee          []*hexutil.Big   `json:"baseFeePerGas,omitempty"`
	GasUsedRatio     []float64        `json:"gasUsedRatio"`
	BlobBaseFee      []*hexutil.Big   `json:"baseFeePerBlobGas,omitempty"`
	BlobGasUsedRatio []float64        `json:"blobGasUsedRatio,omitempty"`
}

// FeeHistory returns the fees of the newest blocks.
func (a *ethAPI) FeeHistory(
	ctx context.Context, blocks math.HexOrDecimal64, last rpc.BlockNumber, percentiles []float64,
) (*feeHistoryAnswer, error) {
	oldest, rewards, base, used, blobBase, blobUsed, err := a.fees.FeeHistory(ctx, uint64(blocks), last, percentiles)
	if err != nil {
		return nil, err
	}
	answer := &feeHistoryAnswer{
		OldestBlock: (*hexutil.Big)(oldest), BaseFee: quantities(base), GasUsedRatio: used,
		BlobBaseFee: quantities(blobBase), BlobGasUsedRatio: blobUsed,
	}
	for _, row := range rewards {
		answer.Reward = append(answer.Reward, quantities(row))
	}
	return answer, nil
}

func quantities(of []*big.Int) []*hexutil.Big {
	var all []*hexutil.Big
	for _, one := range of {
		all = append(all, (*hexutil.Big)(one))
	}
	return all
}

// GetBalance returns an account's wei.
func (a *ethAPI) GetBalance(of common.Address, at *rpc.BlockNumberOrHash) (*hexutil.Big, error) {
	after, _, err := a.node.stateAt(latest(at))
	if err != nil {
		return nil, err
	}
	return (*hexutil.Big)(after.GetBalance(of).ToBig()), after.Error()
}

// GetCode returns the code of an account.
func (a *ethAPI) GetCode(of common.Address, at *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	after, _, err := a.node.stateAt(latest(at))
	if err != nil {
		return nil, err
	}
	return after.GetCode(of), after.Error()
}

// GetStorageAt returns a word of a contract's storage.
func (a *ethAPI) GetStorageAt(of common.Address, slot string, at *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	key, err := storageKey(slot)
	if err != nil {
		return nil, err
	}
	after, _, err := a.node.stateAt(latest(at))
	if err != nil {
		return nil, err
	}
	word := after.GetState(of, key)
	return word[:], after.Error()
}

// storageKey parses the number of a word in the storage: at most 32 bytes in hex. As in geth, 0x may be missing.
func storageKey(text string) (common.Hash, error) {
	digits := strings.TrimPrefix(strings.ToLower(text), "0x")
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	key, err := hex.DecodeString(digits)
	if err != nil || len(key) > common.HashLength {
		return common.Hash{}, queryError(fmt.Sprintf("the storage slot %.80q is not at most 32 bytes in hex", text))
	}
	return common.BytesToHash(key), nil
}

// GetTransactionCount returns the next nonce of an account. For the pending block it counts the pool's transactions.
func (a *ethAPI) GetTransactionCount(of common.Address, at *rpc.BlockNumberOrHash) (hexutil.Uint64, error) {
	block := latest(at)
	if isPending(block) {
		return hexutil.Uint64(a.node.pool.PoolNonce(of)), nil
	}
	after, _, err := a.node.stateAt(block)
	if err != nil {
		return 0, err
	}
	return hexutil.Uint64(after.GetNonce(of)), after.Error()
}

// SendRawTransaction adds a signed transaction to the pool.
func (a *ethAPI) SendRawTransaction(encoded hexutil.Bytes) (common.Hash, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(encoded); err != nil {
		return common.Hash{}, err
	}
	if !tx.Protected() {
		return common.Hash{}, errors.New("only replay-protected (EIP-155) transactions allowed over RPC")
	}
	return tx.Hash(), a.node.pool.Add([]*types.Transaction{tx}, false)[0]
}

// netAPI has the methods net_*.
type netAPI struct{}

// Version returns the network's id, which equals the chain's.
func (netAPI) Version() string { return strconv.FormatUint(ChainID, 10) }

// Listening returns true, as nodes that accept peers do. Wallets treat false as a fault.
func (netAPI) Listening() bool { return true }

// PeerCount returns 0.
func (netAPI) PeerCount() hexutil.Uint { return 0 }

// web3API has the methods web3_*.
type web3API struct{}

// ClientVersion names the program.
func (web3API) ClientVersion() string { return clientVersion }

// Sha3 returns the Keccak-256 hash of bytes.
func (web3API) Sha3(of hexutil.Bytes) hexutil.Bytes { return crypto.Keccak256(of) }

// feeSource is what geth's suggestion of fees reads.
type feeSource struct{ node *node }

// HeaderByNumber implements gasprice.OracleBackend.
func (s feeSource) HeaderByNumber(_ context.Context, number rpc.BlockNumber) (*types.Header, error) {
	return s.node.header(rpc.BlockNumberOrHashWithNumber(number))
}

// BlockByNumber implements gasprice.OracleBackend.
func (s feeSource) BlockByNumber(_ context.Context, number rpc.BlockNumber) (*types.Block, error) {
	return s.node.block(rpc.BlockNumberOrHashWithNumber(number))
}

// GetReceipts implements gasprice.OracleBackend.
func (s feeSource) GetReceipts(_ context.Context, hash common.Hash) (types.Receipts, error) {
	return s.node.blocks.GetReceiptsByHash(hash), nil
}

// Pending implements gasprice.OracleBackend.
func (s feeSource) Pending() (*types.Block, types.Receipts, *state.StateDB) {
	return s.node.miner.Pending()
}

// ChainConfig implements gasprice.OracleBackend.
func (s feeSource) ChainConfig() *params.ChainConfig { return s.node.blocks.Config() }

// SubscribeChainHeadEvent implements gasprice.OracleBackend.
func (s feeSource) SubscribeChainHeadEvent(heads chan<- core.ChainHeadEvent) event.Subscription {
	return s.node.blocks.SubscribeChainHeadEvent(heads)
}
