package txmgr

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/quittance/quittance/internal/invoice"
)

// replace signs and saves another attempt of a transaction, and returns it. Otherwise it returns the last attempt, and
// why there is no other one. f is the state of the last attempt.
func (w *Writer) replace(ctx context.Context, t ChainTx, head *block, f broadcastState) (TxAttempt, error) {
	last := t.Attempts[len(t.Attempts)-1]
	old, err := decode(last)
	if err != nil {
		return last, err
	}
	market, err := w.marketFeesAt(ctx, head)
	if err != nil {
		return last, err
	}
	call, err := w.nextCall(ctx, t, old, f)
	if err != nil {
		return last, err
	}
	offer, err := w.nextFees(t, call.gas, market, f.held)
	if err != nil || offer == nil {
		return last, err
	}
	cost := costOf(call.gas, offer.cap)
	if err := w.checkSpend(ctx, cost, t.ID, 100); err != nil {
		return last, err // the last attempt may still be carried out
	}
	attempt, err := w.sign(t.Nonce, call.to, call.gas, call.data, *offer)
	if err != nil {
		return last, err
	}
	reserved := greatest(cost, costOf(call.gas, acceptedFees(t).cap))
	if err := AddAttempt(ctx, w.conf.Store, w.lease, t.ID, len(t.Attempts)+1, attempt, inGwei(reserved)); err != nil {
		return last, fmt.Errorf("save another attempt of a transaction: %w", err)
	}
	w.conf.Metrics.bumps.WithLabelValues(w.conf.Chain.Key).Inc()
	w.conf.Logger.Info("transaction replaced", "tx", attempt.TxHash, "replaces", last.TxHash,
		"nonce", t.Nonce, "fee_cap", offer.cap, "tip_cap", offer.tip)
	return attempt, nil
}

// nextCall is the call of a transaction's next attempt.
type nextCall struct {
	to   common.Address
	data []byte
	gas  uint64
}

// nextCall returns the call of the next attempt: the same as the last one, unless no node has accepted an attempt. Then
// the gas estimate may have been too high. If the network's rules refuse the call, or the nodes still refuse it after
// harmlessAfter, an empty transfer to the sender takes its nonce.
func (w *Writer) nextCall(ctx context.Context, t ChainTx, last *types.Transaction, f broadcastState) (nextCall, error) {
	same := nextCall{*last.To(), last.Data(), last.Gas()}
	if isAccepted(t) || w.isHarmless(last) {
		return same, nil
	}
	if waited := w.age(t); w.isRefusedByRule(t) || f.refused() && waited >= harmlessAfter {
		w.conf.Logger.Warn("no node accepts a transaction, so one that does nothing takes its nonce", "kind", t.Kind, "nonce", t.Nonce,
			"gas", last.Gas(), "waited", waited.Round(time.Second))
		to := common.Address(w.sender)
		gas, err := w.gasWithin(ctx, w.estimators(), to, nil, txGas)
		return nextCall{to, nil, gas}, err
	}
	if fresh, err := w.gasWithin(ctx, w.estimators(), same.to, same.data, same.gas); err == nil && 4*fresh < 3*same.gas {
		same.gas = fresh
	}
	return same, nil
}

// age returns how long ago a transaction was created.
func (w *Writer) age(t ChainTx) time.Duration {
	if t.Scheduled.IsZero() { // from before this time was recorded
		return w.conf.Now().Sub(t.CreatedAt)
	}
	return w.conf.Schedule().Sub(t.Scheduled)
}

// isAccepted reports whether a node accepted an attempt of the transaction.
func isAccepted(t ChainTx) bool { return acceptedFees(t).cap.Sign() > 0 }

// isRefusedByRule reports whether the network accepts no attempt of the transaction, because their gas limit is above
// its cap.
func (w *Writer) isRefusedByRule(t ChainTx) bool {
	return attemptGas(t.Attempts[len(t.Attempts)-1]) > w.conf.Chain.MaxTxGas && !isAccepted(t)
}

// isHarmless reports whether a transaction only uses its nonce.
func (w *Writer) isHarmless(tx *types.Transaction) bool {
	return invoice.Address(*tx.To()) == w.sender && len(tx.Data()) == 0
}
