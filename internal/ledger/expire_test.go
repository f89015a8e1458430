package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestExpireInvoices checks that ExpireInvoices stores what UpdateInvoices does, for invoices without
// payments and with some.
func TestExpireInvoices(t *testing.T) {
	t.Parallel()
	for name, url := range dbtest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := url(t)
			s, conn := dbtest.Open(t, url), dbtest.SQL(t, url)
			rowtest.StartChain(t, s, "base")
			stored := func(expire func(context.Context, *db.Tx, []invoice.Invoice) error, first int) (all []string) {
				invoices := openInEveryState(t, s, first)
				for i := range invoices {
					invoices[i].Status = invoice.Expired
				}
				rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return expire(ctx, tx, invoices) })
				for _, inv := range invoices {
					var row string
					rowtest.Must(t, conn.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT status || ' ' || closed_block || ' ' || exception || ' ' || coalesce(nullif(item, ''), '-') || ' ' ||
						coalesce(remaining, '-') || ' ' || coalesce(remaining_transfer, '-') || ' ' || sums_stale || ' ' || payment_count || ' ' || amount_paid || ' ' || due || ' ' ||
						(SELECT live || ' ' || closed_block FROM transfer_amounts WHERE invoice_id = id) FROM invoices WHERE id = '%s'`, inv.ID)).Scan(&row))
					all = append(all, row)
				}
				return all
			}
			want := stored(func(ctx context.Context, tx *db.Tx, all []invoice.Invoice) error {
				return ledger.UpdateInvoices(ctx, tx, all)
			}, 0)
			got := stored(func(ctx context.Context, tx *db.Tx, all []invoice.Invoice) error {
				return ledger.ExpireInvoices(ctx, tx, "base", all)
			}, 100)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("ExpireInvoices stores\n%s\nand UpdateInvoices\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if want := "expired 100  - - - 0 0 0 0 0 100"; got[0] != want {
				t.Errorf("an invoice without payments is %q, want %q", got[0], want)
			}
			err := s.Update(t.Context(), func(tx *db.Tx) error {
				return ledger.ExpireInvoices(t.Context(), tx, "base", []invoice.Invoice{rowtest.Sample("inv_none", "m")})
			})
			expect.Error(t, db.ErrNotFound, "an invoice that does not exist")(err)
		})
	}
}

// openInEveryState inserts open invoices without payments, with a pending part, with a fully refunded
// payment, and with sums that must be added up again. Their names begin with a number.
func openInEveryState(t *testing.T, s *db.DB, first int) []invoice.Invoice {
	t.Helper()
	var all []invoice.Invoice
	for i := range 5 {
		inv := rowtest.Sample(fmt.Sprintf("inv_%d", first+i), "m")
		inv.TransferAmount = invoice.NewAmount(uint64(1000 + first + i))
		all = append(all, inv)
	}
	rowtest.Insert(t, s, all...)
	part := invoice.NewAmount(40)
	all[1].Sums = invoice.Sums{Payments: 1, InTime: part}
	all[2].Sums = invoice.Sums{Payments: 1, InTime: part, Tally: invoice.Tally{Due: part}}
	all[2].AmountPaid, all[2].Exception, all[2].Remaining, all[2].RemainingTransfer = part, invoice.Underpaid, invoice.NewAmount(60), invoice.NewAmount(61)
	all[3] = all[2]
	all[3].ID, all[3].AmountRefunded = fmt.Sprintf("inv_%d", first+3), part
	all[4].Sums.Stale = true
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return ledger.UpdateInvoices(ctx, tx, all) })
	return all
}
