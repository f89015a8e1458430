package txmgr

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// budgetWindow is how long spending counts against the daily budget.
const budgetWindow = 24 * time.Hour

// perTx returns the maximum cost of one transaction, in wei.
func (w *Writer) perTx() *big.Int { return inWei(w.conf.Chain.Limits.PerTxGwei) }

// maxFeeFor returns the highest fee per unit of gas with which a transaction of this much gas stays within the limits.
func (w *Writer) maxFeeFor(gas uint64) *big.Int {
	most := new(big.Int).Quo(w.perTx(), wei(max(1, gas)))
	return least(most, wei(w.conf.Chain.Limits.MaxFeeWei))
}

// maxFitting returns how many of n items keep a transaction's cost below half of its limit, if all n together have the
// given cost. The other half is left for fee bumps. The result is at least 1.
func (w *Writer) maxFitting(n int, cost *big.Int) int {
	half := new(big.Int).Rsh(w.perTx(), 1)
	if cost.Cmp(half) <= 0 {
		return n
	}
	fits := new(big.Int).Mul(half, big.NewInt(int64(n)))
	return max(1, int(fits.Quo(fits, cost).Int64()))
}

// checkSpend fails if a transaction with this maximum cost exceeds its limit, the sender's balance or the given
// percentage of the daily budget. replacing is the transaction that it replaces, or empty.
func (w *Writer) checkSpend(ctx context.Context, cost *big.Int, replacing string, percent uint64) error {
	if most := w.perTx(); cost.Cmp(most) > 0 {
		return fmt.Errorf("%w: the next transaction may cost %s wei, and one may cost %s", errFeeCapExceeded, cost, most)
	}
	has, err := w.readBalance(ctx)
	if err != nil {
		return err
	}
	w.update(func(s *Status) { s.Needed = cost })
	if has.Cmp(cost) < 0 {
		return fmt.Errorf("%w: %s has %s wei, and the next transaction may cost %s", errInsufficientFunds, common.Address(w.sender), has, cost)
	}
	return w.checkDailyBudget(ctx, cost, replacing, percent)
}

// readBalance reads and publishes the sender's balance.
func (w *Writer) readBalance(ctx context.Context) (*big.Int, error) {
	has, err := w.node.balance(ctx, w.sender)
	if err != nil {
		return nil, err
	}
	balance, _ := has.Float64()
	w.conf.Metrics.balance.WithLabelValues(w.conf.Chain.Key).Set(balance)
	w.update(func(s *Status) { s.Balance = has })
	return has, nil
}

// measure publishes the balance and the spending, unless that was done. It tries every countEvery.
func (w *Writer) measure(ctx context.Context) error {
	now := w.conf.Schedule()
	if w.Status().Budget != nil || now.Sub(w.measuredAt) < countEvery {
		return nil
	}
	w.measuredAt = now
	if _, err := w.readBalance(ctx); err != nil {
		return err
	}
	_, _, err := w.spending(ctx, "")
	return err
}

// spending returns, in gwei, what the last 24 hours cost and what the transactions in flight may cost, and publishes the
// former. replacing is a transaction that does not count, or empty.
func (w *Writer) spending(ctx context.Context, replacing string) (spent, reserved uint64, err error) {
	window := ledger.WindowBefore(w.conf.Now(), w.conf.Schedule(), budgetWindow)
	was, may, err := spending(ctx, w.conf.Store, w.conf.Chain.Key, window, replacing)
	if err != nil {
		return 0, 0, fmt.Errorf("add up what was spent: %w", err)
	}
	w.showSpending(uint64(was), w.conf.Chain.Limits.PerDayGwei)
	return uint64(was), uint64(may), nil
}

// checkDailyBudget fails if the spending of the last 24 hours, the transactions in flight and the given cost together
// exceed the given percentage of the budget. Spending is in the database, so replicas and restarts share it.
func (w *Writer) checkDailyBudget(ctx context.Context, cost *big.Int, replacing string, percent uint64) error {
	spent, reserved, err := w.spending(ctx, replacing)
	if err != nil {
		return err
	}
	budget := w.conf.Chain.Limits.PerDayGwei
	if percent < 100 {
		budget = budget / 100 * percent
	}
	if next := spent + reserved + uint64(inGwei(cost)); next > budget {
		return fmt.Errorf("%w: of %d gwei, %d were spent in 24 hours, %d may be by what is in flight, and the next transaction may cost %d; it goes on by itself as hours pass, or with a higher perDay",
			errBudget, budget, spent, reserved, inGwei(cost))
	}
	return nil
}

// showSpending publishes the spending and the budget, both in gwei.
func (w *Writer) showSpending(spent, budget uint64) {
	w.conf.Metrics.spent.WithLabelValues(w.conf.Chain.Key).Set(float64(spent) * weiPerGwei)
	w.conf.Metrics.budget.WithLabelValues(w.conf.Chain.Key).Set(float64(budget) * weiPerGwei)
	w.update(func(s *Status) { s.Spent, s.Budget = inWei(spent), inWei(budget) })
}

// spent returns a mined transaction's cost: the highest on the receipts of several nodes, above twice the maximum of the
// attempts only as high as the second highest. Without a cost on a receipt it is the reserved amount. It is nil while a
// usable node has no receipt, because the others may show less; once the block is final, the reserved amount counts as
// that node's cost.
func (w *Writer) spent(ctx context.Context, t ChainTx, mined minedAttempt) *ledger.TxCost {
	costs, complete := w.receiptCosts(ctx, t, mined)
	if !complete && !mined.final {
		return nil
	}
	if !complete {
		costs = append(costs, t.Reserved)
	}
	costs = append(costs, 0, 0) // there may be fewer than two
	slices.Sort(costs)
	second, highest := costs[len(costs)-2], costs[len(costs)-1]
	cost := ledger.TxCost{Gwei: highest, At: w.conf.Now(), Scheduled: w.conf.Schedule()}
	switch {
	case t.Reserved == 0: // from before costs were recorded
	case highest == 0:
		cost.Gwei = t.Reserved
	default:
		cost.Gwei = min(highest, max(2*t.Reserved, second))
	}
	return &cost
}

// receiptCosts returns the costs on the nodes' receipts of a mined transaction, each node's once, and whether each usable
// node has a receipt. With one node it asks no node again.
func (w *Writer) receiptCosts(ctx context.Context, t ChainTx, mined minedAttempt) (costs []int64, complete bool) {
	nodes := w.nodes()
	if len(nodes) < 2 {
		return []int64{costOn(mined.receipt)}, true
	}
	found := make([]*chain.Receipt, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() {
			if _, receipts, err := n.nonceAndReceipts(ctx, w.sender, []invoice.Hash{t.Attempts[mined.index].TxHash}); err == nil {
				found[i] = receipts[0]
			}
		})
	}
	group.Wait()
	for _, r := range found {
		if r != nil {
			costs = append(costs, costOn(r))
		}
	}
	return costs, len(costs) == len(nodes)
}

// costOn returns the cost on a receipt, in gwei, or 0 without a plausible one.
func costOn(r *chain.Receipt) int64 {
	if r == nil || r.Cost() == nil {
		return 0
	}
	return max(0, inGwei(r.Cost()))
}

// Defaults of a Config.
const (
	// DefaultPoll is the time between two looks at the chain and the due intents.
	DefaultPoll = time.Second
	// DefaultLeaseTTL is how long a chain is without a writer after one died. With DefaultPoll another one takes over
	// within 10 s.
	DefaultLeaseTTL = 8 * time.Second
)

// Limits of a writer.
const (
	// maxBatch is how many intents one transaction carries: about 5 million gas, below the 16.7 million that EIP-7825
	// allows.
	maxBatch = 200
	// maxAuthorizations is how many authorizations one transaction carries: about 5 million
	// gas, or less if accounts are deployed.
	maxAuthorizations = 25
	// maxDueAuthorizations and maxAuthorizationPages are how many due authorizations one round reads: in a page, and
	// how many pages. maxSimulations is how many of them it simulates, with a few calls each.
	maxDueAuthorizations  = 200
	maxAuthorizationPages = 50
	maxSimulations        = 2 * maxAuthorizations
	// maxFailedSimulations is after how many simulations without an answer a round simulates no more: each may take
	// chain.CallTimeout.
	maxFailedSimulations = 2
	// authorizationBudget, sweepBudget and registryBudget are the parts of the daily budget, in percent, up to which a
	// kind of work may begin a transaction. Payers wait for authorizations, merchants' money for sweeps, and no payment
	// for commitments, which any merchant can make necessary without limit.
	authorizationBudget = 100
	sweepBudget         = 90
	registryBudget      = 75
	// retryAuthorization is the pause after which an authorization that would be reverted, and may be public, is
	// simulated again. The pause doubles each time, also after transactions that did not carry it out.
	retryAuthorization = 15 * time.Second
	// txGas is the most gas of a transaction in addition to the gas of its items.
	txGas = 100_000
	// intentGas is the most gas of an intent. Closing a commitment that has not expired takes about 25,000, with new
	// storage.
	intentGas = 40_000
	// maxPolled is how many nodes are asked to check another node's answer.
	maxPolled = 3
	// maxForeign is how many pending transactions of other programs are believed.
	maxForeign = 16
	// tipBlocks is how many blocks of the fee history the tip is taken from, as the median of their medians.
	tipBlocks = 20
	// maxPages is how many pages of due intents, of maxBatch each, one round looks through for some that can be sent.
	maxPages = 10
	// maxAttempts is how many attempts of a transaction may be signed.
	maxAttempts = 64
	// gasMargin is added to an estimate, in percent: the contract's state may change before the transaction is carried
	// out.
	gasMargin = 25
	// bumpAfter and bumpBlocks define when a transaction is stuck: this long and this many blocks after this writer first
	// broadcast it.
	bumpAfter  = 30 * time.Second
	bumpBlocks = 3
	// rebroadcastAfter is when a transaction that is not mined is broadcast again, in case it was dropped.
	rebroadcastAfter = 15 * time.Second
	// harmlessAfter is when a transaction that all nodes refuse is replaced by a transaction that does nothing.
	harmlessAfter = 5 * time.Minute
	// lostAfter is how long a transaction must have no receipt while its nonce is used, before the writer concludes
	// that another transaction used the nonce: nodes behind one endpoint differ for a while.
	lostAfter = 30 * time.Second
	// firstAfter is the same before the first transaction of a sender, because other programs, such as the one that
	// deployed the registry, used its nonces.
	firstAfter = 3 * time.Second
	// compareTimeout bounds the query of how many nonces an account has used.
	compareTimeout = 5 * time.Second
	// noteEvery is how often a writer makes that query while it has no transactions to send. After sending by hand, a
	// person must wait a minute before stopping the service.
	noteEvery = time.Minute
	// foreignAfter is how long a pending transaction of another program may delay ours before ours takes its nonce.
	foreignAfter = 5 * time.Minute
	// blockerCheckEvery is how often the writer checks whether transactions can be sent again.
	blockerCheckEvery = 5 * time.Second
	// blockerMaxAge is how long a blocker is judged by the transaction that was blocked; then everything is checked
	// again.
	blockerMaxAge = time.Minute
	// skipFor is how long an intent that the registry refused on its own waits until it is tried again.
	skipFor = 10 * time.Minute
	// countEvery is how often due items are counted.
	countEvery = 5 * time.Second
	// sweepGas is the assumed gas of sweeping one deposit before the first sweep, and minSweepGas is the least assumed
	// gas afterwards.
	sweepGas    = 90_000
	minSweepGas = 30_000
	// maxSweepGas is the most gas of sweeping one deposit: the factory's limit, and the calldata and log.
	maxSweepGas = 510_000
	// sweepRetry is how long a deposit waits after a transaction did not sweep it. The wait doubles each time, up to
	// sweepRetryMax.
	sweepRetry    = 10 * time.Minute
	sweepRetryMax = 24 * time.Hour
	// sweepCheckEvery is how often deposits that wait for a lower gas price are checked.
	sweepCheckEvery = 15 * time.Second
	// releaseTimeout bounds releasing the lease at the end.
	releaseTimeout = 5 * time.Second
)
