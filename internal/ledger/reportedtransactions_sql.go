package ledger

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// MaxReportedTransactions is how many transactions are kept of an invoice.
const MaxReportedTransactions = 20

// ReportedTransaction is a transaction that a wallet gave to the page of an invoice.
type ReportedTransaction struct {
	Hash invoice.Hash
	At   time.Time
}

// ReportTransaction keeps a transaction that a wallet gave to the page of an invoice, unless it is
// known or the invoice has MaxReportedTransactions.
func (s Tables) ReportTransaction(ctx context.Context, invoiceID string, t ReportedTransaction) error {
	return s.DB.Update(ctx, func(tx *db.Tx) error {
		return tx.Do(ctx, `INSERT INTO reported_transactions (invoice_id, tx_hash, reported_at)
			SELECT $1, $2, CAST($3 AS BIGINT) WHERE (SELECT count(*) FROM reported_transactions WHERE invoice_id = $1) < $4 ON CONFLICT DO NOTHING`,
			invoiceID, t.Hash.String(), invoice.UnixSeconds(t.At), MaxReportedTransactions)
	})
}

func reportedTransactions(ctx context.Context, q db.Querier, invoiceID string) ([]ReportedTransaction, error) {
	return db.QueryAll(ctx, q, db.Fields(func(t *ReportedTransaction) []any {
		return []any{db.Hash(&t.Hash), db.Seconds(&t.At)}
	}), "SELECT tx_hash, reported_at FROM reported_transactions WHERE invoice_id = $1", invoiceID)
}
