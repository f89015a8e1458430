package ledger

import (
	"context"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// sumColumns are the running sums of an invoice's payments.
const sumColumns = `sums_stale, payment_count, arrived_in_time, arrived_in_time_dust, arrived_late, arrived_late_dust,
	newest_block, newest_log, due, due_dust, beyond_dust, counted_block, counted_log, arrived_returned, due_returned`

// sumTargets returns the scan targets of sumColumns.
func sumTargets(s *invoice.Sums) []any {
	return []any{&s.Stale, &s.Payments, db.AmountCol(&s.InTime), db.AmountCol(&s.InTimeDust), db.AmountCol(&s.Late), db.AmountCol(&s.LateDust),
		&s.Newest.BlockNumber, &s.Newest.LogIndex, db.AmountCol(&s.Tally.Due), db.AmountCol(&s.Tally.DueDust), db.AmountCol(&s.Tally.BeyondDust),
		&s.Tally.Last.BlockNumber, &s.Tally.Last.LogIndex, db.AmountCol(&s.Returned), db.AmountCol(&s.Tally.Returned)}
}

// sumValues returns the values of sumColumns.
func sumValues(s invoice.Sums) []any {
	stale := int64(0)
	if s.Stale {
		stale = 1
	}
	return []any{stale, s.Payments, s.InTime.String(), s.InTimeDust.String(), s.Late.String(), s.LateDust.String(),
		int64(s.Newest.BlockNumber), int64(s.Newest.LogIndex), s.Tally.Due.String(), s.Tally.DueDust.String(), s.Tally.BeyondDust.String(),
		int64(s.Tally.Last.BlockNumber), int64(s.Tally.Last.LogIndex), s.Returned.String(), s.Tally.Returned.String()}
}

// NewestPayments returns the invoice's payments in any status, the highest on
// the chain first. payments_by_invoice has them in this order
// (TestStatementsUseIndexes).
func (q Reader) NewestPayments(ctx context.Context, invoiceID string, limit int) ([]PaymentRow, error) {
	return db.QueryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+` FROM payments WHERE invoice_id = $1
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

// PaidThroughRegistry returns which of the invoices have a confirmed payment
// through the registry.
func PaidThroughRegistry(ctx context.Context, q db.Querier, invoiceIDs []string) (map[string]bool, error) {
	rows := make([][]any, len(invoiceIDs))
	for i, id := range invoiceIDs {
		rows[i] = []any{id}
	}
	found, err := q.WhichExist(ctx, []string{"paid"}, rows,
		"payments WHERE invoice_id = paid AND method = 'registry' AND status = 'confirmed'")
	registered := make(map[string]bool, len(found))
	for _, n := range found {
		registered[invoiceIDs[n]] = true
	}
	return registered, err
}
