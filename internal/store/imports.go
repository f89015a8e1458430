package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// UnattributedTo returns the payments to addresses in blocks from a number on that have no invoice, that no person
// dismissed, and that do not wait for older blocks already. They may have been refunded.
func (q *queries) UnattributedTo(ctx context.Context, chainKey string, from uint64, to []invoice.Address) (all []PaymentRow, err error) {
	for _, address := range to {
		found, err := queryAll(ctx, q, scanPayment, "SELECT "+paymentColumns+" FROM payments WHERE "+unattributedSince+`
			AND NOT EXISTS (SELECT 1 FROM undecided_payments WHERE payment_id = payments.id)`, address.String(), chainKey, int64(from))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// unattributedSince selects payments to an address that have no invoice and that no person dismissed.
const unattributedSince = `to_address = $1 AND chain_key = $2 AND block_number >= $3 AND invoice_id IS NULL AND status <> 'orphaned'
	AND coalesce(use, 'undecided') IN ('undecided', 'refunding', 'refunded')`

// MoveSeenAfter lets payments to addresses in blocks from a number on, that have no invoice, count as first seen after
// the event with a number.
func (tx *Tx) MoveSeenAfter(ctx context.Context, chainKey string, from uint64, to []invoice.Address, seq int64) error {
	for _, address := range to {
		if _, err := tx.exec(ctx, "UPDATE payments SET seen_after = $4 WHERE "+unattributedSince, address.String(), chainKey, int64(from), seq); err != nil {
			return err
		}
	}
	return nil
}
