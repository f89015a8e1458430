package txmgr

import (
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestBroadcastsFailInAnyWords has a node answer a broadcast with an error text that does not name the cause, or names
// a wrong one. The node's state decides what the writer does.
func TestBroadcastsFailInAnyWords(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *world, answer){
		"the node has it": hasIt, "the nonce is used": nonceIsUsed, "another holds the nonce": nonceIsHeld,
		"no funds": hasNoFunds, "refused": isRefused,
	} {
		for i := range 8 {
			says := answer(words.Example(i))
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				t.Logf("the node says %q", string(says))
				test(t, onSQLite(t), says)
			})
		}
	}
}

// refuseBroadcasts makes broadcasts fail with an answer, after calling first if it is not nil.
func (f *faults) refuseBroadcasts(says answer, first func()) {
	f.before = func(method string, _ []any) error {
		if method != sendRaw {
			return nil
		}
		if first != nil {
			first()
		}
		return says
	}
}

func hasIt(t *testing.T, w *world, says answer) {
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.after = func(method string) error {
		if method == sendRaw {
			return says
		}
		return nil
	}
	w.tick(writer)
	if w.txs()[0].Attempts[0].AcceptedAt.IsZero() {
		t.Error("the attempt is not recorded as accepted")
	}
	w.clock.Add(rebroadcastAfter)
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	if got := len(w.wantTxs(TxMined)[0].Attempts); got != 1 {
		t.Errorf("%d attempts were signed, want 1", got)
	}
}

func nonceIsUsed(_ *testing.T, w *world, says answer) {
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts(says, func() {
		w.net.before = nil
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
		w.seal(1)
	})
	w.tick(writer)
	w.wantTxs(TxSent)
}

func nonceIsHeld(t *testing.T, w *world, says answer) {
	writer := w.writer()
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts(says, func() {
		w.net.refuseBroadcasts(says, nil)
		w.external(w.dev.Keys.Operator, pack(invoice.IntentOpen, nil, 0))
	})
	w.tick(writer)
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	w.tick(writer)
	attempts := w.wantTxs(TxSent)[0].Attempts
	if len(attempts) != 2 || attempts[1].TipCap.Cmp(new(big.Int).Lsh(attempts[0].TipCap, 1)) < 0 {
		t.Errorf("the attempts are %+v, want a second one with twice the fee", attempts)
	}
}

func hasNoFunds(t *testing.T, w *world, says answer) {
	poor := &byzantine{Client: w.net, method: "eth_getBalance", mutate: value(`"0x1"`)}
	writer := w.writer(func(c *Config) { c.Client = poor })
	w.enqueueIntents(invoice.IntentOpen, commitments(1)...)
	w.net.refuseBroadcasts(says, func() { poor.times = -1 })
	for range 3 {
		if err := writer.tick(w.ctx); !errors.Is(err, errInsufficientFunds) {
			t.Fatalf("a round ends with %v", err)
		}
		w.sealEmpty(bumpBlocks)
		w.clock.Add(bumpAfter)
	}
	if got := len(w.wantTxs(TxSent)[0].Attempts); got != 1 {
		t.Errorf("%d attempts were signed for a sender without funds, want 1", got)
	}
	w.net.before, poor.times = nil, 0
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
}

func isRefused(t *testing.T, w *world, says answer) {
	writer := w.writer()
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.net.refuseBroadcasts(says, nil)
	for range 5 {
		if err := writer.tick(w.ctx); !errors.Is(err, says) {
			t.Fatalf("a round ends with %v", err)
		}
		w.clock.Add(rebroadcastAfter)
	}
	w.net.before = nil
	w.tick(writer)
	w.seal(1)
	w.tick(writer)
	w.wantTxs(TxMined)
	w.wantStatus(statusOpen, ids...)
	w.wantSameContents()
}
