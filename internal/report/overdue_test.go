package report_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/report"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// pagedQuerier calls a function before each page of overdue invoices, with its number.
type pagedQuerier struct {
	db.Querier
	before func(page int)
	pages  int
}

func (q *pagedQuerier) IndexedBy(index string) string {
	if index == "invoices_by_merchant_state" {
		q.pages++
		q.before(q.pages)
	}
	return q.Querier.IndexedBy(index)
}

// TestOverdueInvoiceThatMoves has an overdue invoice move from a later to an earlier state between two pages.
func TestOverdueInvoiceThatMoves(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		moved, other := rowtest.Sample("inv_1", "m"), rowtest.Sample("inv_2", "m")
		set := func(exception invoice.Exception) {
			moved.Exception = exception
			rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error {
				return ledger.UpdateInvoices(ctx, tx, []invoice.Invoice{moved})
			})
		}
		rowtest.Insert(t, s, moved, other)
		set(invoice.Underpaid)
		q := &pagedQuerier{Querier: s, before: func(page int) {
			if page == 2 {
				set("")
			}
		}}
		from := moved.ExpiresAt.Add(2*report.UsualDelay + time.Hour)
		filter := report.EarlierFilter{MerchantID: "m", From: from, To: from.AddDate(0, 1, 0), End: "inv_3", Limit: 1}
		var ids []string
		rowtest.Must(t, report.NewReader(q).EarlierInvoices(t.Context(), filter, func(page []report.StatedInvoice) error {
			for _, inv := range page {
				ids = append(ids, inv.ID)
			}
			return nil
		}))
		if slices.Sort(ids); !slices.Equal(ids, []string{"inv_1", "inv_2"}) {
			t.Errorf("the overdue invoices are %q, want both once", ids)
		}
	})
}
