package txmgr

import (
	"context"
	"fmt"
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
