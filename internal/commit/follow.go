package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// round looks after what was sent and, when nothing is in flight, sends more.
func (w *Writer) round(ctx context.Context) error {
	if err := w.count(ctx); err != nil {
		return err
	}
	// In this order: of what is not settled now, nothing up to the cursor is
	// still to be seen.
	cursor, err := w.conf.Store.Cursor(ctx, w.conf.Chain.Key)
	if err != nil && !errors.Is(err, store.ErrNotFound) { // nothing is final before the chain is read
		return err
	}
	txs, err := w.conf.Store.UnsettledTxs(ctx, w.conf.Chain.Key)
	if err != nil {
		return err
	}
	missing, err := w.settle(ctx, cursor, txs)
	if err != nil {
		return err
	}
	w.update(func(s *Status) { s.InFlight = len(missing) })
	if len(missing) > 0 {
		return w.chase(ctx, missing)
	}
	if cursor.Halted != "" {
		return nil // what is sent now could never be seen
	}
	return w.advance(ctx, cursor)
}

// settle records what became of transactions that have a receipt, and returns
// those that have none.
func (w *Writer) settle(ctx context.Context, cursor store.Cursor, txs []store.ChainTx) ([]store.ChainTx, error) {
	var hashes []invoice.Hash
	for _, t := range txs {
		for _, a := range t.Attempts {
			hashes = append(hashes, a.TxHash)
		}
	}
	receipts, err := w.node.receipts(ctx, hashes)
	if err != nil {
		return nil, err
	}
	var missing []store.ChainTx
	for _, t := range txs {
		own := receipts[:len(t.Attempts)]
		receipts = receipts[len(t.Attempts):]
		if i := slices.IndexFunc(own, func(r *chain.Receipt) bool { return r != nil }); i < 0 {
			missing = append(missing, t)
		} else if err := w.mined(ctx, cursor, t, own[i]); err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// mined records that a transaction stands in the chain.
func (w *Writer) mined(ctx context.Context, cursor store.Cursor, t store.ChainTx, r *chain.Receipt) error {
	w.forget(t)
	if !r.Succeeded() {
		kind, ids, err := contents(t)
		if err != nil {
			return err
		}
		w.shrink(kind, ids)
		return w.fail(ctx, t, "the registry reverted it")
	}
	if t.Status != store.TxMined {
		if err := w.move(ctx, t, store.TxMined); err != nil {
			return err
		}
		w.batch = min(2*w.batch, maxBatch)
		w.conf.Logger.Info("registry transaction mined", "tx", r.TxHash, "kind", t.Kind, "block", uint64(r.BlockNumber))
	}
	if uint64(r.BlockNumber) > cursor.Confirmed.Number {
		return nil
	}
	// What it carried and is not done by now made no event: the registry had
	// been there before. It is looked at anew.
	return w.conf.Store.ReleaseIntents(ctx, w.lease, t.ID)
}

// chase gets transactions without a receipt into the chain, or gives them up.
func (w *Writer) chase(ctx context.Context, missing []store.ChainTx) error {
	used, err := w.node.nonce(ctx, w.sender, "latest")
	if err != nil {
		return err
	}
	for _, t := range missing {
		if t.Sender != w.sender || t.Nonce < used {
			if err := w.miss(ctx, t); err != nil {
				return err
			}
		}
	}
	// Whatever was once thought of them, these are not in the chain now.
	waiting, err := w.conf.Store.ChainTxsFrom(ctx, w.conf.Chain.Key, w.sender, used)
	if err != nil || len(waiting) == 0 {
		return err
	}
	if err := w.fillGap(ctx, used, waiting[0].Nonce); err != nil {
		return err
	}
	head, err := w.node.head(ctx)
	if err != nil {
		return err
	}
	for _, t := range waiting {
		if t.Status != store.TxSent {
			if err := w.move(ctx, t, store.TxSent); err != nil {
				return err
			}
		}
		if err := w.push(ctx, t, head); err != nil {
			return err
		}
	}
	return nil
}

// miss gives a transaction up whose nonce another has used, once that is
// certain. Its intents are due again.
func (w *Writer) miss(ctx context.Context, t store.ChainTx) error {
	now := w.conf.Now()
	since, noticed := w.lost[t.ID]
	if !noticed {
		w.lost[t.ID] = now
		return nil
	}
	if now.Sub(since) < lostAfter {
		return nil
	}
	w.forget(t)
	if t.Sender != w.sender {
		return w.fail(ctx, t, "it was signed with another key")
	}
	return w.fail(ctx, t, "its nonce was used by a transaction that this service did not send")
}

// fillGap uses a nonce that was lost to a transaction of somebody else and
// became free again by a reorg: without it nothing after it is ever mined.
func (w *Writer) fillGap(ctx context.Context, used, next uint64) error {
	if used == next {
		return nil
	}
	pending, err := w.node.nonce(ctx, w.sender, "pending")
	if err != nil || pending > used {
		return err
	}
	return w.submit(ctx, used, invoice.IntentOpen, nil)
}

func (w *Writer) fail(ctx context.Context, t store.ChainTx, why string) error {
	w.conf.Logger.Warn("registry transaction failed; what it carried is sent anew",
		"tx", t.Attempts[len(t.Attempts)-1].TxHash, "kind", t.Kind, "nonce", t.Nonce, "reason", why)
	return w.move(ctx, t, store.TxFailed)
}

// move records a new status of a transaction.
func (w *Writer) move(ctx context.Context, t store.ChainTx, to store.TxStatus) error {
	if err := w.conf.Store.SetTxStatus(ctx, w.lease, t.ID, to); err != nil {
		return fmt.Errorf("record that transaction %s is %s: %w", t.ID, to, err)
	}
	w.conf.Metrics.txs.WithLabelValues(w.conf.Chain.Key, string(to)).Inc()
	return nil
}

func (w *Writer) forget(t store.ChainTx) {
	delete(w.flights, t.ID)
	delete(w.lost, t.ID)
}

// flight is what a writer remembers of its broadcasts of a transaction.
type flight struct {
	form     invoice.Hash // the attempt
	since    uint64       // the newest block when it was first broadcast
	at       time.Time    // of the last broadcast
	unfunded bool         // the last broadcast was refused for want of funds
}
