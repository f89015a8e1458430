package store

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// SettlementAddress is an address that a merchant's invoices are paid to.
type SettlementAddress struct {
	ChainKey   string
	Address    invoice.Address
	MerchantID string
}

// compare orders settlements, so that transactions insert them in one order,
// which avoids deadlocks.
func (s SettlementAddress) compare(o SettlementAddress) int {
	return cmp.Or(cmp.Compare(s.MerchantID, o.MerchantID), cmp.Compare(s.ChainKey, o.ChainKey), bytes.Compare(s.Address[:], o.Address[:]))
}

// InsertSettlementAddresses inserts merchants and their settlement addresses, unless
// they exist.
func (tx *Tx) InsertSettlementAddresses(ctx context.Context, settlements []SettlementAddress, now time.Time) error {
	var ids []string
	var addresses [][]any
	for _, s := range slices.SortedFunc(slices.Values(settlements), SettlementAddress.compare) {
		ids = append(ids, s.MerchantID)
		addresses = append(addresses, []any{s.ChainKey, s.Address.String(), s.MerchantID, invoice.UnixSeconds(now)})
	}
	if err := tx.insertMerchants(ctx, ids, now); err != nil {
		return err
	}
	return tx.insert(ctx, insertion{"settlement_addresses",
		[]string{"chain_key", "address", "merchant_id", "created_at"}, "ON CONFLICT DO NOTHING"}, addresses)
}

// insertMerchants inserts merchants, unless they exist.
func (tx *Tx) insertMerchants(ctx context.Context, ids []string, now time.Time) error {
	rows := make([][]any, 0, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		rows = append(rows, []any{id, invoice.UnixSeconds(now)})
	}
	return tx.insert(ctx, insertion{"merchants", []string{"id", "created_at"}, "ON CONFLICT DO NOTHING"}, rows)
}

// isSettlement selects the settlement address account on chain, also that of a lost invoice.
const isSettlement = "settlement_addresses WHERE chain_key = chain AND address = account" +
	" UNION ALL SELECT 1 FROM lost_addresses WHERE lost_addresses.chain_key = chain AND lost_addresses.address = account AND commitment_id IS NULL"

// SettlementAddresses returns which of the addresses are settlement addresses
// on the chain.
func (q *queries) SettlementAddresses(ctx context.Context, chainKey string, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.whichAddresses(ctx, chainKey, among, isSettlement)
}
