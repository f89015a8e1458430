package ledger_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestOrphanedRefundsBetween reads the refunds that reorgs dropped in pages; several were dropped in one second.
func TestOrphanedRefundsBetween(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		rowtest.StartChain(t, s, "base")
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
		var want []string
		for n := range 7 {
			p := rowtest.SamplePayment(n + 1)
			want = append(want, p.ID)
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				if err := ledger.SavePayments(ctx, tx, []ledger.PaymentRow{p}); err != nil {
					return err
				}
				r := rowtest.RefundOf(p)
				r.BlockNumber = 1000
				if err := ledger.SaveRefund(ctx, tx, r); err != nil {
					return err
				}
				return ledger.OrphanAbove(ctx, tx, r.ChainKey, 999, rowtest.At(5000), rowtest.At(int64(2000+n/3)))
			})
		}
		all := func(from, to int64) (got []string) {
			for after, more := (ledger.OrphanedRefund{At: rowtest.At(from)}), true; more; more = after.ID != "" {
				ids, last, err := ledger.OrphanedRefundsBetween(t.Context(), s, "base", after, rowtest.At(to), 2)
				rowtest.Must(t, err)
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
			expect.NoDiff(t, cmp.Diff(c.want, all(c.from, c.to)), "from %d to %d", c.from, c.to)
		}
	})
}
