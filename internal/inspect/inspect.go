// Package inspect finds out what a transaction did that a payer names: which
// of the configured chains has it, whether it succeeded, and what it moved to
// whom. Its answers explain; money is counted by the indexer alone.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// Limits of an inspection.
const (
	// Timeout is how long the nodes of one chain may take.
	Timeout = 3 * time.Second
	// MaxMovements is how many movements to one address are reported.
	MaxMovements = 20
)

// ErrUnavailable is returned when no node of a chain answered in time.
var ErrUnavailable = errors.New("no node answered")

// Node answers JSON-RPC. *chain.Pool is one.
type Node interface {
	BatchCallContext(ctx context.Context, batch []rpc.BatchElem) error
}

// Source is a chain and the node to ask about it.
type Source struct {
	Chain chain.Chain
	Node  Node
}

// State is what a chain says about a transaction.
type State string

// The states of a transaction.
const (
	Unknown State = "unknown" // no node that was asked has it
	Queued  State = "queued"  // a node has it, and no block yet
	Failed  State = "failed"  // it was mined and reverted
	Mined   State = "mined"
)

// Report is what a transaction did. Sender, Movements and Block are set when
// it was mined.
type Report struct {
	Chain     chain.Chain // the chain that has it, or the one that was asked first
	State     State
	Block     uint64
	Sender    invoice.Address
	Movements []Movement // of tokens and of the native coin, at most MaxMovements
}

// Movement is a transfer of a token or of the native coin. Token is the zero
// address for the native coin. Amount is in minor units where Currency is set;
// that is only so for the configured tokens.
type Movement struct {
	Token    invoice.Address
	Currency string // of a configured token; else empty
	From, To invoice.Address
	Amount   invoice.Amount
}

// Inspector asks the nodes of all configured chains.
type Inspector struct{ sources []Source }

// New returns an Inspector of the chains.
func New(sources []Source) *Inspector { return &Inspector{sources: sources} }

// Transaction reports on a transaction: of the named chain if that has it,
// else of any other chain that does. The movements are those to one address
// where there are any, else all. It returns ErrUnavailable when the named
// chain's nodes did not answer and no other chain has the transaction.
func (i *Inspector) Transaction(ctx context.Context, chainKey string, tx invoice.Hash, to invoice.Address) (Report, error) {
	named := slices.IndexFunc(i.sources, func(s Source) bool { return s.Chain.Key == chainKey })
	if named < 0 {
		return Report{}, fmt.Errorf("%w: chain %s is not configured", ErrUnavailable, chainKey)
	}
	report, err := i.sources[named].transaction(ctx, tx, to)
	if err == nil && report.State != Unknown {
		return report, nil
	}
	if other, ok := i.elsewhere(ctx, named, tx, to); ok {
		return other, nil
	}
	if err != nil {
		return Report{}, fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, err)
	}
	return report, nil
}

// elsewhere asks all chains but one at the same time, and returns the report of
// the first that has the transaction.
func (i *Inspector) elsewhere(ctx context.Context, except int, tx invoice.Hash, to invoice.Address) (Report, bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	reports := make(chan Report, len(i.sources))
	asked := 0
	for n, s := range i.sources {
		if n == except {
			continue
		}
		asked++
		go func() {
			report, err := s.transaction(ctx, tx, to)
			if err != nil {
				report.State = Unknown // who has it will say so
			}
			reports <- report
		}()
	}
	for range asked {
		if report := <-reports; report.State != Unknown {
			return report, true
		}
	}
	return Report{}, false
}

// transaction is what is read of a transaction itself.
type transaction struct {
	Hash  common.Hash     `json:"hash"`
	From  common.Address  `json:"from"`
	To    *common.Address `json:"to"`
	Value *hexutil.Big    `json:"value"`
}

// transaction asks the chain's node for a transaction and its receipt.
func (s Source) transaction(ctx context.Context, hash invoice.Hash, to invoice.Address) (Report, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	var receipt *chain.Receipt
	var tx *transaction
	batch := []rpc.BatchElem{
		{Method: "eth_getTransactionReceipt", Args: []any{common.Hash(hash)}, Result: &receipt},
		{Method: "eth_getTransactionByHash", Args: []any{common.Hash(hash)}, Result: &tx},
	}
	if err := s.Node.BatchCallContext(ctx, batch); err != nil {
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
		report.State = Queued
		return report, nil
	}
	report.State, report.Block, report.Sender = Mined, uint64(receipt.BlockNumber), invoice.Address(receipt.From)
	if !receipt.Succeeded() {
		report.State = Failed
		return report, nil
	}
	report.Movements = s.movements(receipt, tx)
	if only := slices.DeleteFunc(slices.Clone(report.Movements), func(m Movement) bool { return m.To != to }); len(only) > 0 {
		report.Movements = only
	}
	report.Movements = report.Movements[:min(len(report.Movements), MaxMovements)]
	return report, nil
}
