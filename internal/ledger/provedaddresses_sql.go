package ledger

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// proveAddress records that the holder of a refund's sending address controls it: the transaction
// names a refund that was prepared for the address.
func proveAddress(ctx context.Context, tx *db.Tx, r invoice.Refund) error {
	_, err := tx.Exec(ctx, "INSERT INTO proved_addresses (chain_key, address, tx_hash, proved_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
		r.ChainKey, r.From.String(), r.TxHash.String(), invoice.UnixSeconds(r.ObservedAt))
	if err != nil {
		return fmt.Errorf("record that %s is controlled by its holder: %w", r.From, err)
	}
	return nil
}

// whichProved returns those of the addresses that ProveAddress recorded.
func whichProved(ctx context.Context, q db.Querier, chainKey string, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.WhichAddresses(ctx, chainKey, among, "proved_addresses WHERE chain_key = chain AND address = account")
}
