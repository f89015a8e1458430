package txmgr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
)

// recordReceipts records the outcome of transactions that have a receipt. It returns
// how many nonces of the sender are used, and the transactions without a receipt.
func (w *Writer) recordReceipts(ctx context.Context, cursor ledger.Cursor, txs []ChainTx) (uint64, []ChainTx, error) {
	used, receipts, err := w.node.nonceAndReceipts(ctx, w.sender, hashesOf(txs...))
	if err != nil {
		return 0, nil, err
	}
	var missing []ChainTx
	for _, t := range txs {
		i, r := firstReceipt(receipts[:len(t.Attempts)])
		receipts = receipts[len(t.Attempts):]
		if r == nil && t.Sender == w.sender && t.Nonce < used {
			i, r = w.withheldReceipt(ctx, t)
		}
		if r == nil {
			missing = append(missing, t)
		} else if err := w.recordMined(ctx, cursor, t, i, r); err != nil {
			return 0, nil, err
		}
	}
	return used, missing, nil
}

// hashesOf returns the hashes of all attempts of transactions.
func hashesOf(txs ...ChainTx) (hashes []invoice.Hash) {
	for _, t := range txs {
		for _, a := range t.Attempts {
			hashes = append(hashes, a.TxHash)
		}
	}
	return hashes
}

// firstReceipt returns the first receipt of some attempts, and the number of its attempt.
func firstReceipt(all []*chain.Receipt) (int, *chain.Receipt) {
	for i, r := range all {
		if r != nil {
			return i, r
		}
	}
	return 0, nil
}

// withheldReceipt asks several nodes for the receipt of a transaction with a used nonce: the node that has no receipt
// may be wrong, and the items would be sent again.
func (w *Writer) withheldReceipt(ctx context.Context, t ChainTx) (int, *chain.Receipt) {
	for _, n := range w.nodes() {
		if _, receipts, err := n.nonceAndReceipts(ctx, w.sender, hashesOf(t)); err == nil {
			if i, r := firstReceipt(receipts); r != nil {
				return i, r
			}
		}
	}
	return 0, nil
}

// recordMined records that an attempt of a transaction was mined, given by its index.
func (w *Writer) recordMined(ctx context.Context, cursor ledger.Cursor, t ChainTx, index int, r *chain.Receipt) error {
	w.forget(t)
	k := w.workOf(t.Kind)
	if k == nil {
		return fmt.Errorf("transaction %s is of kind %q, which this program does not know", t.ID, t.Kind)
	}
	signed, err := decode(t.Attempts[index])
	if err != nil {
		return err
	}
	why := ""
	switch {
	case w.isHarmless(signed):
		why = "no node accepted it, and one that does nothing took its nonce"
	case !r.Succeeded():
		why = "it was reverted"
	}
	if why != "" {
		return w.recordReverted(ctx, k, t, why, minedAttempt{index, r, true}) // no later round reads its receipt
	}
	final := uint64(r.BlockNumber) <= cursor.Confirmed.Number
	if err := w.recordSucceeded(ctx, t, minedAttempt{index, r, final}); err != nil {
		return err
	}
	if t.Status != TxMined {
		k.mined(t, r)
		w.conf.Logger.Info("transaction mined", "tx", r.TxHash, "kind", t.Kind, "block", uint64(r.BlockNumber))
	}
	if !final {
		return nil
	}
	return k.settle(ctx, t, r)
}

// recordReverted gives up a mined transaction that carried out none of its items.
func (w *Writer) recordReverted(ctx context.Context, k work, t ChainTx, why string, mined minedAttempt) error {
	then, err := k.reverted(ctx, t)
	if err != nil {
		return err
	}
	spent, entries, err := w.cost(ctx, t, mined)
	if err != nil {
		return err
	}
	if err := w.fail(ctx, t, why, spent, entries...); err != nil || then == nil || mined.receipt.Succeeded() {
		return err
	}
	return then()
}

// recordSucceeded records that a transaction is mined, and its cost once that is known.
func (w *Writer) recordSucceeded(ctx context.Context, t ChainTx, mined minedAttempt) error {
	if t.Status == TxMined && t.Spent != nil {
		return nil
	}
	spent, entries, err := w.cost(ctx, t, mined)
	if err != nil || t.Status == TxMined && spent == nil {
		return err
	}
	return w.setStatus(ctx, t, TxMined, spent, entries...)
}

// minedAttempt is an attempt of a transaction that is in a block.
type minedAttempt struct {
	index   int // of the attempt
	receipt *chain.Receipt
	final   bool // no later round asks for its cost
}

// resubmit broadcasts or replaces transactions without a receipt, or gives them up.
// used is how many nonces of the sender are used.
func (w *Writer) resubmit(ctx context.Context, used uint64, missing []ChainTx) error {
	for _, t := range missing {
		if t.Sender != w.sender || t.Nonce < used {
			if err := w.handleLostNonce(ctx, used, t); err != nil {
				return err
			}
		}
	}
	// Whatever their status, these transactions are not in the chain now.
	contiguous, beyond, err := w.unmined(ctx, used)
	if err != nil {
		return err
	}
	var troubles []error
	if anyLive(beyond) {
		troubles = append(troubles, w.giveUpStranded(ctx, used, beyond))
	}
	if len(contiguous) == 0 {
		return errors.Join(troubles...)
	}
	head, err := w.node.head(ctx)
	if err != nil {
		return errors.Join(append(troubles, err)...)
	}
	for _, t := range contiguous {
		first := t.Nonce == used
		if !first && t.Status == TxFailed {
			continue // its turn comes, unless another transaction takes its nonce
		}
		delete(w.lostSince, t.ID) // its nonce is free
		if t.Status != TxSent {
			if err := w.setStatus(ctx, t, TxSent, nil); err != nil {
				return err
			}
		}
		// Only the first in line benefits from a higher fee.
		troubles = append(troubles, w.broadcastDue(ctx, t, head, first))
	}
	return errors.Join(troubles...)
}

// handleLostNonce gives up a transaction after another one has used its nonce, once that is certain. Its items are due
// again. Its cost is unknown, because nodes may withhold its receipt.
func (w *Writer) handleLostNonce(ctx context.Context, used uint64, t ChainTx) error {
	now := w.conf.Schedule()
	if t.Sender == w.sender {
		w.nonceClaim.heldFor(used, now)
	}
	since, noticed := w.lostSince[t.ID]
	if !noticed {
		w.lostSince[t.ID] = now
		return nil
	}
	if now.Sub(since) < lostAfter {
		return nil
	}
	if t.Sender != w.sender {
		w.forget(t)
		return w.fail(ctx, t, "it was signed with another key", nil)
	}
	if err := w.verifyNonce(ctx, used); err != nil {
		return err
	}
	w.forget(t)
	return w.fail(ctx, t, "its nonce was used by a transaction that this service did not send", nil)
}

// fail gives up a transaction, with its cost, or nil if it is not known, and entries for the audit log.
func (w *Writer) fail(ctx context.Context, t ChainTx, why string, spent *ledger.TxCost, entries ...access.Entry) error {
	w.conf.Logger.Warn("transaction failed, what it carried is due again",
		"tx", t.Attempts[len(t.Attempts)-1].TxHash, "kind", t.Kind, "nonce", t.Nonce, "reason", why)
	return w.setStatus(ctx, t, TxFailed, spent, entries...)
}

// setStatus records a transaction's status and cost, as SetTxStatus does, with entries for the audit log.
func (w *Writer) setStatus(ctx context.Context, t ChainTx, to TxStatus, spent *ledger.TxCost, entries ...access.Entry) error {
	if err := SetTxStatus(ctx, w.conf.Store, w.lease, t.ID, to, spent, entries...); err != nil {
		return fmt.Errorf("record that transaction %s is %s: %w", t.ID, to, err)
	}
	if to != t.Status {
		w.conf.Metrics.txs.WithLabelValues(w.conf.Chain.Key, string(t.Kind), string(to)).Inc()
	}
	if spent != nil {
		more := spent.Gwei
		if t.Spent != nil {
			more = max(0, more-t.Spent.Gwei)
		}
		w.conf.Metrics.costs.WithLabelValues(w.conf.Chain.Key, string(t.Kind)).Add(float64(more) * weiPerGwei)
	}
	return nil
}

func (w *Writer) forget(t ChainTx) {
	delete(w.broadcasts, t.ID)
	delete(w.lostSince, t.ID)
}

// broadcastState is the state of a transaction's broadcasts by this writer.
type broadcastState struct {
	attempt invoice.Hash // hash of the attempt
	since   uint64       // number of the newest block when it was first broadcast
	began   time.Time    // time of the first broadcast
	at      time.Time    // time of the last broadcast
	err     error        // error of the last broadcast, if no node has the attempt
	used    bool         // its nonce was already used; the receipts show by which transaction
	held    bool         // another transaction held its nonce, and replacing that one needs a higher fee
}

// outcome returns the error of the last broadcast, unless receipts or the next attempt resolve it.
func (f broadcastState) outcome() error {
	if f.used || f.held {
		return nil
	}
	return f.err
}

// refused reports whether every node refused the last broadcast, for a reason that another attempt may avoid.
func (f broadcastState) refused() bool {
	return (isAnswer(f.err) || chain.IsClientError(f.err)) && !f.used && !f.held
}

// explain finds out what happened to an attempt after its broadcast failed. It asks nodes for the transaction, the
// nonce and the account. Their error texts differ and change, and they may have the attempt despite the error.
func (w *Writer) explain(ctx context.Context, t ChainTx, attempt TxAttempt, f *broadcastState) {
	if known, _ := w.find(ctx, attempt.TxHash); known {
		f.err = nil
		return
	}
	used, err := w.node.nonce(ctx, w.sender, "latest")
	if err != nil {
		return // it is broadcast again
	}
	if f.used = used > t.Nonce; f.used {
		return
	}
	for _, earlier := range t.Attempts { // perhaps only the node's nonce lags
		if earlier.TxHash != attempt.TxHash && !earlier.AcceptedAt.IsZero() && !f.used {
			known, mined := w.find(ctx, earlier.TxHash)
			f.used, f.held = mined, f.held || known
		}
	}
	if f.used {
		return
	}
	if tx, err := decode(attempt); err == nil {
		err = w.checkSpend(ctx, costOf(tx.Gas(), attempt.FeeCap), "", 100)
		if errors.Is(err, errInsufficientFunds) {
			f.err = err
			return
		}
	}
	if !f.held {
		held, err := w.isNonceHeld(ctx, t.Nonce)
		f.held = held && err == nil
	}
	f.held = f.held && isAnswer(f.err)
}

// find is node.find for some of the chain's nodes.
func (w *Writer) find(ctx context.Context, tx invoice.Hash) (known, mined bool) {
	nodes := w.nodes()
	if len(nodes) == 0 {
		nodes = []node{w.node}
	}
	for _, n := range nodes {
		has, inBlock := n.find(ctx, tx)
		known, mined = known || has, mined || inBlock
	}
	return known, mined
}
