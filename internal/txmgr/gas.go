package txmgr

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
)

// errTooMuchGas is the error of a call that takes more gas than allowed.
var errTooMuchGas = errors.New("the call takes too much gas")

// estimate returns the gas of a call: the higher of two nodes' estimates, since a
// transaction with too little gas is wasted.
func (w *Writer) estimate(ctx context.Context, to common.Address, data []byte) (uint64, error) {
	gas, err := w.node.estimate(ctx, w.sender, to, data)
	if err != nil {
		return 0, err
	}
	if nodes := w.nodes(); len(nodes) > 1 {
		if second, err := nodes[1].estimate(ctx, w.sender, to, data); err == nil {
			gas = max(gas, second)
		}
	}
	return gas, nil
}

// gasWithin returns the gas limit of a call: the estimate and a margin, but not more than most. It fails with
// errTooMuchGas if two estimates in a row are above most.
func (w *Writer) gasWithin(ctx context.Context, to common.Address, data []byte, most uint64) (uint64, error) {
	gas, err := w.estimate(ctx, to, data)
	if err == nil && gas > most {
		// Rollups count the cost of data as gas, too. An empty transfer to the sender with the same data takes that gas
		// as well.
		var plain uint64
		if plain, err = w.estimate(ctx, common.Address(w.sender), data); err != nil {
			return 0, err
		}
		own, _ := contracts.TransactionGas(data)
		most += max(plain, own) - own
		gas, err = w.estimate(ctx, to, data)
	}
	if err != nil {
		return 0, err
	}
	if gas > most {
		return 0, fmt.Errorf("%w: %d by an estimate, and at most %d is paid for", errTooMuchGas, gas, most)
	}
	return min(gas+gas*gasMargin/100, most), nil
}
