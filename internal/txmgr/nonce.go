package txmgr

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// The next nonce is the number of used nonces as of the newest block, so that a wrong answer cannot cause a nonce gap.
//
// The number of used nonces is certain when it follows from our own rows. Otherwise
// two nodes must confirm it, or it must stay the same for a while.

var (
	errForeignTx      = errors.New("a pending transaction that this service did not send; its own wait behind it")
	errNonceUncertain = errors.New("it is not certain how many nonces of the operator are used")
	// errFirstNonce: the operator has used nonces before its first transaction of this service, for example to deploy
	// the contracts. This is not a failure: one node's answer is accepted soon.
	errFirstNonce = fmt.Errorf("%w before the first transaction", errNonceUncertain)
)

// nextNonce returns the nonce of the next transaction. The result is false if no transaction can be sent now: one of
// our transactions is in flight again after a reorg, and is broadcast again, or a pending transaction of another
// program holds the nonce.
func (w *Writer) nextNonce(ctx context.Context) (nonce uint64, free bool, err error) {
	used, _, err := w.node.nonceAndReceipts(ctx, w.sender, nil)
	if err != nil {
		return 0, false, err
	}
	w.update(func(s *Status) { s.Nonce = used })
	contiguous, beyond, err := w.unmined(ctx, used)
	if err != nil {
		return 0, false, err
	}
	if len(contiguous) > 0 || anyLive(beyond) {
		return 0, false, w.resubmit(ctx, used, nil)
	}
	free, err = w.isNonceFree(ctx, used)
	return used, free, err
}

// nonceClaim is a number of used nonces that does not follow from our own rows, and the time since when nodes report
// it.
type nonceClaim struct {
	nonce uint64
	since time.Time
}

// heldFor records the claim, and returns how long it has been the same.
func (c *nonceClaim) heldFor(nonce uint64, now time.Time) time.Duration {
	if c.nonce != nonce || c.since.IsZero() {
		*c = nonceClaim{nonce, now}
	}
	return now.Sub(c.since)
}

// isOwnNonce reports whether our own transactions imply that this many nonces are used: the last nonce belongs to our
// transaction, which is mined or lost its nonce.
func (w *Writer) isOwnNonce(ctx context.Context, used uint64) (bool, error) {
	if used == 0 {
		return true, nil
	}
	rows, err := ChainTxsFrom(ctx, w.conf.Store, w.conf.Chain.Key, w.sender, used-1)
	return len(rows) > 0 && rows[0].Nonce == used-1 && rows[0].Status != TxSent, err
}

// verifyNonce returns nil if it is certain that this many nonces of the sender are used, and otherwise an
// errNonceUncertain, which may be an errFirstNonce. It is certain if two nodes confirm it. Otherwise the answer must
// stay the same for lostAfter, for firstAfter while the sender has no transaction of ours, and for foreignAfter if
// another node contradicts it.
func (w *Writer) verifyNonce(ctx context.Context, used uint64) error {
	known, err := hasChainTxs(ctx, w.conf.Store, w.conf.Chain.Key, w.sender)
	if err != nil {
		return err
	}
	waited := w.nonceClaim.heldFor(used, w.conf.Schedule())
	agree, differ := w.pollNonce(ctx, used)
	needs, uncertain := lostAfter, errNonceUncertain
	switch {
	case agree > 1:
		return nil
	case differ > 0:
		needs = foreignAfter
	case !known:
		needs, uncertain = firstAfter, errFirstNonce
	}
	if waited >= needs {
		return nil
	}
	return fmt.Errorf("%w: %d by the word of one node, which does not follow from the transactions of this service; %d nodes say otherwise; believed once it stays so for %s",
		uncertain, used, differ, needs)
}

// pollNonce returns how many nodes confirm that this many nonces are used, and how many contradict it. Nodes that do
// not answer do not count.
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

// nodes returns up to maxPolled of the chain's nodes, to be asked one by one.
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

// isNonceFree reports whether the next transaction may use the nonce while no transaction of ours is in flight. It
// fails while that is uncertain.
func (w *Writer) isNonceFree(ctx context.Context, used uint64) (bool, error) {
	ok, err := w.isOwnNonce(ctx, used)
	if err == nil && !ok {
		if err = w.verifyNonce(ctx, used); err == nil {
			err = w.noteNonces(ctx, used, used)
		}
	}
	if err != nil {
		return false, err
	}
	return w.hasNoForeignTx(ctx, used)
}

// hasNoForeignTx reports whether no pending transaction of another program holds the nonce. Such a transaction has
// foreignAfter to be mined; after bumpAfter the wait is an error. Only maxForeign pending transactions are believed,
// and with several nodes two must report them.
func (w *Writer) hasNoForeignTx(ctx context.Context, used uint64) (bool, error) {
	held, err := w.isNonceHeld(ctx, used)
	if err != nil {
		return false, err
	}
	if !held {
		w.foreignClaim = nonceClaim{}
		return true, nil
	}
	switch waited := w.foreignClaim.heldFor(used, w.conf.Schedule()); {
	case waited < bumpAfter:
		return false, nil
	case waited < foreignAfter:
		return false, fmt.Errorf("nonce %d of %s is held by %w", used, common.Address(w.sender), errForeignTx)
	}
	return true, nil
}

// isNonceHeld reports whether a pending transaction of the sender has the first unused nonce.
func (w *Writer) isNonceHeld(ctx context.Context, used uint64) (bool, error) {
	pending, err := w.node.nonce(ctx, w.sender, "pending")
	return err == nil && pending > used && pending-used <= maxForeign && w.confirmPending(ctx, used), err
}

// confirmPending reports whether two nodes have a pending transaction with the nonce, or fewer than two nodes answer.
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

// giveUpStranded gives up the transactions that wait for a lower nonce which no transaction of ours has. Their items
// are due again and are sent with the free nonce. It fails while the nonce is uncertain.
func (w *Writer) giveUpStranded(ctx context.Context, used uint64, beyond []ChainTx) error {
	if err := w.verifyNonce(ctx, used); err != nil {
		return err
	}
	for _, t := range beyond {
		if t.Status == TxFailed {
			continue
		}
		w.forget(t)
		if err := w.fail(ctx, t, fmt.Sprintf("nonce %d before its own is free", used), nil); err != nil {
			return err
		}
	}
	return nil
}

// splitContiguous splits transactions, ordered by nonce, into those with contiguous nonces from used on, and the
// others.
func splitContiguous(used uint64, all []ChainTx) (contiguous, beyond []ChainTx) {
	for i, t := range all {
		if t.Nonce != used+uint64(i) {
			return all[:i], all[i:]
		}
	}
	return all, nil
}

// unmined returns the sender's transactions that are not in the chain if this many nonces are used, whatever their
// status: those that can be mined in order, and those behind a nonce gap.
func (w *Writer) unmined(ctx context.Context, used uint64) (contiguous, beyond []ChainTx, err error) {
	all, err := ChainTxsFrom(ctx, w.conf.Store, w.conf.Chain.Key, w.sender, used)
	if err != nil {
		return nil, nil, err
	}
	contiguous, beyond = splitContiguous(used, all)
	return contiguous, beyond, nil
}

// anyLive reports whether one of the transactions was not given up.
func anyLive(txs []ChainTx) bool {
	for _, t := range txs {
		if t.Status != TxFailed {
			return true
		}
	}
	return false
}
