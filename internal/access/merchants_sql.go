package access

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// SettlementAddress is an address that a merchant's invoices are paid to.
type SettlementAddress struct {
	ChainKey   string
	Address    invoice.Address
	MerchantID string
	FromBlock  uint64 // transfers in blocks above are recorded
}

// compare orders settlements. Transactions insert them in this order, which avoids deadlocks.
func (s SettlementAddress) compare(o SettlementAddress) int {
	return cmp.Or(cmp.Compare(s.MerchantID, o.MerchantID), cmp.Compare(s.ChainKey, o.ChainKey), bytes.Compare(s.Address[:], o.Address[:]))
}

// InsertSettlementAddresses inserts merchants and their settlement addresses, unless they exist.
func InsertSettlementAddresses(ctx context.Context, tx *db.Tx, settlements []SettlementAddress, now time.Time) error {
	var ids []string
	var addresses [][]any
	for _, s := range slices.Compact(slices.SortedFunc(slices.Values(settlements), SettlementAddress.compare)) {
		ids = append(ids, s.MerchantID)
		addresses = append(addresses, []any{s.ChainKey, s.Address.String(), s.MerchantID, invoice.UnixSeconds(now), int64(s.FromBlock)})
	}
	if err := InsertMerchants(ctx, tx, ids, now); err != nil {
		return err
	}
	return tx.Insert(ctx, db.Insertion{Table: "settlement_addresses",
		Columns: []string{"chain_key", "address", "merchant_id", "created_at", "from_block"}, Conflict: "ON CONFLICT DO NOTHING"}, addresses)
}

// LowerRecordedFrom records that transfers to all settlement addresses of a chain are recorded in blocks above a height,
// because these were read when the addresses were known.
func LowerRecordedFrom(ctx context.Context, tx *db.Tx, chainKey string, height uint64) error {
	return tx.Send(ctx, nil, "UPDATE settlement_addresses SET from_block = $2 WHERE chain_key = $1 AND from_block > $2", chainKey, int64(height))
}

// InsertMerchants inserts merchants, unless they exist.
func InsertMerchants(ctx context.Context, tx *db.Tx, ids []string, now time.Time) error {
	rows := make([][]any, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		rows = append(rows, []any{id, invoice.UnixSeconds(now)})
	}
	return tx.Insert(ctx, db.Insertion{Table: "merchants", Columns: []string{"id", "created_at"}, Conflict: "ON CONFLICT DO NOTHING"}, rows)
}

// IsSettlement selects the settlement address account on chain, including the ones of lost invoices.
const IsSettlement = "settlement_addresses WHERE chain_key = chain AND address = account" +
	" UNION ALL SELECT 1 FROM lost_addresses WHERE lost_addresses.chain_key = chain AND lost_addresses.address = account AND commitment_id IS NULL"

// SettlementAddresses returns which of the addresses are settlement addresses on the chain.
func SettlementAddresses(ctx context.Context, q db.Querier, chainKey string, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.WhichAddresses(ctx, chainKey, among, IsSettlement)
}
