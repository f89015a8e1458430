package webhooks

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestTakeOutcomes checks that successes are recorded before failures, failures in small
// batches, and the outcomes of one merchant in their order.
func TestTakeOutcomes(t *testing.T) {
	outcomeOf := func(merchant string, seq int64, status Status) *recordCall {
		return &recordCall{Value: unrecorded{outcome: Outcome{Delivery: Delivery{MerchantID: merchant, Seq: seq}, Status: status}}}
	}
	t.Run("many failures", func(t *testing.T) {
		var waiting []*recordCall
		for i := range int64(900) {
			waiting = append(waiting, outcomeOf("dead", i, Pending))
		}
		waiting = append(waiting, outcomeOf("well", 900, Delivered))
		batch, waiting := takeOutcomes(waiting)
		if len(batch) != 900/recordShare+1 || batch[len(batch)-1].Value.outcome.Delivery.Seq != 900 {
			t.Errorf("a batch of %d that ends with %d, want the success with the eighth part of the failures",
				len(batch), batch[len(batch)-1].Value.outcome.Delivery.Seq)
		}
		batches := 1
		for len(waiting) > 0 {
			_, waiting = takeOutcomes(waiting)
			batches++
		}
		if batches > 50 {
			t.Errorf("%d batches for 900 failures", batches)
		}
	})
	t.Run("in order", rapid.MakeCheck(func(t *rapid.T) {
		var waiting []*recordCall
		var all []int64
		for i := range rapid.Int64Range(0, 2*recordBatch).Draw(t, "outcomes") {
			status := rapid.SampledFrom([]Status{Delivered, Pending, Failed}).Draw(t, "status")
			waiting = append(waiting, outcomeOf(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "merchant"), i, status))
			all = append(all, i)
		}
		var taken []int64
		last := map[string]int64{}
		for len(waiting) > 0 {
			var batch []*recordCall
			batch, waiting = takeOutcomes(waiting)
			if len(batch) == 0 || len(batch) > recordBatch {
				t.Fatalf("a batch of %d", len(batch))
			}
			for _, c := range batch {
				d := c.Value.outcome.Delivery
				if before, ok := last[d.MerchantID]; ok && before > d.Seq {
					t.Fatalf("%d of %s comes after %d", d.Seq, d.MerchantID, before)
				}
				last[d.MerchantID] = d.Seq
				taken = append(taken, d.Seq)
			}
		}
		if slices.Sort(taken); !slices.Equal(taken, all) {
			t.Fatalf("taken are %v of %d", taken, len(all))
		}
	}))
}
