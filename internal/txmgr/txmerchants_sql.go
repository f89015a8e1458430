package txmgr

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/quittance/quittance/internal/db"
)

// TxMerchant is a merchant's part in a transaction: how many of its items are the merchant's.
type TxMerchant struct {
	MerchantID string
	Items      int64
	Before     int64 // items of the merchants before this one
	Total      int64 // items of all merchants; zero if they were not recorded
}

// Share returns the merchant's part of a cost: the same for each item, rounded so that the parts
// of all merchants add up to the cost. Without recorded items, it is the whole cost.
func (m TxMerchant) Share(gwei int64) int64 {
	if m.Total == 0 {
		return gwei
	}
	upTo := func(items int64) int64 {
		high, low := bits.Mul64(uint64(gwei), uint64(items))
		part, _ := bits.Div64(high, low, uint64(m.Total))
		return int64(part)
	}
	return upTo(m.Before+m.Items) - upTo(m.Before)
}

// insertTxMerchants records the merchants of the items that a transaction carries.
func insertTxMerchants(ctx context.Context, tx *db.Tx, txID string, kind TxKind) error {
	_, err := tx.Exec(ctx, `INSERT INTO chain_tx_merchants (tx_id, merchant_id, items, items_before, items_total)
		SELECT chain_txs.id, merchant_id, n, SUM(n) OVER (ORDER BY merchant_id) - n, SUM(n) OVER ()
		FROM (SELECT merchant_id, count(*) AS n FROM (`+itemMerchants[kind]+`) AS carried GROUP BY merchant_id) AS counted
		JOIN chain_txs ON chain_txs.id = $1`, txID)
	if err != nil {
		return fmt.Errorf("record the merchants of transaction %s: %w", txID, err)
	}
	return nil
}

// itemMerchants are, by kind, queries of the merchants of a transaction's items, with a row for each item.
var itemMerchants = map[TxKind]string{
	TxOpen:          "SELECT invoices.merchant_id FROM intents JOIN invoices ON invoices.id = intents.invoice_id WHERE intents.tx_id = $1",
	TxClose:         "SELECT invoices.merchant_id FROM intents JOIN invoices ON invoices.id = intents.invoice_id WHERE intents.tx_id = $1",
	TxAuthorization: "SELECT merchant_id FROM authorizations WHERE tx_id = $1",
	TxSweep:         "SELECT merchant_id FROM queued_sweeps WHERE tx_id = $1",
}

// TxMerchants returns the merchants of the items that a transaction was signed to carry.
func TxMerchants(ctx context.Context, q db.Querier, txID string) ([]TxMerchant, error) {
	return db.QueryAll(ctx, q, db.Fields(func(m *TxMerchant) []any {
		return []any{&m.MerchantID, &m.Items, &m.Before, &m.Total}
	}), "SELECT merchant_id, items, items_before, items_total FROM chain_tx_merchants WHERE tx_id = $1 ORDER BY merchant_id", txID)
}
