package txmgr

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
)

// TestIntentsOfAnotherRegistryAreLeftAlone stores intents for a registry that is no
// longer configured.
func TestIntentsOfAnotherRegistryAreLeftAlone(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		theirs, ours := commitments(3), commitments(2)
		configured := w.registry
		w.registry = common.Address{0xaa}
		w.enqueueIntents(invoice.IntentOpen, theirs...)
		w.registry = configured
		writer := w.writer()
		w.tick(writer)
		w.wantTxs()
		if s := writer.Status(); s.Due != 0 || s.Elsewhere != 3 {
			t.Errorf("status is %+v, want 3 that wait for another registry", s)
		}
		w.enqueueIntents(invoice.IntentOpen, ours...)
		w.tick(writer)
		w.seal(1)
		w.wantStatus(statusOpen, ours...)
		w.wantStatus(statusNone, theirs...)
	})
}

// TestReplacementCallsTheRegistryOfItsAttempts replaces the registry while a
// transaction to the former one is in flight.
func TestReplacementCallsTheRegistryOfItsAttempts(t *testing.T) {
	w := onSQLite(t)
	ids := commitments(1)
	w.enqueueIntents(invoice.IntentOpen, ids...)
	w.tick(w.writer())
	before := w.registry
	w.registry = common.Address{0xaa}
	w.clock.Add(DefaultLeaseTTL)
	next := w.writer()
	w.tick(next)
	w.sealEmpty(bumpBlocks)
	w.clock.Add(bumpAfter)
	w.tick(next)
	attempts := w.wantTxs(store.TxSent)[0].Attempts
	last, err := decode(attempts[len(attempts)-1])
	must(t, err)
	if len(attempts) != 2 || *last.To() != before {
		t.Errorf("the last of %d attempts calls %s, want %s", len(attempts), last.To(), before)
	}
}
