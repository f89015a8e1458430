package txmgr

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/contracts"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// draft is a transaction before it is signed.
type draft struct {
	intents []store.Intent
	data    []byte
	gas     uint64
	head    *block
	offer   fees
}

// cost returns what the transaction may cost, in wei.
func (d draft) cost() *big.Int { return costOf(d.gas, d.offer.cap) }

// draft prepares a transaction for a batch, or for as much of it as stays within the cost
// of one transaction.
func (w *Writer) draft(ctx context.Context, kind invoice.IntentKind, batch []store.Intent) (draft, error) {
	for {
		commitments := make([]invoice.Hash, len(batch))
		for i, in := range batch {
			commitments[i] = in.CommitmentID
		}
		d := draft{intents: batch, data: pack(kind, commitments)}
		var err error
		d.gas, err = w.gas(ctx, w.registry(), d.data)
		if reverted(err) {
			return d, w.classifyRevert(ctx, kind, commitments, err)
		}
		if err != nil {
			return d, err
		}
		if d.head, d.offer, err = w.price(ctx); err != nil {
			return d, w.noteBlocker(d.gas, err)
		}
		fits := w.maxFitting(len(batch), d.cost())
		if fits == len(batch) {
			return d, w.noteBlocker(d.gas, w.checkSpend(ctx, d.cost(), ""))
		}
		batch = batch[:fits]
	}
}

// submit signs a transaction for a batch, saves it and broadcasts it.
func (w *Writer) submit(ctx context.Context, nonce uint64, kind invoice.IntentKind, batch []store.Intent) error {
	d, err := w.draft(ctx, kind, batch)
	if err != nil {
		return err
	}
	intents := make([]string, len(d.intents))
	for i, in := range d.intents {
		intents[i] = in.ID
	}
	t := store.ChainTx{
		ID: w.ids.New(invoice.PrefixTx), ChainKey: w.conf.Chain.Key, Sender: w.sender, Nonce: nonce,
		Kind: kind, Status: store.TxSent, CreatedAt: w.conf.Now(), Reserved: inGwei(d.cost()),
	}
	attempt, err := w.sign(nonce, w.registry(), d.gas, d.data, d.offer)
	if err != nil {
		return err
	}
	t.Attempts = []store.TxAttempt{attempt}
	if err := w.conf.Store.SaveChainTx(ctx, w.lease, t, intents); err != nil {
		return fmt.Errorf("save a registry transaction: %w", err)
	}
	w.conf.Metrics.txs.WithLabelValues(w.conf.Chain.Key, string(store.TxSent)).Inc()
	w.conf.Logger.Info("registry transaction signed", "tx", attempt.TxHash, "kind", kind, "nonce", nonce, "commitments", len(intents))
	w.update(func(s *Status) { s.InFlight++ })
	return w.broadcastDue(ctx, t, d.head, true)
}

// gas returns the gas limit of a call of the registry: the higher of two nodes' estimates,
// since a transaction with too little gas is wasted, and a margin.
func (w *Writer) gas(ctx context.Context, to common.Address, data []byte) (uint64, error) {
	gas, err := w.node.estimate(ctx, w.sender, to, data)
	if err != nil {
		return 0, err
	}
	if nodes := w.nodes(); len(nodes) > 1 {
		if second, err := nodes[1].estimate(ctx, w.sender, to, data); err == nil {
			gas = max(gas, second)
		}
	}
	if gas > maxGas {
		return 0, fmt.Errorf("eth_estimateGas: a node answered %d, and no transaction takes more than %d", gas, maxGas)
	}
	return gas + gas*gasMargin/100, nil
}

// broadcastDue broadcasts a transaction when that is due. If the first in line is stuck or
// no node accepts it, it is replaced by another attempt.
func (w *Writer) broadcastDue(ctx context.Context, t store.ChainTx, head *block, first bool) error {
	now, attempt := w.conf.Now(), t.Attempts[len(t.Attempts)-1]
	f := w.broadcasts[t.ID]
	stuck := f.attempt == attempt.TxHash && uint64(*head.Number) >= f.since+bumpBlocks &&
		now.Sub(attempt.CreatedAt) >= bumpAfter
	unwanted := f.attempt == attempt.TxHash && f.refused() && now.Sub(f.at) >= rebroadcastAfter
	var trouble error
	if first && (stuck || unwanted) && !insufficientFunds(f.err) {
		attempt, trouble = w.replace(ctx, t, head, replacementUnderpriced(f.err))
	}
	if f.attempt != attempt.TxHash {
		f = broadcastState{attempt: attempt.TxHash, since: uint64(*head.Number)}
	} else if now.Sub(f.at) < rebroadcastAfter {
		return errors.Join(trouble, f.outcome())
	}
	f.at, f.err = now, w.node.broadcast(ctx, attempt.Raw)
	if insufficientFunds(f.err) {
		f.err = w.explainFunds(ctx, attempt, f.err)
	}
	w.broadcasts[t.ID] = f
	if f.err == nil && attempt.AcceptedAt.IsZero() {
		trouble = errors.Join(trouble, w.conf.Store.AcceptAttempt(ctx, w.lease, attempt.TxHash, now))
	}
	return errors.Join(trouble, f.outcome())
}

// replace signs and saves another attempt of a transaction, and returns it. Otherwise it
// returns the last attempt, and why there is no other.
func (w *Writer) replace(ctx context.Context, t store.ChainTx, head *block, underpriced bool) (store.TxAttempt, error) {
	last := t.Attempts[len(t.Attempts)-1]
	old, err := decode(last)
	if err != nil {
		return last, err
	}
	market, err := w.marketFees(ctx, head)
	if err != nil {
		return last, err
	}
	gas := old.Gas()
	if acceptedFees(t).cap.Sign() == 0 {
		// A wrong estimate may be why no node took it.
		if fresh, err := w.gas(ctx, *old.To(), old.Data()); err == nil && (4*fresh < 3*gas || 4*fresh > 5*gas) {
			gas = fresh
		}
	}
	offer, err := w.nextFees(t, gas, market, underpriced)
	if err != nil || offer == nil {
		return last, err
	}
	cost := costOf(gas, offer.cap)
	if err := w.checkSpend(ctx, cost, t.ID); err != nil {
		return last, err // the last one may still be carried out
	}
	attempt, err := w.sign(t.Nonce, *old.To(), gas, old.Data(), *offer)
	if err != nil {
		return last, err
	}
	reserved := greatest(cost, costOf(gas, acceptedFees(t).cap))
	if err := w.conf.Store.AddAttempt(ctx, w.lease, t.ID, len(t.Attempts)+1, attempt, inGwei(reserved)); err != nil {
		return last, fmt.Errorf("save another attempt of a registry transaction: %w", err)
	}
	w.conf.Metrics.bumps.WithLabelValues(w.conf.Chain.Key).Inc()
	w.conf.Logger.Info("registry transaction replaced", "tx", attempt.TxHash, "replaces", last.TxHash,
		"nonce", t.Nonce, "fee_cap", offer.cap, "tip_cap", offer.tip)
	return attempt, nil
}

// nextFees returns the fees of the next attempt of a stuck transaction, or nil when the
// last attempt is as good.
//
// An attempt that no node accepted is replaced at market fees, even if they are lower. An
// accepted one is replaced by an eighth more, up to twice the market: above that, the fee
// is not what keeps it from being mined. When another transaction holds the nonce, eighths
// would take too long, and the fee is doubled within the limits.
func (w *Writer) nextFees(t store.ChainTx, gas uint64, market fees, underpriced bool) (*fees, error) {
	last := t.Attempts[len(t.Attempts)-1]
	limit := fees{cap: w.maxFeeFor(gas), tip: new(big.Int).Lsh(wei(w.conf.Chain.Limits.MaxTipWei), 1)}
	former, why := acceptedFees(t), errFeeCapExceeded
	switch {
	case underpriced:
		if former.cap.Sign() == 0 {
			former = fees{cap: last.FeeCap, tip: last.TipCap}
		}
		market.cap = greatest(market.cap, new(big.Int).Lsh(last.FeeCap, 1))
		market.tip = greatest(market.tip, new(big.Int).Lsh(last.TipCap, 1))
	case former.cap.Sign() == 0:
		offer := fees{cap: least(market.cap, limit.cap)}
		offer.tip = least(market.tip, offer.cap)
		same := gas == attemptGas(last) && offer.nearlyEqual(fees{cap: last.FeeCap, tip: last.TipCap})
		if same || len(t.Attempts) >= maxAttempts {
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

// acceptedFees returns the highest fees of the attempts that a node accepted; 0 when none
// did.
func acceptedFees(t store.ChainTx) fees {
	f := fees{cap: new(big.Int), tip: new(big.Int)}
	for _, a := range t.Attempts {
		if !a.AcceptedAt.IsZero() {
			f.cap, f.tip = greatest(f.cap, a.FeeCap), greatest(f.tip, a.TipCap)
		}
	}
	return f
}

// sign signs an attempt of a transaction to a registry: the configured one, or the one
// that its earlier attempts call.
func (w *Writer) sign(nonce uint64, registry common.Address, gas uint64, data []byte, offer fees) (store.TxAttempt, error) {
	id := new(big.Int).SetUint64(w.conf.Chain.ID)
	tx, err := types.SignNewTx(w.conf.Key, types.LatestSignerForChainID(id), &types.DynamicFeeTx{
		ChainID: id, Nonce: nonce, GasTipCap: offer.tip, GasFeeCap: offer.cap, Gas: gas, To: &registry, Data: data,
	})
	if err != nil {
		return store.TxAttempt{}, fmt.Errorf("sign a registry transaction: %w", err)
	}
	raw, err := tx.MarshalBinary()
	return store.TxAttempt{
		TxHash: invoice.Hash(tx.Hash()), Raw: raw, FeeCap: offer.cap, TipCap: offer.tip, CreatedAt: w.conf.Now(),
	}, err
}

// pack writes the calldata that has the registry open or close commitments.
func pack(kind invoice.IntentKind, commitments []invoice.Hash) []byte {
	ids := make([][32]byte, len(commitments))
	for i, id := range commitments {
		ids[i] = id
	}
	if kind == invoice.IntentClose {
		return contracts.NewInvoiceRegistry().PackClose(ids)
	}
	return contracts.NewInvoiceRegistry().PackOpen(ids)
}

// commitmentsOf decodes the kind and commitments of a transaction.
func commitmentsOf(t store.ChainTx) (invoice.IntentKind, []invoice.Hash, error) {
	tx, err := decode(t.Attempts[0])
	if err != nil {
		return "", nil, err
	}
	// A selector, the offset of the only argument, its length, its elements.
	words := tx.Data()[4+2*32:]
	ids := make([]invoice.Hash, len(words)/32)
	for i := range ids {
		ids[i] = invoice.Hash(words[32*i:])
	}
	return t.Kind, ids, nil
}

// attemptGas returns the gas limit of an attempt, or 0 if it cannot be decoded.
func attemptGas(a store.TxAttempt) uint64 {
	tx, err := decode(a)
	if err != nil {
		return 0
	}
	return tx.Gas()
}

func decode(a store.TxAttempt) (*types.Transaction, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(a.Raw); err != nil {
		return nil, fmt.Errorf("decode the saved transaction %s: %w", a.TxHash, err)
	}
	return tx, nil
}
