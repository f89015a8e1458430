package access

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
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

// MerchantHolder is the record of a merchant that the configuration has or had.
type MerchantHolder struct {
	MerchantID string
	Allowed    []invoice.AllowedAddress // in the configuration when a service last started with the merchant
	Webhook    string                   // SHA-256 of the host of its URL then, in hex, or ""
	URL        string                   // SHA-256 of the whole URL then, in hex, or ""
	Since      time.Time                // the first start with it
	LeftAt     time.Time                // the first start without it; zero while the configuration has it
	RetiredAt  time.Time                // zero unless it was retired
}

var holderTable = db.NewTable("merchant_holders", func(h *MerchantHolder) []db.Column {
	return []db.Column{
		db.Col("merchant_id", db.Text(&h.MerchantID)),
		db.Col("addresses", db.CodeOf(&h.Allowed, parseAllowed, allowedText)),
		db.Col("webhook_sha256", db.Text(&h.Webhook)),
		db.Col("url_sha256", db.Text(&h.URL)),
		db.Col("since", db.Seconds(&h.Since)),
		db.Col("left_at", db.Null(db.Seconds(&h.LeftAt))),
		db.Col("retired_at", db.Null(db.Seconds(&h.RetiredAt))),
	}
})

// merchantHolders returns all holders, in the order of their ids.
func merchantHolders(ctx context.Context, q db.Querier) ([]MerchantHolder, error) {
	return db.QueryAll(ctx, q, holderTable.Scan, holderTable.Select()+" ORDER BY merchant_id")
}

// FindMerchantHolder returns the holder of a merchant id, or ErrNotFound.
func FindMerchantHolder(ctx context.Context, q db.Querier, merchantID string) (MerchantHolder, error) {
	return db.QueryRow(ctx, q, holderTable.Scan, holderTable.Select()+" WHERE merchant_id = $1", merchantID)
}

// PutMerchantHolder inserts or replaces a holder. If its URL has changed, the former URL's breaker is deleted.
func PutMerchantHolder(ctx context.Context, tx *db.Tx, h MerchantHolder) error {
	if _, err := tx.Exec(ctx, `DELETE FROM breakers WHERE merchant_id = $1 AND EXISTS (
		SELECT 1 FROM merchant_holders h WHERE h.merchant_id = $1 AND h.url_sha256 <> $2)`, h.MerchantID, h.URL); err != nil {
		return err
	}
	conflict := "ON CONFLICT (merchant_id) DO UPDATE SET " + holderTable.Without("merchant_id").Excluded()
	return holderTable.Insert(ctx, tx, conflict, h)
}

// deleteMerchantHolder deletes the record of a merchant id. It returns ErrNotFound for an unknown id.
func deleteMerchantHolder(ctx context.Context, tx *db.Tx, merchantID string) error {
	return tx.Change(ctx, "DELETE FROM merchant_holders WHERE merchant_id = $1", merchantID)
}

// merchantsWithoutHolder returns the ids of merchants that have no profile and no holder.
func merchantsWithoutHolder(ctx context.Context, q db.Querier) ([]string, error) {
	return db.QueryAll(ctx, q, db.ScanID, `SELECT id FROM merchants m WHERE NOT EXISTS (SELECT 1 FROM merchant_profiles p WHERE p.merchant_id = m.id)
		AND NOT EXISTS (SELECT 1 FROM merchant_holders h WHERE h.merchant_id = m.id) ORDER BY id`)
}

// HoldsAll reports whether a merchant holds all of the addresses.
func HoldsAll(ctx context.Context, q db.Querier, merchantID string, addresses []invoice.Address) (bool, error) {
	for _, address := range addresses {
		n, err := db.QueryRow(ctx, q, db.ScanCount, `SELECT count(*) FROM held_addresses h WHERE h.address = $1 AND (h.sole_holder = $2 OR
			EXISTS (SELECT 1 FROM address_grants g WHERE g.address = h.address AND g.merchant_id = $2))`, address.String(), merchantID)
		if err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// MaxCountedUses bounds the counts of MerchantUses.
const MaxCountedUses = 1000

// MerchantUses is what would be affected if another company used a merchant's id. Each count ends at MaxCountedUses.
type MerchantUses struct {
	Open    int // invoices that can still be paid, and drafts
	Waiting int // events that wait to be delivered
	Keys    int // that were not revoked
	Past    int // other invoices, and payment links
}

// Any reports whether any count is above 0.
func (u MerchantUses) Any() bool { return u.Open+u.Waiting+u.Keys+u.Past > 0 }

// findMerchantUses counts what belongs to a merchant.
func findMerchantUses(ctx context.Context, q db.Querier, merchantID string) (u MerchantUses, err error) {
	for _, count := range []struct {
		to   *int
		rows string
	}{
		{&u.Open, "invoices WHERE merchant_id = $1 AND status IN ('open', 'draft')"},
		{&u.Waiting, "deliveries WHERE merchant_id = $1"},
		{&u.Keys, "api_keys WHERE merchant_id = $1 AND revoked_at IS NULL"},
		{&u.Past, "invoices WHERE merchant_id = $1 AND status NOT IN ('open', 'draft')"},
		{&u.Past, "payment_links WHERE merchant_id = $1"},
	} {
		n, err := db.QueryRow(ctx, q, db.ScanCount, fmt.Sprintf("SELECT count(*) FROM (SELECT 1 FROM %s LIMIT %d) AS bounded", count.rows, MaxCountedUses), merchantID)
		if err != nil {
			return u, fmt.Errorf("count what belongs to the merchant %s: %w", merchantID, err)
		}
		*count.to += n
	}
	return u, nil
}
