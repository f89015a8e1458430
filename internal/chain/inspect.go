package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/invoice"
)

// Limits of an inspection.
const (
	// Timeout is how long the nodes may take.
	Timeout = 10 * time.Second
	// MaxTransfers bounds the transfers of a report.
	MaxTransfers = 20
)

// ErrUnavailable is returned when no node of a chain answered in time.
var ErrUnavailable = errors.New("no node answered")

// TransactionNode is a JSON-RPC client of the nodes of a chain. *chain.Requests implements it.
type TransactionNode interface {
	BatchCaller // of the first node that answers
	// Nodes returns how many nodes the chain has, also those that are not usable now.
	Nodes() int
	// Each asks all usable nodes in parallel, up to a number of calls each. err is nil if one answered, and all is true
	// if all did.
	Each(ctx context.Context, calls int, ask func(ctx context.Context, node BatchCaller) error) (all bool, err error)
}

// Source is a chain with its node.
type Source struct {
	Chain Chain
	Node  TransactionNode
}

// TransactionState is the state of a transaction on a chain.
type TransactionState string

// The states of a transaction.
const (
	Unknown TransactionState = "unknown" // the node does not have it
	Queued  TransactionState = "queued"  // in the mempool
	Failed  TransactionState = "failed"  // mined and reverted
	Mined   TransactionState = "mined"
	Settled TransactionState = "settled" // mined, also without effect, in a final block that is read
)

// Report describes what a transaction did. Sender is set if it is queued or was mined, Nonce if it is
// queued, Block if it was mined, Transfers if it also succeeded.
type Report struct {
	Chain     Chain // the chain that has it, otherwise the named one
	State     TransactionState
	Block     uint64
	Sender    invoice.Address
	Nonce     uint64     // number of the sender's transactions before this one
	Transfers []Transfer // of tokens and of the native coin, up to MaxTransfers
}

// Transfer is a transfer of a token or of the native coin. The native coin has the zero address as
// Token. Amount is in minor units if Currency is set.
type Transfer struct {
	Token    invoice.Address
	Currency string // empty unless the token is configured
	From, To invoice.Address
	Amount   invoice.Amount
}

// Inspector looks up transactions on all configured chains.
type Inspector struct{ sources []Source }

// NewInspector returns an Inspector of the chains.
func NewInspector(sources []Source) *Inspector { return &Inspector{sources: sources} }

// inspectedTransaction holds the members of a transaction that are used.
type inspectedTransaction struct {
	Hash  common.Hash     `json:"hash"`
	From  common.Address  `json:"from"`
	To    *common.Address `json:"to"`
	Value *BigQuantity    `json:"value"`
	Nonce Quantity        `json:"nonce"`
}

// callsOfTransaction is how many calls Source.transaction makes.
const callsOfTransaction = 2

// transaction returns the report of a transaction on the chain, from a node.
func (s Source) transaction(ctx context.Context, node BatchCaller, hash invoice.Hash, to invoice.Address) (Report, error) {
	var receipt *Receipt
	var tx *inspectedTransaction
	batch := []rpc.BatchElem{
		{Method: "eth_getTransactionReceipt", Args: []any{common.Hash(hash)}, Result: &receipt},
		{Method: "eth_getTransactionByHash", Args: []any{common.Hash(hash)}, Result: &tx},
	}
	if err := node.BatchCallContext(ctx, batch); err != nil {
		return Report{}, err
	}
	for _, elem := range batch {
		if elem.Error != nil {
			return Report{}, elem.Error
		}
	}
	if receipt != nil && receipt.TxHash != common.Hash(hash) || tx != nil && tx.Hash != common.Hash(hash) {
		return Report{}, fmt.Errorf("a node of chain %s answered with another transaction than %s", s.Chain.Key, hash)
	}
	report := Report{Chain: s.Chain}
	switch {
	case receipt == nil && tx == nil:
		report.State = Unknown
		return report, nil
	case receipt == nil:
		report.State, report.Sender, report.Nonce = Queued, invoice.Address(tx.From), tx.Nonce.N
		return report, nil
	}
	report.State, report.Block, report.Sender = Mined, uint64(receipt.BlockNumber), invoice.Address(receipt.From)
	if !receipt.Succeeded() {
		report.State = Failed
		return report, nil
	}
	report.Transfers = s.transfers(receipt, tx)
	if only := slices.DeleteFunc(slices.Clone(report.Transfers), func(t Transfer) bool { return t.To != to }); len(only) > 0 {
		report.Transfers = only
	}
	report.Transfers = report.Transfers[:min(len(report.Transfers), MaxTransfers)]
	return report, nil
}
