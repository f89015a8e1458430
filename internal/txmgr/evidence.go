package txmgr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/quittance/quittance/internal/chain"
	"github.com/quittance/quittance/internal/invoice"
)

// errRestored ends a round in which the used nonces showed that the database may have been restored.
var errRestored = errors.New("the operator has used nonces that the database does not know, so that it may have been restored from a backup; nothing is sent")

// CompareNonces compares the number of nonces that the operator has used with the number in the database, like
// NoteNonces. Call it before Run. If several nodes are configured and fewer than two answer, the writer makes the
// comparison later, before its first transaction. Accounts of former keys are left out, because their coins are moved
// by hand. allowed is how many unknown nonces are not evidence.
func (w *Writer) CompareNonces(ctx context.Context, allowed uint64) error {
	w.allowed = allowed
	used, pending, certain := w.usedNonces(ctx)
	if !certain {
		return nil
	}
	if err := w.noteNonces(ctx, used, pending); !errors.Is(err, errRestored) { // which is recorded
		return err
	}
	return nil
}

// noteAgain records from time to time how many nonces are used, so that nonces which a person uses while the service
// runs are not evidence at the next start. It returns errRestored once there was evidence.
func (w *Writer) noteAgain(ctx context.Context) error {
	now := w.conf.Schedule()
	if w.restored || now.Sub(w.notedAt) < noteEvery {
		return w.trusted()
	}
	w.notedAt = now
	if used, pending, certain := w.usedNonces(ctx); certain {
		return w.noteNonces(ctx, used, pending)
	}
	return nil
}

// trusted returns errRestored if the used nonces were evidence.
func (w *Writer) trusted() error {
	if w.restored {
		return errRestored
	}
	return nil
}

// noteNonces records how many nonces are used, and at first also those of pending transactions. It returns errRestored
// if that is evidence.
func (w *Writer) noteNonces(ctx context.Context, used, pending uint64) error {
	suspected, err := noteNonces(ctx, w.conf.Store, w.conf.Chain.Key, w.sender, used, pending, w.allowed, w.conf.Now())
	if err != nil {
		return err
	}
	w.allowed, w.notedAt, w.restored = AnyNonces, w.conf.Schedule(), suspected
	return w.trusted()
}

// usedNonces returns a lower bound of the nonces that the operator has used: the number that two nodes of the chain
// confirm, or the only node's number. A node that is behind reports fewer. pending also counts the nonces of pending
// transactions. It is the median of the nodes' numbers, or the greater of two, because it is what the first comparison
// accepts: fewer would make transactions of the lost past evidence.
func (w *Writer) usedNonces(ctx context.Context) (used, pending uint64, certain bool) {
	nodes := w.nodes()
	if len(nodes) == 0 {
		nodes = []node{w.node}
	}
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()
	var mu sync.Mutex
	var answers, withPending []uint64
	var group sync.WaitGroup
	for _, n := range nodes {
		group.Go(func() {
			if mined, all, err := n.noncesOn(ctx, w.conf.Chain.ID, w.sender); err == nil {
				mu.Lock()
				defer mu.Unlock()
				answers, withPending = append(answers, mined), append(withPending, all)
			}
		})
	}
	group.Wait()
	need := min(2, len(nodes))
	if len(answers) < need {
		return 0, 0, false
	}
	slices.Sort(answers)
	slices.Sort(withPending)
	used = answers[len(answers)-need]
	return used, max(used, withPending[len(withPending)/2]), true
}

// noncesOn returns how many transactions of an account are in the newest block, and how many with pending ones. It fails
// if the node serves another chain, because the node may not have been checked yet.
func (n node) noncesOn(ctx context.Context, chainID uint64, account invoice.Address) (mined, all uint64, err error) {
	var id, used, pending chain.Quantity
	err = n.batch(ctx, []rpc.BatchElem{
		{Method: "eth_chainId", Result: &id},
		{Method: nonceMethod, Args: []any{common.Address(account), "latest"}, Result: &used},
		{Method: nonceMethod, Args: []any{common.Address(account), "pending"}, Result: &pending},
	})
	if err == nil && id.N != chainID {
		err = fmt.Errorf("the node is one of chain %d, want %d", id.N, chainID)
	}
	return used.N, pending.N, err
}
