package txmgr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/store"
)

// The next nonce is the one that the newest block of the chain leaves: no nonce
// is ever used beyond a free one. So a wrong answer can make no gap, and none is
// ever filled with transactions that do nothing.
//
// How many nonces are used is believed when it follows from our own rows. Else
// two nodes must agree on it, or it must stay the same for a while.

var (
	errForeignTx      = errors.New("a pending transaction that this service did not send; its own wait behind it")
	errNonceUncertain = errors.New("it is not certain how many nonces of the operator are used")
)

// nonceClaim is what a node says that our own rows do not, and since when.
type nonceClaim struct {
	nonce uint64
	since time.Time
}

// heldFor returns for how long the same was claimed, of which now is one more time.
func (c *nonceClaim) heldFor(nonce uint64, now time.Time) time.Duration {
	if c.nonce != nonce || c.since.IsZero() {
		*c = nonceClaim{nonce, now}
	}
	return now.Sub(c.since)
}

// isOwnNonce reports whether it follows from our own transactions that so many
// nonces are used: the last of them is that of one that is mined, or lost to
// another.
func (w *Writer) isOwnNonce(ctx context.Context, used uint64) (bool, error) {
	if used == 0 {
		return true, nil
	}
	rows, err := w.conf.Store.ChainTxsFrom(ctx, w.conf.Chain.Key, w.sender, used-1)
	return len(rows) > 0 && rows[0].Nonce == used-1 && rows[0].Status != store.TxSent, err
}

// verifyNonce returns nil when it is certain that so many nonces of the sender are
// used, and else an errDoubt. Two nodes that say so prove it; without a second
// one, the same answer for lostAfter does, or for firstAfter while the sender has
// no transaction of ours, and for foreignAfter when another node says otherwise.
func (w *Writer) verifyNonce(ctx context.Context, used uint64) error {
	known, err := w.conf.Store.HasChainTxs(ctx, w.conf.Chain.Key, w.sender)
	if err != nil {
		return err
	}
	waited := w.nonceClaim.heldFor(used, w.conf.Now())
	agree, differ := w.pollNonce(ctx, used)
	needs := lostAfter
	switch {
	case agree > 1:
		return nil
	case differ > 0:
		needs = foreignAfter
	case !known:
		needs = firstAfter
	}
	if waited >= needs {
		return nil
	}
	return fmt.Errorf("%w: %d by the word of one node, which does not follow from the transactions of this service; %d nodes say otherwise; believed once it stays so for %s",
		errNonceUncertain, used, differ, needs)
}

// pollNonce returns how many nodes say that so many nonces are used, and how many say
// otherwise. Those that do not answer have no vote.
func (w *Writer) pollNonce(ctx context.Context, used uint64) (agree, differ int) {
	nodes := w.nodes()
	answers := make([]*uint64, len(nodes))
	var group sync.WaitGroup
	for i, n := range nodes {
		group.Go(func() {
			if answer, err := n.nonce(ctx, w.sender, "latest"); err == nil {
				answers[i] = &answer
			}
		})
	}
	group.Wait()
	for _, answer := range answers {
		switch {
		case answer == nil:
		case *answer == used:
			agree++
		default:
			differ++
		}
	}
	return agree, differ
}

// nodes returns the chain's nodes, each to be asked by itself, and no more than
// maxWitnesses.
func (w *Writer) nodes() []node {
	if w.conf.Nodes == nil {
		return nil
	}
	clients := w.conf.Nodes()
	nodes := make([]node, min(len(clients), maxPolled))
	for i := range nodes {
		nodes[i] = node{clients[i]}
	}
	return nodes
}

// isNonceFree reports whether the nonce used is that of the next transaction, when none
// of ours is in flight. It fails while that is uncertain.
func (w *Writer) isNonceFree(ctx context.Context, used uint64) (bool, error) {
	ok, err := w.isOwnNonce(ctx, used)
	if err == nil && !ok {
		err = w.verifyNonce(ctx, used)
	}
	if err != nil {
		return false, err
	}
	return w.hasNoForeignTx(ctx, used)
}

// hasNoForeignTx reports whether no pending transaction of another program holds the
// nonce. It gets foreignAfter to be mined; that it takes long is an error. How
// many are pending is hearsay: no more than maxForeign are believed, and with
// several nodes two must know of them.
func (w *Writer) hasNoForeignTx(ctx context.Context, used uint64) (bool, error) {
	pending, err := w.node.nonce(ctx, w.sender, "pending")
	if err != nil {
		return false, err
	}
	if pending <= used || pending-used > maxForeign || !w.confirmPending(ctx, used) {
		w.foreignClaim = nonceClaim{}
		return true, nil
	}
	switch waited := w.foreignClaim.heldFor(used, w.conf.Now()); {
	case waited < bumpAfter:
		return false, nil
	case waited < foreignAfter:
		return false, fmt.Errorf("nonce %d of %s is held by %w", used, common.Address(w.sender), errForeignTx)
	}
	return true, nil
}

// confirmPending reports whether two nodes know of a pending transaction with the
// nonce, or there is one node alone.
func (w *Writer) confirmPending(ctx context.Context, used uint64) bool {
	nodes := w.nodes()
	know, answer := 0, 0
	for _, n := range nodes {
		if pending, err := n.nonce(ctx, w.sender, "pending"); err == nil {
			answer++
			if pending > used && pending-used <= maxForeign {
				know++
			}
		}
	}
	return answer < 2 || know > 1
}

// giveUpStranded gives up the transactions that wait for a nonce below theirs which no
// transaction of ours has: their intents are due again, and go out with the
// nonce that is free. It first makes certain that it is.
func (w *Writer) giveUpStranded(ctx context.Context, used uint64, beyond []store.ChainTx) error {
	if err := w.verifyNonce(ctx, used); err != nil {
		return err
	}
	for _, t := range beyond {
		if t.Status == store.TxFailed {
			continue
		}
		w.forget(t)
		if err := w.fail(ctx, t, fmt.Sprintf("nonce %d before its own is free", used), nil); err != nil {
			return err
		}
	}
	return nil
}

// splitContiguous parts transactions with the nonce used or a higher one, in their order,
// into those that follow each other from there on, and the others.
func splitContiguous(used uint64, all []store.ChainTx) (line, beyond []store.ChainTx) {
	for i, t := range all {
		if t.Nonce != used+uint64(i) {
			return all[:i], all[i:]
		}
	}
	return all, nil
}

// unmined returns the sender's transactions that the chain does not hold when so
// many nonces are used, whatever was thought of them before: those that can be
// carried out one after the other, and those that cannot.
func (w *Writer) unmined(ctx context.Context, used uint64) (line, beyond []store.ChainTx, err error) {
	all, err := w.conf.Store.ChainTxsFrom(ctx, w.conf.Chain.Key, w.sender, used)
	if err != nil {
		return nil, nil, err
	}
	line, beyond = splitContiguous(used, all)
	return line, beyond, nil
}

// anyLive reports whether one of the transactions was not given up.
func anyLive(txs []store.ChainTx) bool {
	for _, t := range txs {
		if t.Status != store.TxFailed {
			return true
		}
	}
	return false
}
