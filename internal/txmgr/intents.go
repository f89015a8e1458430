package txmgr

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// States of a commitment, as the registry numbers them. Paid and closed are
// final.
const (
	statusNone = iota
	statusOpen
	statusPaid
	statusClosed
)

// satisfied reports whether a commitment's status is what the intent wants. One that is
// paid or closed no longer needs to be opened, and one that is paid cannot be closed. On
// one branch of the chain this does not change.
func satisfied(kind invoice.IntentKind, status byte) bool {
	if kind == invoice.IntentOpen {
		return status != statusNone
	}
	return status == statusPaid || status == statusClosed
}

// intentKey identifies what an intent asks for.
type intentKey struct {
	kind       invoice.IntentKind
	commitment invoice.Hash
}

// blockRef is the block as of which an intent is satisfied. Once it is final, the intent
// is done.
type blockRef struct {
	number uint64
	hash   common.Hash
}

// sendNext finishes intents that need no transaction, and sends one for others.
func (w *Writer) sendNext(ctx context.Context, cursor store.Cursor) error {
	if err := w.finishSatisfied(ctx, cursor); err != nil {
		return err
	}
	if err := w.blocked(ctx); err != nil {
		return err
	}
	batch, err := w.pickBatch(ctx)
	if err != nil || len(batch) == 0 {
		return err
	}
	nonce, free, err := w.nextNonce(ctx)
	if err != nil || !free {
		return err
	}
	return w.submit(ctx, nonce, batch[0].Kind, batch)
}

// pickBatch returns the oldest due intents of one kind that need a transaction.
func (w *Writer) pickBatch(ctx context.Context) ([]store.Intent, error) {
	now := w.conf.Now()
	maps.DeleteFunc(w.skipped, func(_ intentKey, until time.Time) bool { return !now.Before(until) })
	var batch []store.Intent
	after := ""
	for range maxPages {
		page, err := w.conf.Store.DueIntents(ctx, w.conf.Chain.Key, w.conf.Chain.Registry, after, maxBatch)
		if err != nil {
			return nil, err
		}
		wanting, err := w.unsatisfied(ctx, page)
		if err != nil {
			return nil, err
		}
		for _, in := range wanting {
			if len(batch) > 0 && in.Kind != batch[0].Kind {
				continue
			}
			if batch = append(batch, in); len(batch) == w.batch {
				return batch, nil
			}
		}
		if len(page) < maxBatch {
			break
		}
		after = page[len(page)-1].ID
	}
	return batch, nil
}

// unsatisfied returns the intents that are neither skipped nor satisfied as of the newest
// block. It remembers the satisfied ones: their event is on its way through the indexer,
// or came before the intent.
func (w *Writer) unsatisfied(ctx context.Context, page []store.Intent) ([]store.Intent, error) {
	var unknown []store.Intent
	var commitments []invoice.Hash
	for _, in := range page {
		_, stands := w.satisfied[in.ID]
		_, skipped := w.skipped[intentKey{in.Kind, in.CommitmentID}]
		if !stands && !skipped {
			unknown = append(unknown, in)
			commitments = append(commitments, in.CommitmentID)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	head, err := w.node.head(ctx)
	if err != nil {
		return nil, err
	}
	statuses, err := w.node.statuses(ctx, w.registry(), *head.Hash, commitments)
	if err != nil {
		return nil, err
	}
	var wanting []store.Intent
	for i, in := range unknown {
		if satisfied(in.Kind, statuses[i]) {
			w.satisfied[in.ID] = blockRef{uint64(*head.Number), *head.Hash}
		} else {
			wanting = append(wanting, in)
		}
	}
	return wanting, nil
}

// finishSatisfied finishes the intents that a final block satisfies. If another block
// became final at its height, they are checked again.
func (w *Writer) finishSatisfied(ctx context.Context, cursor store.Cursor) error {
	final := make(map[blockRef][]string)
	for id, at := range w.satisfied {
		if at.number <= cursor.Confirmed.Number {
			final[at] = append(final[at], id)
		}
	}
	for at, ids := range final {
		canonical, err := w.node.block(ctx, hexutil.EncodeUint64(at.number))
		if err != nil {
			return err
		}
		if canonical == nil {
			return errors.New("the node lacks a block that is final")
		}
		if *canonical.Hash == at.hash {
			if err := w.conf.Store.SatisfyIntents(ctx, w.lease, ids); err != nil {
				return err
			}
		}
		for _, id := range ids {
			delete(w.satisfied, id)
		}
	}
	return nil
}

// halveBatch halves the size of the next batches after the registry reverted one, to
// isolate the intent that it rejects. An intent that was reverted alone is skipped for
// skipFor.
func (w *Writer) halveBatch(kind invoice.IntentKind, refused []invoice.Hash) {
	w.batch = max(1, len(refused)/2)
	if len(refused) == 1 {
		w.skipped[intentKey{kind, refused[0]}] = w.conf.Now().Add(skipFor)
	}
}
