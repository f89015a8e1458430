package ledger

import (
	"context"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// sumColumns are the running sums of an invoice's payments.
func sumColumns(s *invoice.Sums) []db.Column {
	return []db.Column{
		db.Col("sums_stale", db.Bool(&s.Stale)),
		db.Col("payment_count", db.Int(&s.Payments)),
		db.Col("arrived_in_time", db.Amount(&s.InTime)),
		db.Col("arrived_in_time_dust", db.Amount(&s.InTimeDust)),
		db.Col("arrived_late", db.Amount(&s.Late)),
		db.Col("arrived_late_dust", db.Amount(&s.LateDust)),
		db.Col("newest_block", db.Int(&s.Newest.BlockNumber)),
		db.Col("newest_log", db.Int(&s.Newest.LogIndex)),
		db.Col("due", db.Amount(&s.Tally.Due)),
		db.Col("due_dust", db.Amount(&s.Tally.DueDust)),
		db.Col("beyond_dust", db.Amount(&s.Tally.BeyondDust)),
		db.Col("counted_block", db.Int(&s.Tally.Last.BlockNumber)),
		db.Col("counted_log", db.Int(&s.Tally.Last.LogIndex)),
		db.Col("arrived_returned", db.Amount(&s.Returned)),
		db.Col("due_returned", db.Amount(&s.Tally.Returned)),
	}
}

// NewestPayments returns the invoice's payments in any status, the highest on the chain first. payments_by_invoice has
// them in this order (TestStatementsUseIndexes).
func (q Reader) NewestPayments(ctx context.Context, invoiceID string, limit int) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, scanOrphaned,
		"SELECT orphaned_at, "+paymentTable.List()+` FROM payments WHERE invoice_id = $1
		ORDER BY block_number DESC, log_index DESC LIMIT $2`, invoiceID, limit)
}

// NewestPaymentIDs returns the ids of up to limit payments of each of the invoices, in any status, the highest on the
// chain.
func NewestPaymentIDs(ctx context.Context, q db.Querier, invoiceIDs []string, limit int) (map[string][]string, error) {
	rows := make([][]any, len(invoiceIDs))
	for n, id := range invoiceIDs {
		rows[n] = []any{int64(n), id}
	}
	found, err := lookUp(ctx, q, []string{"n BIGINT", "paid"}, rows,
		`SELECT string_agg(id, ' ') FROM (SELECT id FROM payments WHERE invoice_id = paid
		ORDER BY block_number DESC, log_index DESC LIMIT `+strconv.Itoa(limit)+") AS listed")
	newest := make(map[string][]string, len(invoiceIDs))
	for n, ids := range found {
		newest[invoiceIDs[n]] = strings.Fields(ids)
	}
	return newest, err
}

// PaidThroughRegistry returns which of the invoices have a confirmed payment through the registry.
func PaidThroughRegistry(ctx context.Context, q db.Querier, invoiceIDs []string) (map[string]bool, error) {
	rows := db.Each(invoiceIDs, func(id string) []any { return []any{id} })
	found, err := q.WhichExist(ctx, []string{"paid"}, rows,
		"payments WHERE invoice_id = paid AND method = 'registry' AND status = 'confirmed'")
	registered := make(map[string]bool, len(found))
	for _, n := range found {
		registered[invoiceIDs[n]] = true
	}
	return registered, err
}
