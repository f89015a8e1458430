package settle_test

import (
	"testing"

	"github.com/quittance/quittance/internal/invoice"
)

// TestUnchangedItems: AdoptItems writes no row whose item is right already.
func TestUnchangedItems(t *testing.T) {
	t.Parallel()
	w := onPostgres(t)
	w.mustPrepare(w.paid(1000), 600, to(invoice.Address{9}))
	over := w.create(deposited)
	w.mine(w.head().Time.Unix()+1, w.deposit(over, 1_500_000))
	w.final()
	versions := func() (all string) {
		w.must(w.db.sql.QueryRowContext(t.Context(), `SELECT string_agg(id || ' ' || COALESCE(item, '-') || ' ' || version, ', ' ORDER BY id) FROM (
			SELECT id, item, xmin::text AS version FROM invoices UNION ALL SELECT id, item, xmin::text FROM refund_records) AS rows`).Scan(&all))
		return all
	}
	before := versions()
	w.must(w.AdoptItems(t.Context()))
	if after := versions(); after != before {
		t.Errorf("rows, items and the transactions that wrote them were\n%s\nand are\n%s", before, after)
	}
	_, err := w.db.sql.ExecContext(t.Context(), "UPDATE invoices SET item = NULL")
	w.must(err)
	w.must(w.AdoptItems(t.Context()))
	inv, err := w.db.store.Invoice(t.Context(), over.ID)
	w.must(err)
	var item string
	w.must(w.db.sql.QueryRowContext(t.Context(), "SELECT COALESCE(item, '') FROM invoices WHERE id = $1", over.ID).Scan(&item))
	if want, _ := invoice.ItemOf(inv); item != string(want) || want == "" {
		t.Errorf("the item is %q, want %q", item, want)
	}
}
