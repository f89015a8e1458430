package settle

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestExpiryPace checks that the batches of expiring invoices come near the time that one may
// take, whatever a transaction and an invoice cost, and stay within their bounds.
func TestExpiryPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		fixed := time.Duration(rapid.IntRange(0, int(expiryTurn)/2).Draw(t, "a transaction"))
		each := time.Duration(rapid.IntRange(1, int(time.Millisecond)).Draw(t, "an invoice"))
		cost := func(batch int) time.Duration { return fixed + time.Duration(batch)*each }
		p := newExpiryPace()
		for range 20 {
			before := p.batch
			took := cost(p.batch)
			if rest := p.next(took); rest > took/4 {
				t.Fatalf("creates go first for %v after a transaction of %v", rest, took)
			}
			if p.batch < leastExpiring || p.batch > mostExpiring || p.batch > 2*before {
				t.Fatalf("a batch of %d follows one of %d", p.batch, before)
			}
		}
		if p.batch > leastExpiring && cost(p.batch) > expiryTurn*3/2 {
			t.Fatalf("batches of %d take %v", p.batch, cost(p.batch))
		}
		if p.batch < mostExpiring && cost(p.batch) < expiryTurn/3 {
			t.Fatalf("batches of %d take %v alone", p.batch, cost(p.batch))
		}
	})
}
