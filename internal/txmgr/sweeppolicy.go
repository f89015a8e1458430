package txmgr

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/ledger"
)

// dueByPolicy returns up to limit queued sweeps that the chain's policy wants now. It asks a node for the gas price
// only if a queued sweep depends on it.
func (k *sweepWork) dueByPolicy(ctx context.Context, limit int) ([]ledger.QueuedSweep, error) {
	p, now := k.w.conf.Chain.Sweep, k.w.conf.Now()
	if limit <= 0 || p.Time() == chain.SweepNever || now.Before(k.notBefore) {
		return nil, nil
	}
	k.waiting = ""
	f := ledger.SweepFilter{ChainKey: k.w.conf.Chain.Key}
	if p.Time() == chain.SweepDaily {
		f.QueuedBefore = p.Boundary(now)
	}
	due, err := k.fairly(ctx, f, limit, new(big.Int))
	switch {
	case err != nil:
		return nil, err
	case len(due) == 0:
		switch p.Time() {
		case chain.SweepDaily:
			k.notBefore = f.QueuedBefore.Add(24 * time.Hour)
		case chain.SweepAbove:
			k.postpone("") // so that many small deposits are not examined each time
		case chain.SweepAtOnce, chain.SweepCheapGas, chain.SweepNever: // these want every queued sweep
		}
		return nil, nil
	case p.When != chain.SweepCheapGas && p.MaxCost == (chain.SweepCost{}):
		return due, nil
	}
	return k.affordable(ctx, f, limit)
}

// affordable returns up to limit queued sweeps that the policy wants at the present gas price.
func (k *sweepWork) affordable(ctx context.Context, f ledger.SweepFilter, limit int) ([]ledger.QueuedSweep, error) {
	p := k.w.conf.Chain.Sweep
	price, err := k.w.gasPrice(ctx)
	if err != nil {
		return nil, err
	}
	if p.When == chain.SweepCheapGas && price.Cmp(wei(p.GasPriceWei)) > 0 {
		k.postpone(fmt.Sprintf("gas costs %s wei, and deposits are swept at %d or less", price, p.GasPriceWei))
		return nil, nil
	}
	due, err := k.fairly(ctx, f, limit, costOf(k.gas, price))
	if err == nil && len(due) == 0 {
		k.postpone(fmt.Sprintf("sweeping a deposit takes about %d gas at %s wei, which is more than the allowed part of what each holds", k.gas, price))
	}
	return due, err
}

// postpone stops the policy from sweeping for sweepCheckEvery. reason is empty if there is nothing to sweep.
func (k *sweepWork) postpone(reason string) {
	k.notBefore, k.waiting = k.w.conf.Now().Add(sweepCheckEvery), reason
}

// fairly returns up to limit queued sweeps that the policy allows if one costs costWei: the same number from each
// merchant, the largest first. It begins with the merchant after the one that was served last.
func (k *sweepWork) fairly(ctx context.Context, f ledger.SweepFilter, limit int, cost *big.Int) ([]ledger.QueuedSweep, error) {
	var due []ledger.QueuedSweep
	for _, token := range k.w.conf.Chain.AllTokens() {
		least, ok := k.w.conf.Chain.Sweep.Least(token, cost)
		if !ok || len(due) == limit {
			continue
		}
		f.Token, f.MinAmount = token.Address, least
		merchants, err := k.merchants(ctx, f, limit-len(due))
		if err != nil {
			return nil, err
		}
		left := limit - len(due)
		for i, merchant := range merchants {
			// Slots that the earlier merchants did not use are shared among the others.
			some, err := ledger.DueSweeps(ctx, k.w.conf.Store, f, merchant, max(1, left/(len(merchants)-i)))
			if err != nil {
				return nil, err
			}
			due = append(due, some...)
			left -= len(some)
		}
	}
	return due, nil
}

// merchants returns up to limit merchants with queued sweeps that the filter selects, starting after the one that was
// served last. Only the database compares their ids, since its order may differ from Go's.
func (k *sweepWork) merchants(ctx context.Context, f ledger.SweepFilter, limit int) ([]string, error) {
	merchants, err := ledger.MerchantsWithSweeps(ctx, k.w.conf.Store, f, k.after, limit)
	if err != nil || len(merchants) == limit || k.after == "" {
		return merchants, err
	}
	others, err := ledger.MerchantsWithSweeps(ctx, k.w.conf.Store, f, "", limit-len(merchants))
	if len(merchants) > 0 {
		if i := slices.Index(others, merchants[0]); i >= 0 {
			others = others[:i]
		}
	}
	return append(merchants, others...), err
}

// gasPrice returns the present base fee and tip per unit of gas, in wei.
func (w *Writer) gasPrice(ctx context.Context) (*big.Int, error) {
	head, err := w.node.head(ctx)
	if err != nil {
		return nil, err
	}
	offer, err := w.marketFeesAt(ctx, head)
	if err != nil {
		return nil, err
	}
	return new(big.Int).Add(head.BaseFee.N, offer.tip), nil
}
