package ledger

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// ExpiringInvoices returns open invoices of the chain, with their details, that expire before a time
// and that no transfer up to the block from can pay, ordered by their expiry. It leaves out invoices
// that ended in a past that the database has lost, because they were voided or paid, and those with a
// payment in time that waits for the verdict of the screening hook.
func ExpiringInvoices(ctx context.Context, q db.Querier, chainKey string, from uint64, before time.Time, limit int) ([]invoice.Invoice, error) {
	return db.QueryAll(ctx, q, detailedTable.Scan, selectDetailed+`
		WHERE chain_key = $1 AND expires_at < $2 AND from_block >= $3 AND status = 'open' AND closed_block IS NULL AND NOT EXISTS (
			SELECT 1 FROM payments AS held WHERE held.invoice_id = invoices.id AND held.screening = 'waiting' AND held.status <> 'orphaned'
				AND held.block_time <= invoices.expires_at)
		ORDER BY expires_at LIMIT $4`,
		chainKey, invoice.UnixSeconds(before), int64(from), limit)
}

// ExpireInvoices updates open invoices of a chain that have expired. Their transfer amounts become
// free for others. It returns ErrNotFound if an invoice does not exist.
//
// Most of them have no payment: only their state changes, which costs half of UpdateInvoices.
func ExpireInvoices(ctx context.Context, tx *db.Tx, chainKey string, expired []invoice.Invoice) error {
	var paid []invoice.Invoice // in part
	var unpaid [][]any
	for _, inv := range expired {
		if inv.Sums.Payments > 0 || inv.Sums.Stale || !inv.Remaining.IsZero() {
			paid = append(paid, inv)
		} else {
			unpaid = append(unpaid, []any{inv.ID})
		}
	}
	if err := UpdateInvoices(ctx, tx, paid); err != nil {
		return err
	}
	var changed int64
	err := tx.LookUpWanted([]string{"id"}, unpaid, func(with string, args []any) error {
		n, err := tx.Exec(ctx, with+"UPDATE invoices SET status = 'expired', closed_block = coalesce(closed_block, (SELECT indexed_number FROM chains WHERE chain_key = "+
			db.Parameter(len(args)+1)+"), 0) FROM wanted WHERE invoices.id = wanted.id", append(args, chainKey)...)
		changed += n
		return err
	})
	if err == nil && changed != int64(len(unpaid)) {
		return db.ErrNotFound
	}
	if err != nil {
		return err
	}
	return tx.LookUpWanted([]string{"id"}, unpaid, func(with string, args []any) error {
		return tx.Send(ctx, nil, with+freeAmounts+" FROM wanted WHERE closed_block IS NULL AND invoice_id = wanted.id", args...)
	})
}

// freeAmounts ends the transfer amounts of invoices that are no longer open.
const freeAmounts = `UPDATE transfer_amounts SET live = 0, closed_block =
	(SELECT invoices.closed_block FROM invoices WHERE invoices.id = transfer_amounts.invoice_id)`
