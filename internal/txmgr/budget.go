package txmgr

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/store"
)

// budgetWindow is how long what was spent counts against the daily budget.
const budgetWindow = 24 * time.Hour

// perTx returns what one transaction may cost, in wei.
func (w *Writer) perTx() *big.Int { return inWei(w.conf.Chain.Limits.PerTxGwei) }

// maxFeeFor returns the highest fee for a unit of gas with which a transaction
// of so much gas stays within the purse.
func (w *Writer) maxFeeFor(gas uint64) *big.Int {
	most := new(big.Int).Quo(w.perTx(), wei(max(1, gas)))
	return least(most, wei(w.conf.Chain.Limits.MaxFeeWei))
}

// maxFitting returns how many of n commitments a transaction takes so that its cost
// stays below half of what it may be, which leaves as much for higher fees, when
// one with all n costs so much. It is 1 at least.
func (w *Writer) maxFitting(n int, cost *big.Int) int {
	half := new(big.Int).Rsh(w.perTx(), 1)
	if cost.Cmp(half) <= 0 {
		return n
	}
	fits := new(big.Int).Mul(half, big.NewInt(int64(n)))
	return max(1, int(fits.Quo(fits, cost).Int64()))
}

// checkSpend fails when a transaction that may cost so many wei is above what one
// may cost, when the sender cannot pay for it, or when the budget of the day
// does not hold it. but is a transaction that it replaces; none when empty.
func (w *Writer) checkSpend(ctx context.Context, cost *big.Int, but string) error {
	if most := w.perTx(); cost.Cmp(most) > 0 {
		return fmt.Errorf("%w: the next transaction may cost %s wei, and one may cost %s", errFeeCapExceeded, cost, most)
	}
	has, err := w.node.balance(ctx, w.sender)
	if err != nil {
		return err
	}
	balance, _ := has.Float64()
	w.conf.Metrics.balance.WithLabelValues(w.conf.Chain.Key).Set(balance)
	w.update(func(s *Status) { s.Balance, s.Needed = has, cost })
	if has.Cmp(cost) < 0 {
		return fmt.Errorf("%w: %s has %s wei, and the next transaction may cost %s", errInsufficientFunds, common.Address(w.sender), has, cost)
	}
	return w.checkDailyBudget(ctx, cost, but)
}

// checkDailyBudget fails when what was spent in the last 24 hours, what is in flight
// and so many wei more exceed the budget. What was spent is in the database, so
// that replicas and restarts share it.
func (w *Writer) checkDailyBudget(ctx context.Context, cost *big.Int, but string) error {
	since := w.conf.Now().Add(-budgetWindow).UnixMilli()
	spent, reserved, err := w.conf.Store.Spending(ctx, w.conf.Chain.Key, since, but)
	if err != nil {
		return fmt.Errorf("add up what was spent: %w", err)
	}
	budget := w.conf.Chain.Limits.PerDayGwei
	w.showSpending(uint64(spent), budget)
	if next := uint64(spent) + uint64(reserved) + uint64(inGwei(cost)); next > budget {
		return fmt.Errorf("%w: of %d gwei, %d were spent in 24 hours, %d may be by what is in flight, and the next transaction may cost %d; it goes on by itself as hours pass, or with a higher perDay",
			errBudget, budget, spent, reserved, inGwei(cost))
	}
	return nil
}

// showSpending shows what was spent of the budget, both in gwei.
func (w *Writer) showSpending(spent, budget uint64) {
	w.conf.Metrics.spent.WithLabelValues(w.conf.Chain.Key).Set(float64(spent) * weiPerGwei)
	w.conf.Metrics.budget.WithLabelValues(w.conf.Chain.Key).Set(float64(budget) * weiPerGwei)
	w.update(func(s *Status) { s.Spent, s.Budget = inWei(spent), inWei(budget) })
}

// spent returns what a transaction cost, as its receipt says, but never more
// than twice what its attempts allowed: that is one node's word. Without it, it is
// what was reserved.
func (w *Writer) spent(t store.ChainTx, r *chain.Receipt) *store.TxCost {
	cost := store.TxCost{Gwei: t.Reserved, AtMS: w.conf.Now().UnixMilli()}
	if says := r.Cost(); says != nil && says.Sign() >= 0 {
		cost.Gwei = min(inGwei(says), max(2*t.Reserved, 1))
		if t.Reserved == 0 { // from before costs were recorded
			cost.Gwei = inGwei(says)
		}
	}
	return &cost
}
