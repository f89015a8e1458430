package store

import (
	"context"
	"fmt"
	"math/bits"
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

// TxShare is a merchant's part in a mined transaction and its cost.
type TxShare struct {
	TxID       string
	ChainKey   string
	Kind       TxKind
	MerchantID string // empty if it is not recorded for whom the transaction was signed
	Items      int64  // of the merchant that it was signed to carry
	Cost       TxCost // the merchant's part
}

// itemMerchants are, by kind, queries of the merchants of the items that a transaction carries,
// with a row for each item.
var itemMerchants = map[TxKind]string{
	TxOpen:          "SELECT invoices.merchant_id FROM intents JOIN invoices ON invoices.id = intents.invoice_id WHERE intents.tx_id = $1",
	TxClose:         "SELECT invoices.merchant_id FROM intents JOIN invoices ON invoices.id = intents.invoice_id WHERE intents.tx_id = $1",
	TxAuthorization: "SELECT merchant_id FROM authorizations WHERE tx_id = $1",
	TxSweep:         "SELECT merchant_id FROM queued_sweeps WHERE tx_id = $1",
}

// insertTxMerchants records whose items a transaction carries.
func (tx *Tx) insertTxMerchants(ctx context.Context, txID string, kind TxKind) error {
	_, err := tx.exec(ctx, `INSERT INTO chain_tx_merchants (tx_id, merchant_id, items, items_before, items_total)
		SELECT chain_txs.id, merchant_id, n, SUM(n) OVER (ORDER BY merchant_id) - n, SUM(n) OVER ()
		FROM (SELECT merchant_id, count(*) AS n FROM (`+itemMerchants[kind]+`) AS carried GROUP BY merchant_id) AS counted
		JOIN chain_txs ON chain_txs.id = $1`, txID)
	if err != nil {
		return fmt.Errorf("record the merchants of transaction %s: %w", txID, err)
	}
	return nil
}

// TxMerchants returns whose items a transaction was signed to carry, by merchant.
func (q *queries) TxMerchants(ctx context.Context, txID string) ([]TxMerchant, error) {
	return queryAll(ctx, q, func(row scanner) (m TxMerchant, err error) {
		err = row.Scan(&m.MerchantID, &m.Items, &m.Before, &m.Total)
		return m, err
	}, "SELECT merchant_id, items, items_before, items_total FROM chain_tx_merchants WHERE tx_id = $1 ORDER BY merchant_id", txID)
}

// TxShares returns the parts of transactions, by when their cost became known: those of a
// merchant, or all if the filter names none. Those of a transaction are in no order. The filter's
// AfterID is the id of a transaction, After the time of its cost, and Limit bounds the transactions.
func (q *queries) TxShares(ctx context.Context, f ReportFilter) ([]TxShare, error) {
	id := "id"
	if f.MerchantID != "" {
		id = "tx_id"
	}
	var w where
	w.add("spent_ms < $%d", f.To.UnixMilli())
	if f.AfterID == "" {
		w.add("spent_ms >= $%d", f.From.UnixMilli())
	} else {
		w.args = append(w.args, f.After.UnixMilli(), f.AfterID)
		w.conditions = append(w.conditions, "(spent_ms, "+id+") > ("+parameter(len(w.args)-1)+", "+parameter(len(w.args))+")")
	}
	// A replica of an earlier release records the time of a cost with the transaction alone, which then has no parts in either query.
	query := `SELECT txs.id, txs.chain_key, COALESCE(txs.work, txs.kind), txs.spent_ms, txs.spent_gwei, merchant_id, items, items_before, items_total
		FROM (SELECT id, chain_key, work, kind, spent_ms, spent_gwei FROM chain_txs%s ORDER BY spent_ms, id LIMIT %s) AS txs
		LEFT JOIN chain_tx_merchants AS shares ON shares.tx_id = txs.id AND shares.spent_ms = txs.spent_ms ORDER BY txs.spent_ms, txs.id`
	if f.MerchantID != "" {
		w.add("merchant_id = $%d", f.MerchantID)
		query = `SELECT chain_txs.id, chain_key, COALESCE(work, kind), shares.spent_ms, spent_gwei, merchant_id, items, items_before, items_total
		FROM (SELECT tx_id, merchant_id, items, items_before, items_total, spent_ms FROM chain_tx_merchants%s ORDER BY spent_ms, tx_id LIMIT %s) AS shares
		JOIN chain_txs ON chain_txs.id = shares.tx_id ORDER BY shares.spent_ms, shares.tx_id`
	}
	return queryAll(ctx, q, scanTxShare, fmt.Sprintf(query, w.text(), parameter(w.next())), append(w.args, f.Limit)...)
}

func scanTxShare(row scanner) (s TxShare, err error) {
	var m TxMerchant
	err = row.Scan(&s.TxID, &s.ChainKey, &s.Kind, milliseconds{&s.Cost.At}, &s.Cost.Gwei, nullText(&m.MerchantID), nullInt{&m.Items}, nullInt{&m.Before}, nullInt{&m.Total})
	s.MerchantID, s.Items, s.Cost.Gwei = m.MerchantID, m.Items, m.Share(s.Cost.Gwei)
	return s, err
}
