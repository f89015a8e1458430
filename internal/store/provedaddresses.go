package store

import (
	"context"
	"fmt"

	"github.com/quittance/quittance/internal/invoice"
)

// ProveAddress records that the holder of the address from which a refund went controls it: the transaction
// names a refund that was prepared for the address.
func (tx *Tx) ProveAddress(ctx context.Context, r invoice.Refund) error {
	_, err := tx.exec(ctx, "INSERT INTO proved_addresses (chain_key, address, tx_hash, proved_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
		r.ChainKey, r.From.String(), r.TxHash.String(), invoice.UnixSeconds(r.ObservedAt))
	if err != nil {
		return fmt.Errorf("record that %s is controlled by its holder: %w", r.From, err)
	}
	return nil
}

// IsProved reports whether ProveAddress recorded an address.
func (q *queries) IsProved(ctx context.Context, chainKey string, a invoice.Address) (bool, error) {
	found, err := q.whichAddresses(ctx, chainKey, []invoice.Address{a}, "proved_addresses WHERE chain_key = chain AND address = account")
	return found[a], err
}
