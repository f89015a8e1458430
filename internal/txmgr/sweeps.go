package txmgr

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// sweepWork sends final deposits from deposit addresses to the merchants, when the chain's policy or a command requests
// it. Its items are queued sweeps. The indexer removes a sweep from the queue when its transfer is final.
type sweepWork struct {
	w *Writer

	// The fields below are a cache: a new writer begins without it.
	batch     int       // number of deposits in the next transaction
	after     string    // the merchant that was served last
	gas       uint64    // recent gas of sweeping one deposit
	notBefore time.Time // the policy sweeps no deposits before this time
	waiting   string    // the reason, unless there was nothing to sweep
	dueSince  time.Time // since when a sweep is due and no transaction was mined; zero while no sweep is due
}

func newSweepWork(w *Writer) *sweepWork { return &sweepWork{w: w, batch: maxBatch, gas: sweepGas} }

func (k *sweepWork) carries(kind TxKind) bool { return kind == TxSweep }

func (k *sweepWork) budgetPercent() uint64 { return sweepBudget }

func (k *sweepWork) resign() { k.dueSince, k.notBefore = time.Time{}, time.Time{} }

// check always succeeds: any account may sweep.
func (k *sweepWork) check(context.Context) error { return nil }

// count counts the queued sweeps.
func (k *sweepWork) count(ctx context.Context) error {
	w := k.w
	n, err := ledger.CountSweeps(ctx, w.conf.Store, w.conf.Chain.Key, k.tokens())
	if err != nil {
		return err
	}
	if n.Waiting == 0 {
		k.waiting = "" // others may have swept
	}
	m := w.conf.Metrics.sweeps
	m.queued.WithLabelValues(w.conf.Chain.Key).Set(float64(n.Waiting))
	m.failing.WithLabelValues(w.conf.Chain.Key).Set(float64(n.Failing))
	stalled := 0.0
	if !k.dueSince.IsZero() {
		stalled = max(0, w.conf.Schedule().Sub(k.dueSince).Seconds())
	}
	m.stalled.WithLabelValues(w.conf.Chain.Key).Set(stalled)
	w.update(func(s *Status) { s.Sweeps = SweepStatus{Queue: n, Waiting: k.waiting} })
	return nil
}

// tokens returns the chain's tokens, including former ones.
func (k *sweepWork) tokens() []invoice.Address {
	all := k.w.conf.Chain.AllTokens()
	tokens := make([]invoice.Address, len(all))
	for i, t := range all {
		tokens[i] = t.Address
	}
	return tokens
}

// finish makes sweeps due again if their transactions failed long enough ago.
func (k *sweepWork) finish(ctx context.Context, _ ledger.Cursor) error {
	return ledger.RetrySweeps(ctx, k.w.conf.Store, k.w.lease, k.w.conf.Chain.Key, k.w.conf.Schedule())
}

// next returns the sweeps that commands requested and those that the policy wants now, of one factory.
func (k *sweepWork) next(ctx context.Context) (batch, error) {
	due, err := ledger.RequestedSweeps(ctx, k.w.conf.Store, k.w.conf.Chain.Key, k.batch)
	if err != nil {
		return batch{}, err
	}
	more, err := k.dueByPolicy(ctx, k.batch-len(due))
	if err != nil {
		return batch{}, err
	}
	if len(more) > 0 {
		k.after = more[len(more)-1].MerchantID
	}
	due = k.ofOneFactory(append(due, more...))
	if len(due) == 0 {
		k.dueSince = time.Time{}
		return batch{}, nil
	}
	if k.dueSince.IsZero() {
		k.dueSince = k.w.conf.Schedule()
	}
	ids := make([]string, len(due))
	for i, s := range due {
		ids[i] = s.ID
	}
	return batch{
		kind: TxSweep, to: common.Address(due[0].Factory), items: ids,
		most: func(n int) uint64 { return txGas + uint64(n)*maxSweepGas },
		pack: func(n int) []byte { return chain.PackSweeps(calls(due[:n])) },
		refused: func(ctx context.Context, n int, why error) error {
			return k.refused(ctx, due[:n], why)
		},
	}, nil
}

// ofOneFactory returns the sweeps of the first one's factory, each once.
func (k *sweepWork) ofOneFactory(all []ledger.QueuedSweep) []ledger.QueuedSweep {
	seen := make(map[string]bool, len(all))
	var some []ledger.QueuedSweep
	for _, s := range all {
		if s.Factory == all[0].Factory && !seen[s.ID] {
			seen[s.ID] = true
			some = append(some, s)
		}
	}
	return some
}

// calls returns the arguments that sweep the deposits.
func calls(sweeps []ledger.QueuedSweep) []contracts.Sweep {
	all := make([]contracts.Sweep, len(sweeps))
	for i, s := range sweeps {
		all[i] = contracts.Sweep{Merchant: common.Address(s.Merchant), Id: s.CommitmentID, Token: common.Address(s.Token)}
	}
	return all
}

// delaySingle makes a deposit wait if it failed as the only one of its batch. Larger batches are tried again in halves.
func (k *sweepWork) delaySingle(ctx context.Context, failed []ledger.QueuedSweep) error {
	if len(failed) != 1 {
		return nil
	}
	result := ledger.SweepResult{ID: failed[0].ID, RetryAt: k.retryAt(failed[0])}
	return ledger.SettleSweeps(ctx, k.w.conf.Store, k.w.lease, []ledger.SweepResult{result})
}

// refused halves the next batches after the factory refused one, which it does only if the gas is too low. A deposit
// that is refused on its own waits.
func (k *sweepWork) refused(ctx context.Context, sweeps []ledger.QueuedSweep, why error) error {
	k.batch = max(1, len(sweeps)/2)
	if err := k.delaySingle(ctx, sweeps); err != nil {
		return err
	}
	return fmt.Errorf("the factory %s refuses to sweep %d deposits: %w", sweeps[0].Factory, len(sweeps), why)
}

// reverted halves the next batches, like refused. A deposit that was reverted on its own waits, since each such
// transaction costs gas.
func (k *sweepWork) reverted(ctx context.Context, t ChainTx) (then func() error, err error) {
	n, err := sweepsIn(t)
	if err != nil {
		return nil, err
	}
	k.batch = max(1, n/2)
	sweeps, err := ledger.SweepsOfTx(ctx, k.w.conf.Store, t.ID)
	return func() error { return k.delaySingle(ctx, sweeps) }, err
}

// sweepsIn returns how many deposits a transaction sweeps.
func sweepsIn(t ChainTx) (int, error) {
	tx, err := decode(t.Attempts[0])
	if err != nil {
		return 0, err
	}
	// A selector, the offset of the only argument, its length, and elements of three words.
	return (len(tx.Data()) - 4 - 2*32) / (3 * 32), nil
}

// mined measures how many deposits a transaction swept and how much gas it took.
func (k *sweepWork) mined(t ChainTx, r *chain.Receipt) {
	k.batch, k.dueSince = min(2*k.batch, maxBatch), time.Time{}
	if n, err := sweepsIn(t); err == nil && n > 0 {
		k.gas = max(uint64(r.GasUsed)/uint64(n), minSweepGas)
	}
	key, m := k.w.conf.Chain.Key, k.w.conf.Metrics.sweeps
	for _, e := range chain.SweepEvents(t.Destination, r) {
		if e.Failed {
			m.results.WithLabelValues(key, "failed").Inc()
			continue
		}
		m.results.WithLabelValues(key, "swept").Inc()
		if token, ok := k.w.conf.Chain.TokenAt(e.Token); ok {
			m.amount.WithLabelValues(key, token.Currency).Add(inUnits(e.Amount, token.Decimals))
		}
	}
}

// settle ends a final transaction's work on the deposits that are still in the queue. Deposits that it did not sweep
// wait, each longer than the last time.
func (k *sweepWork) settle(ctx context.Context, t ChainTx, r *chain.Receipt) error {
	sweeps, err := ledger.SweepsOfTx(ctx, k.w.conf.Store, t.ID)
	if err != nil {
		return err
	}
	type deposit struct{ address, token invoice.Address }
	events := make(map[deposit]chain.SweepEvent)
	for _, e := range chain.SweepEvents(t.Destination, r) {
		events[deposit{e.Deposit, e.Token}] = e
	}
	results := make([]ledger.SweepResult, len(sweeps))
	for i, s := range sweeps {
		e, found := events[deposit{s.Address, s.Token}]
		results[i] = ledger.SweepResult{ID: s.ID, Gone: s.Amount.IsZero()} // without recorded deposits: tried once
		if !found && results[i].Gone || found && !e.Failed {
			continue
		}
		if !results[i].Gone {
			results[i].RetryAt = k.retryAt(s)
		}
		k.w.conf.Logger.Warn("sweep failed", "deposit", s.Address, "token", s.Token, "invoice", s.InvoiceID,
			"merchant", s.MerchantID, "tx", r.TxHash, "retry_at", results[i].RetryAt)
	}
	return ledger.SettleSweeps(ctx, k.w.conf.Store, k.w.lease, results)
}

// inUnits converts minor units to units, only for metrics.
func inUnits(amount *big.Int, decimals int) float64 {
	units := new(big.Rat).SetFrac(amount, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	f, _ := units.Float64()
	return f
}

// retryAt returns when a sweep is sent again after one more failure.
func (k *sweepWork) retryAt(s ledger.QueuedSweep) time.Time {
	wait := sweepRetryMax
	if s.Failures < 16 {
		wait = min(wait, sweepRetry<<s.Failures)
	}
	return k.w.conf.Schedule().Add(wait)
}

// dueByPolicy returns up to limit queued sweeps that the chain's policy wants now. It asks a node for the gas price
// only if a queued sweep depends on it.
func (k *sweepWork) dueByPolicy(ctx context.Context, limit int) ([]ledger.QueuedSweep, error) {
	p := k.w.conf.Chain.Sweep
	if limit <= 0 || p.Time() == chain.SweepNever || k.w.conf.Schedule().Before(k.notBefore) {
		return nil, nil
	}
	k.waiting = ""
	f := ledger.SweepFilter{ChainKey: k.w.conf.Chain.Key}
	if p.Time() == chain.SweepDaily {
		f.QueuedBefore = p.Boundary(k.w.conf.Now())
	}
	due, err := k.fairly(ctx, f, limit, new(big.Int))
	switch {
	case err != nil:
		return nil, err
	case len(due) == 0:
		switch p.Time() {
		case chain.SweepAbove, chain.SweepDaily:
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
	k.notBefore, k.waiting = k.w.conf.Schedule().Add(sweepCheckEvery), reason
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

// auditedCost is the audit log's entry for the cost of a mined transaction for a merchant's deposits.
type auditedCost struct {
	ChainKey string `json:"chainKey"`
	Deposits int64  `json:"deposits,omitempty"` // number of deposits that it was sent to sweep
	CostGwei string `json:"costGwei"`
	Reverted bool   `json:"reverted,omitempty"`
}

// cost returns the cost of a mined transaction and its entries for the audit log: one for each merchant with deposits
// that it was sent to sweep, and no entry for other kinds or for a cost that is recorded already: a reorg, or a node that
// is behind, makes a transaction look as if it was not mined. The cost is nil while it is not known.
func (w *Writer) cost(ctx context.Context, t ChainTx, mined minedAttempt) (*ledger.TxCost, []access.Entry, error) {
	cost := w.spent(ctx, t, mined)
	if cost == nil {
		return nil, nil, nil
	}
	if t.Spent != nil {
		if cost.Gwei == t.Spent.Gwei {
			return t.Spent, nil, nil
		}
		cost.At, cost.Scheduled = t.Spent.At, t.Spent.Scheduled
	}
	if t.Kind != TxSweep {
		return cost, nil, nil
	}
	merchants, err := TxMerchants(ctx, w.conf.Store, t.ID)
	if err != nil {
		return nil, nil, err
	}
	if len(merchants) == 0 {
		merchants = []TxMerchant{{}} // sent by an earlier release
	}
	entries := make([]access.Entry, len(merchants))
	for i, m := range merchants {
		entries[i] = access.NewEntry(ctx, cost.At, access.Change{
			MerchantID: m.MerchantID, Action: access.ActionDepositSwept, Object: mined.receipt.TxHash.String(),
			After: auditedCost{t.ChainKey, m.Items, strconv.FormatInt(m.Share(cost.Gwei), 10), !mined.receipt.Succeeded()},
		})
	}
	return cost, entries, nil
}
