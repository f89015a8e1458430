package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestExpireInvoices checks that ExpireInvoices stores what UpdateInvoices does, for invoices without
// payments and with some.
func TestExpireInvoices(t *testing.T) {
	t.Parallel()
	for name, url := range storetest.Databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := url(t)
			s, db := storetest.Open(t, url), storetest.SQL(t, url)
			startChain(t, s, "base")
			stored := func(expire func(context.Context, *store.Tx, []invoice.Invoice) error, first int) (all []string) {
				invoices := openInEveryState(t, s, first)
				for i := range invoices {
					invoices[i].Status = invoice.Expired
				}
				update(t, s, func(ctx context.Context, tx *store.Tx) error { return expire(ctx, tx, invoices) })
				for _, inv := range invoices {
					var row string
					must(t, db.QueryRowContext(t.Context(), fmt.Sprintf(`SELECT status || ' ' || closed_block || ' ' || exception || ' ' || coalesce(item, '-') || ' ' ||
						coalesce(remaining, '-') || ' ' || coalesce(remaining_transfer, '-') || ' ' || sums_stale || ' ' || payment_count || ' ' || amount_paid || ' ' || due || ' ' ||
						(SELECT live || ' ' || closed_block FROM transfer_amounts WHERE invoice_id = id) FROM invoices WHERE id = '%s'`, inv.ID)).Scan(&row))
					all = append(all, row)
				}
				return all
			}
			want := stored(func(ctx context.Context, tx *store.Tx, all []invoice.Invoice) error {
				return tx.UpdateInvoices(ctx, all)
			}, 0)
			got := stored(func(ctx context.Context, tx *store.Tx, all []invoice.Invoice) error {
				return tx.ExpireInvoices(ctx, "base", all)
			}, 100)
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("ExpireInvoices stores\n%s\nand UpdateInvoices\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if want := "expired 100  - - - 0 0 0 0 0 100"; got[0] != want {
				t.Errorf("an invoice without payments is %q, want %q", got[0], want)
			}
			err := s.Update(t.Context(), func(tx *store.Tx) error {
				return tx.ExpireInvoices(t.Context(), "base", []invoice.Invoice{sample("inv_none", "m")})
			})
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an invoice that does not exist: %v, want ErrNotFound", err)
			}
		})
	}
}

// openInEveryState inserts open invoices without payments, with a part paid and pending, with all refunded, and with
// sums that must be added up again. Their names begin with a number.
func openInEveryState(t *testing.T, s *store.Store, first int) []invoice.Invoice {
	t.Helper()
	var all []invoice.Invoice
	for i := range 5 {
		inv := sample(fmt.Sprintf("inv_%d", first+i), "m")
		inv.TransferAmount = invoice.NewAmount(uint64(1000 + first + i))
		all = append(all, inv)
	}
	insert(t, s, all...)
	part := invoice.NewAmount(40)
	all[1].Sums = invoice.Sums{Payments: 1, InTime: part}
	all[2].Sums = invoice.Sums{Payments: 1, InTime: part, Tally: invoice.Tally{Due: part}}
	all[2].AmountPaid, all[2].Exception, all[2].Remaining, all[2].RemainingTransfer = part, invoice.Underpaid, invoice.NewAmount(60), invoice.NewAmount(61)
	all[3] = all[2]
	all[3].ID, all[3].AmountRefunded = fmt.Sprintf("inv_%d", first+3), part
	all[4].Sums.Stale = true
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateInvoices(ctx, all) })
	return all
}
