package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// RefundTransaction returns the state of a transaction that was to send a refund. It is Mined
// if it moved the token from the settlement address to the recipient, and Failed if it was
// mined and did not. The error is ErrUnavailable.
func (i *Inspector) RefundTransaction(ctx context.Context, r invoice.RefundRecord, tx invoice.Hash) (State, error) {
	report, err := i.Transaction(ctx, r.ChainKey, tx, r.To)
	switch sent := func(t Transfer) bool { return t.Token == r.Token && t.From == r.From && t.To == r.To }; {
	case err != nil:
		return "", err
	case report.Chain.Key != r.ChainKey:
		return Unknown, nil
	case report.State == Mined && !slices.ContainsFunc(report.Transfers, sent):
		return Failed, nil
	}
	return report.State, nil
}

// HasWaiting reports whether a transaction of an account waits to be mined, as far as the
// chain's nodes know. The error is ErrUnavailable.
func (i *Inspector) HasWaiting(ctx context.Context, chainKey string, account invoice.Address) (bool, error) {
	n := i.indexOf(chainKey)
	if n < 0 {
		return false, fmt.Errorf("%w: chain %s is not configured", ErrUnavailable, chainKey)
	}
	ctx, cancel := context.WithTimeout(ctx, AccountTimeout)
	defer cancel()
	var mined, all chain.Quantity
	batch := []rpc.BatchElem{
		{Method: "eth_getTransactionCount", Args: []any{common.Address(account), "latest"}, Result: &mined},
		{Method: "eth_getTransactionCount", Args: []any{common.Address(account), "pending"}, Result: &all},
	}
	if err := i.sources[n].Node.BatchCallContext(ctx, batch); err != nil {
		return false, fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, err)
	}
	for _, elem := range batch {
		if elem.Error != nil {
			return false, fmt.Errorf("%w for chain %s: %w", ErrUnavailable, chainKey, elem.Error)
		}
	}
	return all.N > mined.N, nil
}
