package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestOrphanedRefundsBetween reads the refunds that reorgs dropped in pages, with several of one second.
func TestOrphanedRefundsBetween(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		startChain(t, s, "base")
		insert(t, s, sample("inv_1", "m"))
		var want []string
		for n := range 7 {
			p := samplePayment(n + 1)
			want = append(want, p.ID)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				if err := tx.SavePayments(ctx, []store.PaymentRow{p}); err != nil {
					return err
				}
				r := refundOf(p)
				r.BlockNumber = 1000
				if err := tx.SaveRefund(ctx, r); err != nil {
					return err
				}
				return tx.OrphanAbove(ctx, r.ChainKey, 999, at(5000), at(int64(2000+n/3)))
			})
		}
		all := func(from, to int64) (got []string) {
			for after, more := (store.OrphanedRefund{At: at(from)}), true; more; more = after.ID != "" {
				ids, last, err := s.OrphanedRefundsBetween(t.Context(), "base", after, at(to), 2)
				must(t, err)
				if len(ids) > 2 || len(got) > len(want) {
					t.Fatalf("after %+v: %v", after, ids)
				}
				got, after = append(got, ids...), last
			}
			return got
		}
		for _, c := range []struct {
			from, to int64
			want     []string
		}{{2000, 2003, want}, {1000, 9000, want}, {2001, 2002, want[3:6]}, {2003, 9000, nil}, {1000, 2000, nil}} {
			if diff := cmp.Diff(c.want, all(c.from, c.to)); diff != "" {
				t.Errorf("from %d to %d (-want +got):\n%s", c.from, c.to, diff)
			}
		}
	})
}
