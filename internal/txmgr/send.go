package txmgr

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// draft is a transaction before it is signed.
type draft struct {
	items []string // ids of the items it carries
	data  []byte
	gas   uint64
	head  *block
	offer fees
}

// cost returns the maximum cost of the transaction, in wei.
func (d draft) cost() *big.Int { return costOf(d.gas, d.offer.cap) }

// sendNext sends the transaction of the first kind of work that has one. An error of one kind does not block the
// others.
func (w *Writer) sendNext(ctx context.Context, cursor ledger.Cursor) error {
	var troubles []error
	for _, k := range w.works {
		sent, err := w.sendOf(ctx, cursor, k)
		troubles = append(troubles, err)
		if sent || errors.Is(err, db.ErrConflict) {
			break
		}
	}
	return errors.Join(troubles...)
}

// sendOf finishes work of one kind that needs no transaction, and sends one for the rest. The result is true if a
// transaction is in flight, or if no transaction can be sent now.
func (w *Writer) sendOf(ctx context.Context, cursor ledger.Cursor, k work) (bool, error) {
	if err := k.finish(ctx, cursor); err != nil {
		return false, err
	}
	if err := w.blocked(ctx, k); err != nil {
		return false, err
	}
	b, err := k.next(ctx)
	if err != nil || len(b.items) == 0 {
		return false, err
	}
	nonce, free, err := w.nextNonce(ctx)
	if err != nil || !free {
		return true, err
	}
	return w.submit(ctx, nonce, k, b)
}

// draft prepares a transaction for a batch, or for the part of it that stays within the limits of one transaction.
func (w *Writer) draft(ctx context.Context, k work, b batch) (draft, error) {
	n := len(b.items)
	for {
		d := draft{items: b.items[:n], data: b.pack(n)}
		gas, refused, err := w.gasOf(ctx, b.to, d.data, b.most(n), b.kind == TxAuthorization)
		switch {
		case refused:
			return d, b.refused(ctx, n, err)
		case err != nil:
			return d, err
		}
		d.gas = min(gas, w.conf.Chain.MaxTxGas)
		if d.head, d.offer, err = w.price(ctx); err != nil {
			return d, w.noteBlocker(k, d.gas, err)
		}
		fits := min(w.maxFitting(n, d.cost()), n*int(d.gas)/int(gas))
		if fits = max(1, fits); fits == n {
			return d, w.noteBlocker(k, d.gas, w.checkSpend(ctx, d.cost(), "", k.budgetPercent()))
		}
		n = fits
	}
}

// submit signs a transaction for a batch, saves it and broadcasts it. The result is true once it is saved.
func (w *Writer) submit(ctx context.Context, nonce uint64, k work, b batch) (bool, error) {
	d, err := w.draft(ctx, k, b)
	if err != nil {
		return false, err
	}
	t := ChainTx{
		ID: w.ids.New(invoice.PrefixTx), ChainKey: w.conf.Chain.Key, Sender: w.sender, Nonce: nonce,
		Kind: b.kind, Destination: invoice.Address(b.to), Status: TxSent, CreatedAt: w.conf.Now(), Scheduled: w.conf.Schedule(), Reserved: inGwei(d.cost()),
	}
	attempt, err := w.sign(nonce, b.to, d.gas, d.data, d.offer)
	if err != nil {
		return false, err
	}
	t.Attempts = []TxAttempt{attempt}
	if err := SaveChainTx(ctx, w.conf.Store, w.lease, t, d.items); err != nil {
		return false, fmt.Errorf("save a transaction of kind %s: %w", b.kind, err)
	}
	w.conf.Metrics.txs.WithLabelValues(w.conf.Chain.Key, string(b.kind), string(TxSent)).Inc()
	w.conf.Logger.Info("transaction signed", "tx", attempt.TxHash, "kind", b.kind, "nonce", nonce, "items", len(d.items))
	w.update(func(s *Status) { s.InFlight++ })
	return true, w.broadcastDue(ctx, t, d.head, true)
}

// broadcastDue broadcasts a transaction if that is due. If the first in line is stuck or no node accepts it, it is
// replaced by another attempt.
func (w *Writer) broadcastDue(ctx context.Context, t ChainTx, head *block, first bool) error {
	now, attempt := w.conf.Schedule(), t.Attempts[len(t.Attempts)-1]
	f := w.broadcasts[t.ID]
	stuck := f.attempt == attempt.TxHash && head.Number.N >= f.since+bumpBlocks &&
		now.Sub(f.began) >= bumpAfter
	unwanted := f.attempt == attempt.TxHash && f.refused() && now.Sub(f.at) >= rebroadcastAfter
	var trouble error
	if first && ((stuck || unwanted) && !errors.Is(f.err, errInsufficientFunds) || w.isRefusedByRule(t)) {
		attempt, trouble = w.replace(ctx, t, head, f)
	}
	if f.attempt != attempt.TxHash {
		f = broadcastState{attempt: attempt.TxHash, since: head.Number.N, began: now}
	} else if now.Sub(f.at) < rebroadcastAfter {
		return errors.Join(trouble, f.outcome())
	}
	f.at, f.used, f.held = now, false, false
	if f.err = w.node.broadcast(ctx, attempt.Raw); f.err != nil {
		w.explain(ctx, t, attempt, &f)
	}
	w.broadcasts[t.ID] = f
	if f.err == nil && attempt.AcceptedAt.IsZero() {
		trouble = errors.Join(trouble, acceptAttempt(ctx, w.conf.Store, w.lease, attempt.TxHash, w.conf.Now()))
	}
	return errors.Join(trouble, f.outcome())
}

// nextFees returns the fees of the next attempt of a stuck transaction, or nil if the last attempt is as good.
//
// An attempt that no node accepted is replaced at market fees, even if they are lower. An accepted attempt is replaced
// with an eighth more, up to twice the market fees: above that, the fee is not the reason why it is not mined. If
// another transaction holds the nonce, steps of an eighth would take too long, and the fee is doubled within the
// limits.
func (w *Writer) nextFees(t ChainTx, gas uint64, market fees, held bool) (*fees, error) {
	last := t.Attempts[len(t.Attempts)-1]
	limit := fees{cap: w.maxFeeFor(gas), tip: new(big.Int).Lsh(wei(w.conf.Chain.Limits.MaxTipWei), 1)}
	former, why := acceptedFees(t), errFeeCapExceeded
	switch {
	case held:
		if former.cap.Sign() == 0 {
			former = fees{cap: last.FeeCap, tip: last.TipCap}
		}
		market.cap = greatest(market.cap, new(big.Int).Lsh(last.FeeCap, 1))
		market.tip = greatest(market.tip, new(big.Int).Lsh(last.TipCap, 1))
	case former.cap.Sign() == 0:
		offer := fees{cap: least(market.cap, limit.cap)}
		offer.tip = least(market.tip, offer.cap)
		same := gas == attemptGas(last) && offer.nearlyEqual(fees{cap: last.FeeCap, tip: last.TipCap})
		if same || len(t.Attempts) >= maxAttempts && gas == attemptGas(last) {
			return nil, nil
		}
		return &offer, nil
	case market.stuckLimit().Cmp(limit.cap) < 0:
		limit.cap, why = market.stuckLimit(), errStuck
	}
	offer, ok := bump(former, market, limit)
	if !ok || len(t.Attempts) >= maxAttempts {
		return nil, fmt.Errorf("%w: transaction %s offers %s wei for a unit of gas after %d attempts, and may offer %s",
			why, last.TxHash, last.FeeCap, len(t.Attempts), limit.cap)
	}
	return &offer, nil
}

// acceptedFees returns the highest fees of the attempts that a node accepted, or 0 if no attempt was accepted.
func acceptedFees(t ChainTx) fees {
	f := fees{cap: new(big.Int), tip: new(big.Int)}
	for _, a := range t.Attempts {
		if !a.AcceptedAt.IsZero() {
			f.cap, f.tip = greatest(f.cap, a.FeeCap), greatest(f.tip, a.TipCap)
		}
	}
	return f
}

// sign signs an attempt of a transaction to a contract: the configured one, or the contract of its earlier attempts.
func (w *Writer) sign(nonce uint64, to common.Address, gas uint64, data []byte, offer fees) (TxAttempt, error) {
	id := new(big.Int).SetUint64(w.conf.Chain.ID)
	tx, err := types.SignNewTx(w.conf.Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, GasTipCap: offer.tip, GasFeeCap: offer.cap, Gas: gas, To: &to, Data: data,
	})
	if err != nil {
		return TxAttempt{}, fmt.Errorf("sign a transaction: %w", err)
	}
	raw, err := tx.MarshalBinary()
	return TxAttempt{
		TxHash: invoice.Hash(tx.Hash()), Raw: raw, FeeCap: offer.cap, TipCap: offer.tip, CreatedAt: w.conf.Now(),
	}, err
}

// attemptGas returns the gas limit of an attempt, or 0 if it cannot be decoded.
func attemptGas(a TxAttempt) uint64 {
	tx, err := decode(a)
	if err != nil {
		return 0
	}
	return tx.Gas()
}

func decode(a TxAttempt) (*types.Transaction, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(a.Raw); err != nil {
		return nil, fmt.Errorf("decode the saved transaction %s: %w", a.TxHash, err)
	}
	return tx, nil
}

// errTooMuchGas is the error of a call that takes more gas than allowed.
var errTooMuchGas = errors.New("the call takes too much gas")

// maxEstimate bounds estimates, so that calculations with them cannot overflow.
const maxEstimate = 1 << 40

// estimators returns the nodes that estimate gas: the first usable one, and the next one if there is one.
func (w *Writer) estimators() []node {
	nodes := w.nodes()
	return append([]node{w.node}, nodes[min(1, len(nodes)):min(2, len(nodes))]...)
}

// estimate returns the gas of a call: the higher of the nodes' estimates, since a transaction with too little gas is
// wasted. It fails if the first node does, or if no transaction takes so little.
func (w *Writer) estimate(ctx context.Context, nodes []node, to common.Address, data []byte) (uint64, error) {
	gas, err := nodes[0].estimate(ctx, w.sender, to, data)
	if err != nil {
		return 0, err
	}
	for _, n := range nodes[1:] {
		if second, err := n.estimate(ctx, w.sender, to, data); err == nil {
			gas = max(gas, second)
		}
	}
	if gas < params.TxGas {
		return 0, fmt.Errorf("eth_estimateGas: the node answered %d, and every transaction takes %d", gas, params.TxGas)
	}
	return min(gas, maxEstimate), nil
}

// gasWithin returns the gas limit of a call: the nodes' estimate and a margin, but not more than most. It fails with
// errTooMuchGas if two estimates in a row are above most.
func (w *Writer) gasWithin(ctx context.Context, nodes []node, to common.Address, data []byte, most uint64) (uint64, error) {
	gas, err := w.estimate(ctx, nodes, to, data)
	if err == nil && gas > most {
		// Rollups count the cost of data as gas, too. An empty transfer to the sender with the same data takes that gas
		// as well.
		var plain uint64
		if plain, err = w.estimate(ctx, nodes, common.Address(w.sender), data); err != nil {
			return 0, err
		}
		own, _ := contracts.TransactionGas(data)
		most += max(plain, own) - own
		gas, err = w.estimate(ctx, nodes, to, data)
	}
	if err != nil {
		return 0, err
	}
	if gas > most {
		return 0, fmt.Errorf("%w: %d by an estimate, and at most %d is paid for", errTooMuchGas, gas, most)
	}
	return min(gas+gas*gasMargin/100, most), nil
}

// errDivided is the error of a call that as many nodes refuse as do not, one of which decides.
var errDivided = errors.New("the nodes disagree whether the call can be carried out")

// gasOf returns the gas limit of a call, and whether err is that the call cannot be carried out. If the word of one
// node must not decide that, the nodes vote, each by its own estimate. If they are divided, one node can only grant the
// call. After it did not, the next one decides, so that no node delays all authorizations until they lapse.
func (w *Writer) gasOf(ctx context.Context, to common.Address, data []byte, most uint64, poll bool) (gas uint64, refused bool, err error) {
	gas, err = w.gasWithin(ctx, w.estimators(), to, data, most)
	if err == nil || !w.node.refuses(ctx, w.sender, to, data, err) {
		return gas, false, err
	}
	nodes := w.nodes()
	if !poll || len(nodes) < 2 {
		return 0, true, err
	}
	nodes[0] = w.node
	refusals, granted := 0, false
	for i, n := range nodes {
		switch own, ownErr := w.gasWithin(ctx, nodes[i:i+1], to, data, most); {
		case ownErr == nil:
			refusals, gas, granted = refusals-1, max(gas, own), granted || i == w.decides%len(nodes)
		case n.refuses(ctx, w.sender, to, data, ownErr):
			refusals++
		}
	}
	switch {
	case refusals > 0:
		return 0, true, err
	case refusals == 0 && !granted:
		w.decides++
		return 0, true, errDivided
	}
	return gas, false, nil
}

// Errors that block every transaction of one kind of work. Each ends through an event outside of the writer, which then
// continues without a restart.
var (
	errInsufficientFunds = errors.New("the operator's account has too little for gas; send it funds")
	errFeeCapExceeded    = errors.New("gas costs more than allowed")
	errStuck             = errors.New("a transaction is not mined, though it offers more than what others pay")
	errBudget            = errors.New("the writer's daily budget is used up")
	errRole              = errors.New("the registry refuses the operator's account; grant it OPERATOR_ROLE, or correct the registry's address or the key")
)

// blockers are all blockers, with their names in the metric.
var blockers = []struct {
	err    error
	reason string
}{{errInsufficientFunds, "funds"}, {errFeeCapExceeded, "fees"}, {errBudget, "budget"}, {errStuck, "stuck"}, {errRole, "role"}}

// blocker is the reason why no transaction of one kind of work can be sent. While there is one, the work is not asked
// for more: a full batch of intents takes 200 calls.
type blocker struct {
	err       error
	gas       uint64    // gas of the transaction that was blocked
	checkedAt time.Time // time of the last check
	since     time.Time // time of the first occurrence
}

// noteBlocker records err as a blocker of a kind of work if it is one, with the gas of the blocked transaction, and
// returns err unchanged.
func (w *Writer) noteBlocker(k work, gas uint64, err error) error {
	if blockerOf(err) != nil {
		now := w.conf.Schedule()
		w.blockers[k] = &blocker{err, gas, now, now}
	}
	return err
}

// blockerOf returns the blocker that err wraps, or nil.
func blockerOf(err error) error {
	for _, b := range blockers {
		if errors.Is(err, b.err) {
			return b.err
		}
	}
	return nil
}

// blocked returns the present blocker of a kind of work, or nil. It checks every
// blockerCheckEvery whether the blocker is gone.
func (w *Writer) blocked(ctx context.Context, k work) error {
	b, now := w.blockers[k], w.conf.Schedule()
	if b == nil {
		return nil
	}
	if now.Sub(b.checkedAt) < blockerCheckEvery {
		return b.err
	}
	if now.Sub(b.since) >= blockerMaxAge {
		delete(w.blockers, k) // the recorded gas may come from a wrong answer
		return nil
	}
	err := k.check(ctx)
	if err == nil {
		err = w.checkAffordable(ctx, k, b.gas)
	}
	if err != nil {
		b.err, b.checkedAt = err, now
		return err
	}
	delete(w.blockers, k)
	return nil
}

// checkAffordable fails if the sender cannot, or may not, pay for this much gas for a kind of work now.
func (w *Writer) checkAffordable(ctx context.Context, k work, gas uint64) error {
	_, offer, err := w.price(ctx)
	if err != nil {
		return err
	}
	return w.checkSpend(ctx, costOf(gas, offer.cap), "", k.budgetPercent())
}
