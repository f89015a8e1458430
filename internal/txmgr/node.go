package txmgr

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Client makes JSON-RPC calls. chain.Writer is one, and so are chain.Caller and go-ethereum's *rpc.Client.
type Client interface {
	CallContext(ctx context.Context, result any, method string, args ...any) error
	BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error
}

// node makes the writer's calls to a node.
type node struct{ client Client }

func (n node) call(ctx context.Context, result any, method string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, chain.CallTimeout)
	defer cancel()
	if err := n.client.CallContext(ctx, result, method, args...); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// batchTimeout is how long a batch may take: a node may process its calls one at a time, and only a few per second.
const batchTimeout = 4 * chain.CallTimeout

// batch makes calls together. It fails if one of them fails.
func (n node) batch(ctx context.Context, elems []rpc.BatchElem) error {
	for len(elems) > 0 {
		now := elems[:min(len(elems), chain.MaxBatch)]
		elems = elems[len(now):]
		ctx, cancel := context.WithTimeout(ctx, batchTimeout)
		err := n.client.BatchCallContext(ctx, now)
		cancel()
		for i := 0; err == nil && i < len(now); i++ {
			err = now[i].Error
		}
		if err != nil {
			return fmt.Errorf("%s: %w", now[0].Method, err)
		}
	}
	return nil
}

// block is the part of a block that the writer uses.
type block struct {
	Number  *chain.Quantity    `json:"number"`
	Hash    *common.Hash       `json:"hash"`
	Time    chain.Quantity     `json:"timestamp"`
	BaseFee *chain.BigQuantity `json:"baseFeePerGas"` // nil before EIP-1559
}

// block returns the block with a number or tag, or nil.
func (n node) block(ctx context.Context, which string) (*block, error) {
	const method = "eth_getBlockByNumber"
	var b *block
	if err := n.call(ctx, &b, method, which, false); err != nil {
		return nil, err
	}
	if b != nil && (b.Number == nil || b.Hash == nil) {
		return nil, fmt.Errorf("%s: the node answered a block without number or hash", method)
	}
	return b, nil
}

// head returns the newest block.
func (n node) head(ctx context.Context) (*block, error) {
	b, err := n.block(ctx, "latest")
	if err == nil && b == nil {
		err = errors.New("eth_getBlockByNumber: the node has no newest block")
	}
	return b, err
}

const nonceMethod = "eth_getTransactionCount"

// nonce returns how many transactions of the account are in the chain (tag latest), or in the chain and the pool (tag
// pending).
func (n node) nonce(ctx context.Context, account invoice.Address, tag string) (uint64, error) {
	var v chain.Quantity
	err := n.call(ctx, &v, nonceMethod, common.Address(account), tag)
	return v.N, err
}

func (n node) balance(ctx context.Context, account invoice.Address) (*big.Int, error) {
	v := chain.BigQuantity{N: new(big.Int)}
	err := n.call(ctx, &v, "eth_getBalance", common.Address(account), "latest")
	return v.N, err
}

// tip returns the usual priority fee, in wei: the median over the newest blocks of their median transaction's fee, or
// the node's suggestion if it has no fee history. Negative rewards are ignored: some networks have them in blocks of
// system transactions.
func (n node) tip(ctx context.Context) (*big.Int, error) {
	var history struct {
		Reward [][]*chain.BigQuantity `json:"reward"`
	}
	err := n.call(ctx, &history, "eth_feeHistory", hexutil.Uint64(tipBlocks), "latest", []int{50})
	if ctx.Err() != nil {
		return nil, err
	}
	var paid []*big.Int
	for _, block := range history.Reward {
		if err == nil && len(block) == 1 && block[0] != nil && block[0].N.Sign() >= 0 {
			paid = append(paid, block[0].N)
		}
	}
	if usual := median(paid); usual != nil {
		return usual, nil
	}
	v := chain.BigQuantity{N: new(big.Int)}
	err = n.call(ctx, &v, "eth_maxPriorityFeePerGas")
	return v.N, err
}

func (n node) estimate(ctx context.Context, from invoice.Address, to common.Address, data []byte) (uint64, error) {
	var v chain.Quantity
	err := n.call(ctx, &v, "eth_estimateGas", map[string]any{
		"from": common.Address(from), "to": to, "data": hexutil.Bytes(data),
	})
	return v.N, err
}

// hasCode reports whether there is a contract at an address.
func (n node) hasCode(ctx context.Context, at common.Address) (bool, error) {
	var code hexutil.Bytes
	err := n.call(ctx, &code, "eth_getCode", at, "latest")
	return len(code) > 0, err
}

// checkAuthorization simulates an authorization, with all results from one block.
func (n node) checkAuthorization(ctx context.Context, call contracts.RelayedAuthorization) (contracts.AuthorizationFinding, error) {
	var answer hexutil.Bytes
	err := n.call(ctx, &answer, "eth_call", map[string]any{"data": hexutil.Bytes(contracts.PackAuthorizationCheck(call))}, "latest")
	if err != nil {
		return contracts.AuthorizationFinding{}, err
	}
	return contracts.ParseAuthorizationFinding(answer)
}

// nonceAndReceipts returns how many transactions of the account are in the chain, and the receipts of transactions, nil
// for those without one. It requests both in one batch or, if the node accepts no batches, one after the other, the
// nonce first. Otherwise servers at different blocks behind one URL could make a mined transaction look as if it had
// lost its nonce.
func (n node) nonceAndReceipts(ctx context.Context, account invoice.Address, txs []invoice.Hash) (uint64, []*chain.Receipt, error) {
	var used chain.Quantity
	found := make([]*chain.Receipt, len(txs))
	elems := []rpc.BatchElem{{Method: nonceMethod, Args: []any{common.Address(account), "latest"}, Result: &used}}
	for i, hash := range txs {
		elems = append(elems, rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{common.Hash(hash)}, Result: &found[i]})
	}
	return used.N, found, n.batch(ctx, elems)
}

// statuses returns the registry's states of commitments as of a block.
func (n node) statuses(ctx context.Context, registry common.Address, at common.Hash, ids []invoice.Hash) ([]contracts.Status, error) {
	words := make([]hexutil.Bytes, len(ids))
	elems := make([]rpc.BatchElem, len(ids))
	abi := contracts.NewInvoiceRegistry()
	for i, id := range ids {
		call := map[string]any{"to": registry, "data": hexutil.Bytes(abi.PackStatusOf(id))}
		elems[i] = rpc.BatchElem{
			Method: "eth_call", Args: []any{call, map[string]any{"blockHash": at}}, Result: &words[i],
		}
	}
	if err := n.batch(ctx, elems); err != nil {
		return nil, err
	}
	statuses := make([]contracts.Status, len(ids))
	for i, word := range words {
		status, err := abi.UnpackStatusOf(word)
		if err != nil {
			return nil, fmt.Errorf("eth_call: the registry at %s answered %s when asked for a status: %w", registry, word, err)
		}
		statuses[i] = contracts.StoredStatus(status)
	}
	return statuses, nil
}

// broadcast sends a signed transaction to the node.
func (n node) broadcast(ctx context.Context, raw []byte) error {
	var hash common.Hash
	return n.call(ctx, &hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
}

// find reports whether the node has a transaction, and whether it is in a block.
func (n node) find(ctx context.Context, tx invoice.Hash) (known, mined bool) {
	var found *struct {
		Hash      common.Hash  `json:"hash"`
		BlockHash *common.Hash `json:"blockHash"`
	}
	err := n.call(ctx, &found, "eth_getTransactionByHash", common.Hash(tx))
	known = err == nil && found != nil && found.Hash == common.Hash(tx)
	return known, known && found.BlockHash != nil
}

// refuses reports whether err is the node's answer that a call cannot be carried out: it would be reverted, or takes
// too much gas. Nodes use many codes and texts for that. Unless the code is certain, the node must estimate a call that
// cannot fail, and refuse this one again.
func (n node) refuses(ctx context.Context, from invoice.Address, to common.Address, data []byte, err error) bool {
	if chain.IsRevert(err) || errors.Is(err, errTooMuchGas) {
		return true
	}
	if !isAnswer(err) {
		return false
	}
	if _, err := n.estimate(ctx, from, common.Address(from), nil); err != nil {
		return false // it refuses every call
	}
	_, err = n.estimate(ctx, from, to, data)
	return isAnswer(err)
}

// isAnswer reports whether err is a node's answer to a request, other than that it was called too often.
func isAnswer(err error) bool {
	var answer rpc.Error
	_, limited := chain.IsRateLimit(err)
	return errors.As(err, &answer) && !limited
}

// errRestored ends a round in which the used nonces showed that the database may have been restored.
var errRestored = errors.New("the operator has used nonces that the database does not know, so that it may have been restored from a backup; nothing is sent")

// CompareNonces compares the number of nonces that the operator has used with the number in the database, like
// NoteNonces. Call it before Run. If several nodes are configured and fewer than two answer, the writer makes the
// comparison later, before its first transaction. Accounts of former keys are left out, because their coins are moved
// by hand. allowed is how many unknown nonces are not evidence.
func (w *Writer) CompareNonces(ctx context.Context, allowed uint64) error {
	w.allowed = allowed
	used, pending, certain := w.usedNonces(ctx)
	if !certain {
		return nil
	}
	if err := w.noteNonces(ctx, used, pending); !errors.Is(err, errRestored) { // which is recorded
		return err
	}
	return nil
}

// noteAgain records from time to time how many nonces are used, so that nonces which a person uses while the service
// runs are not evidence at the next start. It returns errRestored once there was evidence.
func (w *Writer) noteAgain(ctx context.Context) error {
	now := w.conf.Schedule()
	if w.restored || now.Sub(w.notedAt) < noteEvery {
		return w.trusted()
	}
	w.notedAt = now
	if used, pending, certain := w.usedNonces(ctx); certain {
		return w.noteNonces(ctx, used, pending)
	}
	return nil
}

// trusted returns errRestored if the used nonces were evidence.
func (w *Writer) trusted() error {
	if w.restored {
		return errRestored
	}
	return nil
}

// noteNonces records how many nonces are used, and at first also the nonces of pending transactions. It returns
// errRestored if that is evidence.
func (w *Writer) noteNonces(ctx context.Context, used, pending uint64) error {
	suspected, err := noteNonces(ctx, w.conf.Store, w.conf.Chain.Key, w.sender, used, pending, w.allowed, w.conf.Now())
	if err != nil {
		return err
	}
	w.allowed, w.notedAt, w.restored = AnyNonces, w.conf.Schedule(), suspected
	return w.trusted()
}

// usedNonces returns a lower bound of the nonces that the operator has used: the number that two nodes of the chain
// confirm, or the only node's number. A node that is behind reports fewer. pending also counts the nonces of pending
// transactions. It is the median of the nodes' numbers, or the greater of two, because it is what the first comparison
// accepts: fewer would make transactions of the lost past evidence.
func (w *Writer) usedNonces(ctx context.Context) (used, pending uint64, certain bool) {
	nodes := w.nodes()
	if len(nodes) == 0 {
		nodes = []node{w.node}
	}
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	var mu sync.Mutex
	var answers, withPending []uint64
	var group sync.WaitGroup
	for _, n := range nodes {
		group.Go(func() {
			if mined, all, err := n.noncesOn(ctx, w.conf.Chain.ID, w.sender); err == nil {
				mu.Lock()
				defer mu.Unlock()
				answers, withPending = append(answers, mined), append(withPending, all)
			}
		})
	}
	group.Wait()
	need := min(2, len(nodes))
	if len(answers) < need {
		return 0, 0, false
	}
	slices.Sort(answers)
	slices.Sort(withPending)
	used = answers[len(answers)-need]
	return used, max(used, withPending[len(withPending)/2]), true
}

// noncesOn returns how many transactions of an account are in the newest block, and how many with pending ones. It fails
// if the node serves another chain, because the node may not have been checked yet.
func (n node) noncesOn(ctx context.Context, chainID uint64, account invoice.Address) (mined, all uint64, err error) {
	var id, used, pending chain.Quantity
	err = n.batch(ctx, []rpc.BatchElem{
		{Method: "eth_chainId", Result: &id},
		{Method: nonceMethod, Args: []any{common.Address(account), "latest"}, Result: &used},
		{Method: nonceMethod, Args: []any{common.Address(account), "pending"}, Result: &pending},
	})
	if err == nil && id.N != chainID {
		err = fmt.Errorf("the node is one of chain %d, want %d", id.N, chainID)
	}
	return used.N, pending.N, err
}
