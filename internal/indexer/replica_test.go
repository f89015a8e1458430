package indexer

import (
	"context"
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/chain/chaintest"
	"github.com/quittance/quittance/internal/ledger"
)

// TestReplicas has two indexers share a ledger; each is out of date by the other's work.
func TestReplicas(t *testing.T) {
	a := newFixture(t, nil)
	b := &fixture{chain: a.chain, node: a.node, ledger: a.ledger}
	b.restart(t, nil)
	for i := range 30 {
		a.chain.Mine(chaintest.NewTx(pays(alice, uint64(i+1))))
		if i%7 == 6 {
			a.chain.Fork(3)
			a.chain.MineEmpty(4)
		}
		for _, f := range []*fixture{a, b}[i%2:] {
			f.catchUp(t)
		}
	}
	a.chain.MineEmpty(3)
	a.catchUp(t)
	b.catchUp(t)
	checkLedger(t, a.chain, a.ledger, testChain.Finality.Depth)
}

// TestLostRace has another replica move the cursor after this one read it and before this one writes.
func TestLostRace(t *testing.T) {
	f := newFixture(t, nil)
	other := &fixture{chain: f.chain, node: f.node, ledger: f.ledger}
	other.restart(t, nil)
	f.chain.MineEmpty(5)
	f.catchUp(t)
	f.chain.Mine(chaintest.NewTx(pays(alice, 5)))
	raced := false
	f.node.Intercept(func(_ context.Context, method string) error {
		if method == "eth_getLogs" && !raced {
			raced = true
			other.catchUp(t)
		}
		return nil
	})
	f.catchUp(t)
	f.expect(t, 6, 3, 1, 0, 0)
	if !raced {
		t.Error("there was no race")
	}
}

// TestLostRacesBackOff makes every write lose to another replica, which finally counts as a failure.
func TestLostRacesBackOff(t *testing.T) {
	f := newFixture(t, nil)
	f.catchUp(t)
	f.chain.Mine()
	for range 2 {
		f.ledger.fail = func(bool) error { return ledger.ErrCursorMoved }
		for n := range maxLostRaces {
			if more, err := f.sync(t.Context()); !more || err != nil {
				t.Errorf("round %d lost: %t, %v; want another one at once", n+1, more, err)
			}
		}
		if _, err := f.sync(t.Context()); !errors.Is(err, ledger.ErrCursorMoved) {
			t.Errorf("one sync more: %v, want ErrCursorMoved", err)
		}
		f.ledger.fail = nil
		f.catchUp(t)
		f.chain.Mine()
	}
	f.expect(t, 2, 0, 0, 0, 0)
}
