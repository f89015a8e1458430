package chain

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// transaction is the part of a transaction that the service uses.
type transaction struct {
	Hash  common.Hash     `json:"hash"`
	From  *common.Address `json:"from"` // nil if the node omits it
	Input hexutil.Bytes   `json:"input"`
}

// Methods that return evidence.
const (
	receiptByHash     = "eth_getTransactionReceipt"
	transactionByHash = "eth_getTransactionByHash"
	receiptsOfBlock   = "eth_getBlockReceipts"
	blockByHash       = "eth_getBlockByHash"
)

// Receipts returns the receipts of transactions, in the order requested. The error is ErrNotFound if the node lacks
// some of them, which are nil then.
func (c *Client) Receipts(ctx context.Context, txs []common.Hash) ([]*Receipt, error) {
	found, err := batchOf[Receipt](ctx, c, KindReceipts, receiptByHash, len(txs), func(i int) []any { return []any{txs[i]} })
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	for i, r := range found {
		if r == nil {
			continue
		}
		if err := c.checkTx(r.TxHash, txs[i]); err != nil {
			return nil, err
		}
	}
	return found, err
}

// Evidence returns the receipts and the calldata of transactions, in the order requested, from the same batches. The
// error is ErrNotFound if the node lacks one.
func (c *Client) Evidence(ctx context.Context, txs []common.Hash) (receipts []*Receipt, inputs [][]byte, err error) {
	receipts, inputs = make([]*Receipt, len(txs)), make([][]byte, len(txs))
	found := make([]*transaction, len(txs))
	batch := make([]rpc.BatchElem, 0, 2*len(txs))
	for i, tx := range txs {
		batch = append(batch,
			rpc.BatchElem{Method: receiptByHash, Args: []any{tx}, Result: &receipts[i]},
			rpc.BatchElem{Method: transactionByHash, Args: []any{tx}, Result: &found[i]},
		)
	}
	if err := c.batch(ctx, KindReceipts, batch, isNull); err != nil {
		return nil, nil, err
	}
	for i, tx := range txs {
		if receipts[i] == nil {
			return nil, nil, c.notFound(receiptByHash, tx)
		}
		if found[i] == nil {
			return nil, nil, c.notFound(transactionByHash, tx)
		}
		for _, of := range []common.Hash{receipts[i].TxHash, found[i].Hash} {
			if err := c.checkTx(of, tx); err != nil {
				return nil, nil, err
			}
		}
		if from := found[i].From; from != nil && *from != receipts[i].From {
			return nil, nil, c.contradiction("returned transaction %s from %s, and its receipt from %s", tx, from, receipts[i].From)
		}
		inputs[i] = found[i].Input
	}
	return receipts, inputs, nil
}

// contradiction returns an ErrContradiction.
func (c *Client) contradiction(format string, args ...any) error {
	return &contradictionError{c.name + ": " + fmt.Sprintf(format, args...)}
}

// contradictionError matches ErrContradiction.
type contradictionError struct{ text string }

func (e *contradictionError) Error() string        { return e.text }
func (e *contradictionError) Is(target error) bool { return target == ErrContradiction }

// checkTx fails if an answer is about another transaction than the requested one.
func (c *Client) checkTx(answered, asked common.Hash) error {
	if answered != asked {
		return c.contradiction("answered with transaction %s when asked for %s", answered, asked)
	}
	return nil
}

// BlockReceipts returns the receipts of all transactions of a block, in the block's order. The error is ErrUnsupported
// if the node lacks the method, and ErrNotFound if it lacks the block.
func (c *Client) BlockReceipts(ctx context.Context, block invoice.Hash) ([]*Receipt, error) {
	var found []*Receipt
	limit := c.Limit(KindReceiptsOfBlock)
	if err := c.call(ctx, &found, receiptsOfBlock, common.Hash(block)); err != nil {
		if IsRefusal(err) {
			limit.Refused(1)
		}
		return nil, err
	}
	if found == nil {
		return nil, c.notFound(receiptsOfBlock, block)
	}
	limit.Answered(1)
	for _, r := range found {
		if r == nil || invoice.Hash(r.BlockHash) != block {
			return nil, c.contradiction("answered with receipts of another block when asked for those of %s", block)
		}
	}
	return found, nil
}

// BlockTransactions returns the hashes of all transactions of a block, in the block's order. The error is ErrNotFound
// if the node lacks the block.
func (c *Client) BlockTransactions(ctx context.Context, block invoice.Hash) ([]common.Hash, error) {
	return transactionsOf[common.Hash](ctx, c, block, false)
}

// BlockInputs returns the calldata of all transactions of a block. The error is ErrNotFound if the node lacks the
// block.
func (c *Client) BlockInputs(ctx context.Context, block invoice.Hash) (map[common.Hash][]byte, error) {
	all, err := transactionsOf[transaction](ctx, c, block, true)
	if err != nil {
		return nil, err
	}
	inputs := make(map[common.Hash][]byte, len(all))
	for _, tx := range all {
		inputs[tx.Hash] = tx.Input
	}
	return inputs, nil
}

// transactionsOf returns the transactions of a block, in full or their hashes.
func transactionsOf[T any](ctx context.Context, c *Client, block invoice.Hash, full bool) ([]T, error) {
	var found *struct {
		Hash         common.Hash `json:"hash"`
		Transactions []T         `json:"transactions"`
	}
	if err := c.call(ctx, &found, blockByHash, common.Hash(block), full); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, c.notFound(blockByHash, block)
	}
	if invoice.Hash(found.Hash) != block {
		return nil, c.contradiction("answered with block %s when asked for block %s", found.Hash, block)
	}
	return found.Transactions, nil
}

// isNull reports whether the result of a call, a pointer to a pointer, is null.
func isNull(elem rpc.BatchElem) bool { return reflect.ValueOf(elem.Result).Elem().IsNil() }

// batchOf makes n calls of a method in batches. A null answer is ErrNotFound. After an error it returns the answers
// that arrived.
func batchOf[T any](ctx context.Context, c *Client, kind Kind, method string, n int, args func(i int) []any) ([]*T, error) {
	found := make([]*T, n)
	elems := make([]rpc.BatchElem, n)
	for i := range elems {
		elems[i] = rpc.BatchElem{Method: method, Args: args(i), Result: &found[i]}
	}
	if err := c.batch(ctx, kind, elems, isNull); err != nil {
		return found, err
	}
	for i, v := range found {
		if v == nil {
			return found, c.notFound(method, elems[i].Args[0])
		}
	}
	return found, nil
}
