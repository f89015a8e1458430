package indexer

import (
	"errors"
	"testing"

	"github.com/quittance/quittance/internal/ledger"
)

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
