package ledger

import (
	"cmp"
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// unattributedTo returns the payments to addresses, in blocks from a number on, that have no invoice,
// that no person dismissed, and that do not wait for older blocks already. They may have been
// refunded, or dropped by a reorg and be mined again.
func unattributedTo(ctx context.Context, q db.Querier, chainKey string, from uint64, to []invoice.Address) (all []PaymentRow, err error) {
	for _, address := range to {
		found, err := db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+" WHERE "+unattributedSince+isDecided, address.String(), chainKey, int64(from))
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// unattributedOf returns up to limit payments in an invoice's token to its addresses, in blocks up to the one at which it
// ended, that unattributedTo returns and that are not orphaned.
func unattributedOf(ctx context.Context, q db.Querier, inv invoice.Invoice, limit int) ([]invoice.Payment, error) {
	deposit := cmp.Or(inv.DepositAddress, inv.Merchant)
	rows, err := db.QueryAll(ctx, q, paymentTable.Scan, paymentTable.Select()+" "+q.IndexedBy("payments_unattributed_to")+`
		WHERE to_address IN ($1, $2) AND chain_key = $3 AND block_number <= $4 AND token = $5 AND status <> 'orphaned' AND `+unattributed+isDecided+" LIMIT $6",
		inv.Merchant.String(), deposit.String(), inv.ChainKey, int64(inv.ClosedBlock), inv.Token.String(), limit)
	all := db.Each(rows, func(row PaymentRow) invoice.Payment { return row.Payment })
	return all, err
}

// isNamed reports whether the transaction of a payment without an invoice to the invoice's settlement address, in blocks
// from a number on, names the invoice's commitment.
func isNamed(ctx context.Context, q db.Querier, inv invoice.Invoice, from uint64) (bool, error) {
	ids, err := db.QueryAll(ctx, q, db.ScanID, `SELECT id FROM payments WHERE to_address = $1 AND chain_key = $2 AND block_number >= $3
		AND invoice_id IS NULL AND $4 IN (commitment_id, registry_id, authorization_id) LIMIT 1`,
		inv.Merchant.String(), inv.ChainKey, int64(from), inv.CommitmentID.String())
	return len(ids) > 0, err
}

const (
	// unattributed selects payments that have no invoice and that no person dismissed or rejected.
	unattributed = `invoice_id IS NULL AND coalesce(screening, '') <> 'rejected' AND coalesce(use, 'undecided') IN ('undecided', 'refunding', 'refunded')`
	// unattributedSince selects those to an address in blocks from a number on.
	unattributedSince = "to_address = $1 AND chain_key = $2 AND block_number >= $3 AND " + unattributed
	// isDecided leaves out those that wait for older blocks.
	isDecided = " AND NOT EXISTS (SELECT 1 FROM undecided_payments WHERE payment_id = payments.id)"
)

// moveSeenAfter makes payments without an invoice to addresses, in blocks from a number on, count as
// first seen after the event with a number.
func moveSeenAfter(ctx context.Context, tx *db.Tx, chainKey string, from uint64, to []invoice.Address, seq int64) error {
	for _, address := range to {
		if _, err := tx.Exec(ctx, "UPDATE payments SET seen_after = $4 WHERE "+unattributedSince, address.String(), chainKey, int64(from), seq); err != nil {
			return err
		}
	}
	return nil
}
