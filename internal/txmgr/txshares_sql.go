package txmgr

import (
	"context"
	"fmt"
	"math/bits"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/ledger"
)

// TxShare is a merchant's part in a mined transaction and its cost.
type TxShare struct {
	TxID       string
	ChainKey   string
	Kind       TxKind
	MerchantID string        // empty if it is not recorded for which merchants the transaction was signed
	Items      int64         // of the merchant that it was signed to carry
	Cost       ledger.TxCost // the merchant's part
}

// ShareFilter selects a page of parts of transactions from From on and before To, in the order of their costs' times.
type ShareFilter struct {
	MerchantID string // empty for all
	From, To   time.Time
	// After and AfterID continue behind a transaction: the time of its cost, and its id. AfterID is empty on the first page.
	After   time.Time
	AfterID string
	Limit   int // of transactions
}

// TxShares returns the parts of transactions, by when their cost became known: the parts of a
// merchant, or all if the filter names no merchant. The parts of one transaction are in no order.
func TxShares(ctx context.Context, q db.Querier, f ShareFilter) ([]TxShare, error) {
	id := "id"
	if f.MerchantID != "" {
		id = "tx_id"
	}
	var w db.Where
	w.Add("spent_ms < $%d", f.To.UnixMilli())
	if f.AfterID == "" {
		w.Add("spent_ms >= $%d", f.From.UnixMilli())
	} else {
		w.Args = append(w.Args, f.After.UnixMilli(), f.AfterID)
		w.Conditions = append(w.Conditions, "(spent_ms, "+id+") > ("+db.Parameter(len(w.Args)-1)+", "+db.Parameter(len(w.Args))+")")
	}
	// A replica of an earlier release records the time of a cost only with the transaction, which then has
	// no parts in either query.
	query := `SELECT txs.id, txs.chain_key, COALESCE(txs.work, txs.kind), txs.spent_ms, txs.spent_gwei, merchant_id, items, items_before, items_total
		FROM (SELECT id, chain_key, work, kind, spent_ms, spent_gwei FROM chain_txs%s ORDER BY spent_ms, id LIMIT %s) AS txs
		LEFT JOIN chain_tx_merchants AS shares ON shares.tx_id = txs.id AND shares.spent_ms = txs.spent_ms ORDER BY txs.spent_ms, txs.id`
	if f.MerchantID != "" {
		w.Add("merchant_id = $%d", f.MerchantID)
		query = `SELECT chain_txs.id, chain_key, COALESCE(work, kind), shares.spent_ms, spent_gwei, merchant_id, items, items_before, items_total
		FROM (SELECT tx_id, merchant_id, items, items_before, items_total, spent_ms FROM chain_tx_merchants%s ORDER BY spent_ms, tx_id LIMIT %s) AS shares
		JOIN chain_txs ON chain_txs.id = shares.tx_id ORDER BY shares.spent_ms, shares.tx_id`
	}
	return db.QueryAll(ctx, q, scanTxShare, fmt.Sprintf(query, w.Text(), db.Parameter(w.Next())), append(w.Args, f.Limit)...)
}

func scanTxShare(row db.Scanner) (s TxShare, err error) {
	var m TxMerchant
	err = row.Scan(&s.TxID, &s.ChainKey, &s.Kind, db.Milliseconds(&s.Cost.At), &s.Cost.Gwei, db.Text(&m.MerchantID), db.Int(&m.Items), db.Int(&m.Before), db.Int(&m.Total))
	s.MerchantID, s.Items, s.Cost.Gwei = m.MerchantID, m.Items, m.Share(s.Cost.Gwei)
	return s, err
}

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

// DailyCost is what the transactions of a chain cost on a day.
type DailyCost struct {
	Day  time.Time // its begin, by UTC
	Gwei int64     // billionths of the native coin
}

// DailyCosts returns the costs of a chain's transactions since a time, by the day on which the cost
// became known, newest first.
func DailyCosts(ctx context.Context, q db.Querier, chainKey string, since time.Time) ([]DailyCost, error) {
	const day = int64(24 * time.Hour / time.Millisecond)
	costs, err := db.QueryAll(ctx, q, func(row db.Scanner) (c DailyCost, err error) {
		var number int64
		err = row.Scan(&number, &c.Gwei)
		c.Day = time.UnixMilli(number * day).UTC()
		return c, err
	}, `SELECT spent_ms / 86400000 AS number, CAST(SUM(spent_gwei) AS BIGINT) FROM chain_txs WHERE chain_key = $1 AND spent_ms >= $2
		GROUP BY spent_ms / 86400000 ORDER BY number DESC`, chainKey, since.UnixMilli())
	return costs, db.During("add up the cost of transactions", err)
}
