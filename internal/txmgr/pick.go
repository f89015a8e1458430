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

// satisfied reports whether a commitment of that status is where the intent
// wants it. One that is paid or closed no longer has to be opened, and one
// that is paid cannot be closed. Along one branch of the chain it stays so.
func satisfied(kind invoice.IntentKind, status byte) bool {
	if kind == invoice.IntentOpen {
		return status != statusNone
	}
	return status == statusPaid || status == statusClosed
}

// subject is what an intent asks for.
type subject struct {
	kind       invoice.IntentKind
	commitment invoice.Hash
}

// anchor is a block as of which something holds. Once that very block is
// final, it holds for ever.
type anchor struct {
	number uint64
	hash   common.Hash
}

// advance finishes intents that need no transaction and sends one for others.
func (w *Writer) advance(ctx context.Context, cursor store.Cursor) error {
	if err := w.satisfy(ctx, cursor); err != nil {
		return err
	}
	if err := w.blocked(ctx); err != nil {
		return err
	}
	batch, err := w.pick(ctx)
	if err != nil || len(batch) == 0 {
		return err
	}
	used, _, err := w.node.standing(ctx, w.sender, nil)
	if err != nil {
		return err
	}
	w.update(func(s *Status) { s.Nonce = used })
	line, beyond, err := w.waiting(ctx, used)
	if err != nil {
		return err
	}
	if len(line) > 0 || live(beyond) { // a reorg took them back
		return w.chase(ctx, used, nil)
	}
	if free, err := w.free(ctx, used); err != nil || !free {
		return err
	}
	return w.submit(ctx, used, batch[0].Kind, batch)
}

// pick returns the oldest due intents of one kind that a transaction can
// satisfy, as many as one takes.
func (w *Writer) pick(ctx context.Context) ([]store.Intent, error) {
	now := w.conf.Now()
	maps.DeleteFunc(w.aside, func(_ subject, until time.Time) bool { return !now.Before(until) })
	var batch []store.Intent
	after := ""
	for range maxPages {
		page, err := w.conf.Store.DueIntents(ctx, w.conf.Chain.Key, w.conf.Chain.Registry, after, maxBatch)
		if err != nil {
			return nil, err
		}
		wanting, err := w.wanting(ctx, page)
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

// wanting returns those intents that are not set aside and not satisfied as of
// the newest block. It remembers those that are satisfied: their event is on
// its way through the indexer, or came before the intent.
func (w *Writer) wanting(ctx context.Context, page []store.Intent) ([]store.Intent, error) {
	var unknown []store.Intent
	var commitments []invoice.Hash
	for _, in := range page {
		_, stands := w.standing[in.ID]
		_, aside := w.aside[subject{in.Kind, in.CommitmentID}]
		if !stands && !aside {
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
			w.standing[in.ID] = anchor{uint64(*head.Number), *head.Hash}
		} else {
			wanting = append(wanting, in)
		}
	}
	return wanting, nil
}

// satisfy finishes the intents that a final block satisfies. When the final
// block of that height is another one, they are looked at anew.
func (w *Writer) satisfy(ctx context.Context, cursor store.Cursor) error {
	final := make(map[anchor][]string)
	for id, at := range w.standing {
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
			delete(w.standing, id)
		}
	}
	return nil
}

// shrink has the next transactions take half as many intents as the one that
// the registry refused, so that the good are parted from the bad. One that was
// refused by itself is set aside for a while.
func (w *Writer) shrink(kind invoice.IntentKind, refused []invoice.Hash) {
	w.batch = max(1, len(refused)/2)
	if len(refused) == 1 {
		w.aside[subject{kind, refused[0]}] = w.conf.Now().Add(asideFor)
	}
}
