package ledger

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestExpiryPace checks that the batches of expiring invoices come close to the permitted waiting
// time, whatever a transaction, an invoice and its event cost, and stay within their bounds.
func TestExpiryPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fixed := time.Duration(rapid.IntRange(0, 10*int(expiryTurn)).Draw(t, "a transaction"))
		fixedHeld := time.Duration(rapid.IntRange(0, int(expiryTurn)/2).Draw(t, "a lock"))
		each := time.Duration(rapid.IntRange(0, int(time.Millisecond)).Draw(t, "an invoice"))
		eachHeld := time.Duration(rapid.IntRange(1, int(time.Millisecond)).Draw(t, "an event"))
		cost := func(batch int) (took, held time.Duration) {
			held = fixedHeld + time.Duration(batch)*eachHeld
			return fixed + time.Duration(batch)*each + held, held
		}
		p := newExpiryPace()
		for range 40 {
			before := p.batch
			took, held := cost(p.batch)
			if rest := p.next(took, held); rest > held/4 {
				t.Fatalf("creates go first for %v after they waited for %v", rest, held)
			}
			if p.batch < leastExpiring || p.batch > mostExpiring || p.batch > 2*before {
				t.Fatalf("a batch of %d follows one of %d", p.batch, before)
			}
		}
		took, held := cost(p.batch)
		most := max(expiryTurn, took/expiryShare)
		if p.batch > leastExpiring && held > most*3/2 {
			t.Fatalf("others wait %v for batches of %d, which take %v", held, p.batch, took)
		}
		if p.batch < mostExpiring && held < most/3 {
			t.Fatalf("others wait only %v for batches of %d, which take %v", held, p.batch, took)
		}
	})
}
