package devchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/eth/gasestimator"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
)

// Limits of calls, equal to geth's.
const (
	maxCallGas  = 50_000_000
	callTimeout = 5 * time.Second
	// estimateRatio is how much too high an estimate may be, as a fraction.
	estimateRatio = 0.015
)

// callArgs are the arguments of a call. Everything is optional.
type callArgs struct {
	From          common.Address               `json:"from"`
	To            *common.Address              `json:"to"`
	Gas           *hexutil.Uint64              `json:"gas"`
	GasPrice      *hexutil.Big                 `json:"gasPrice"`
	FeeCap        *hexutil.Big                 `json:"maxFeePerGas"`
	TipCap        *hexutil.Big                 `json:"maxPriorityFeePerGas"`
	Value         *hexutil.Big                 `json:"value"`
	Data          *hexutil.Bytes               `json:"data"`
	Input         *hexutil.Bytes               `json:"input"` // the newer name of data
	AccessList    types.AccessList             `json:"accessList"`
	Authorization []types.SetCodeAuthorization `json:"authorizationList"`
	ChainID       *hexutil.Big                 `json:"chainId"`
}

// message returns a call as the virtual machine takes it. Its gas is zero if the arguments have none.
func (c *callArgs) message(baseFee *big.Int) (*core.Message, error) {
	switch {
	case c.GasPrice != nil && (c.FeeCap != nil || c.TipCap != nil):
		return nil, errors.New("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
	case c.ChainID != nil && c.ChainID.ToInt().Cmp(new(big.Int).SetUint64(ChainID)) != 0:
		return nil, fmt.Errorf("chainId is %s, want %d", c.ChainID.ToInt(), ChainID)
	case c.To == nil && c.Authorization != nil:
		return nil, core.ErrSetCodeTxCreate
	}
	feeCap, tipCap := word(c.FeeCap), word(c.TipCap)
	price := new(uint256.Int)
	if c.GasPrice != nil {
		price = word(c.GasPrice)
		feeCap, tipCap = price, price
	} else if !feeCap.IsZero() || !tipCap.IsZero() {
		price.Add(tipCap, uint256.MustFromBig(baseFee))
		if price.Gt(feeCap) {
			price = feeCap
		}
	}
	msg := &core.Message{
		From: c.From, To: c.To, Value: word(c.Value), GasPrice: price, GasFeeCap: feeCap, GasTipCap: tipCap,
		GasLimit: min(uint64(*cmp.Or(c.Gas, new(hexutil.Uint64))), maxCallGas), Data: *cmp.Or(c.Input, c.Data, new(hexutil.Bytes)),
		AccessList: c.AccessList, SetCodeAuthorizations: c.Authorization,
	}
	return msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck(), nil
}

// word returns a number, which fits because hexutil reads no longer ones; nil is 0.
func word(n *hexutil.Big) *uint256.Int {
	if n == nil {
		return new(uint256.Int)
	}
	return uint256.MustFromBig(n.ToInt())
}

// Call runs a call on the state after a block and returns what it returns.
func (a *ethAPI) Call(ctx context.Context, args callArgs, at *rpc.BlockNumberOrHash) (hexutil.Bytes, error) {
	after, header, err := a.node.stateAt(latest(at))
	if err != nil {
		return nil, err
	}
	msg, err := args.message(header.BaseFee)
	if err != nil {
		return nil, err
	}
	if args.Gas == nil {
		msg.GasLimit = maxCallGas
	}
	block := core.NewEVMBlockContext(header, a.node.blocks, nil)
	if msg.GasPrice.IsZero() {
		block.BaseFee = new(big.Int) // or it would exceed what the call pays
	}
	evm := vm.NewEVM(block, after, a.node.blocks.Config(), vm.Config{NoBaseFee: true})
	defer evm.Release()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, evm.Cancel)()
	result, err := core.ApplyMessage(evm, msg.SkipExecutionGasCapCheck(), core.NewGasPool(math.MaxUint64))
	switch {
	case after.Error() != nil:
		return nil, after.Error()
	case evm.Cancelled():
		return nil, fmt.Errorf("the call was ended; calls may take %s", callTimeout)
	case err != nil:
		return nil, fmt.Errorf("%w (supplied gas %d)", err, msg.GasLimit)
	case errors.Is(result.Err, vm.ErrExecutionReverted):
		return nil, newRevertError(result.Revert())
	}
	return result.Return(), result.Err
}

// EstimateGas returns the least gas with which a call succeeds, within estimateRatio.
func (a *ethAPI) EstimateGas(ctx context.Context, args callArgs, at *rpc.BlockNumberOrHash) (hexutil.Uint64, error) {
	after, header, err := a.node.stateAt(latest(at))
	if err != nil {
		return 0, err
	}
	msg, err := args.message(header.BaseFee)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	gas, reverted, err := gasestimator.Estimate(ctx, msg, &gasestimator.Options{
		Config: a.node.blocks.Config(), Chain: a.node.blocks, Header: header, State: after, ErrorRatio: estimateRatio,
	}, maxCallGas)
	if errors.Is(err, vm.ErrExecutionReverted) {
		return 0, newRevertError(reverted)
	}
	return hexutil.Uint64(gas), err
}

// revertError is the error of a call that a contract has refused.
type revertError struct {
	error
	data []byte
}

func newRevertError(data []byte) *revertError {
	err := vm.ErrExecutionReverted
	if reason, unpackErr := abi.UnpackRevert(data); unpackErr == nil {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return &revertError{err, data}
}

// ErrorCode returns the code of JSON-RPC.
func (*revertError) ErrorCode() int { return 3 }

// ErrorData returns what the contract returned, in hex.
func (e *revertError) ErrorData() any { return hexutil.Encode(e.data) }
