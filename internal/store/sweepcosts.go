package store

import (
	"context"
	"math/bits"
	"slices"
	"strings"
)

// SweepTx is a mined transaction that was sent to sweep deposits.
type SweepTx struct {
	ID       string
	ChainKey string
	Cost     TxCost
	// Merchants are those whose deposits it was to sweep, by id. A transaction of an earlier
	// release has none.
	Merchants []SweepMerchant
}

// SweepMerchant is a merchant's part in a transaction that sweeps.
type SweepMerchant struct {
	MerchantID string
	Deposits   int64
	Gwei       int64 // of the transaction's cost; set by Shares
}

// Shares returns the merchants with their parts of the cost: the same for each deposit,
// rounded so that the parts add up to the cost.
func (t SweepTx) Shares() []SweepMerchant {
	var all, before int64
	for _, m := range t.Merchants {
		all += m.Deposits
	}
	upTo := func(deposits int64) int64 {
		high, low := bits.Mul64(uint64(t.Cost.Gwei), uint64(deposits))
		part, _ := bits.Div64(high, low, uint64(all))
		return int64(part)
	}
	shares := make([]SweepMerchant, len(t.Merchants))
	for i, m := range t.Merchants {
		shares[i] = SweepMerchant{m.MerchantID, m.Deposits, upTo(before+m.Deposits) - upTo(before)}
		before += m.Deposits
	}
	return shares
}

// insertSweepMerchants records whose deposits a transaction carries.
func (tx *Tx) insertSweepMerchants(ctx context.Context, txID string) error {
	_, err := tx.exec(ctx, `INSERT INTO sweep_tx_merchants (tx_id, merchant_id, deposits)
		SELECT tx_id, merchant_id, count(*) FROM queued_sweeps WHERE tx_id = $1 GROUP BY tx_id, merchant_id`, txID)
	return err
}

// SweepMerchants returns whose deposits a transaction was sent to sweep, by id.
func (q *queries) SweepMerchants(ctx context.Context, txID string) ([]SweepMerchant, error) {
	return queryAll(ctx, q, func(row scanner) (m SweepMerchant, err error) {
		err = row.Scan(&m.MerchantID, &m.Deposits)
		return m, err
	}, "SELECT merchant_id, deposits FROM sweep_tx_merchants WHERE tx_id = $1 ORDER BY merchant_id", txID)
}

// SweepTxs returns transactions that were sent to sweep deposits, by when their cost became
// known. Those of a merchant have the other merchants, too. The filter's AfterID is the id
// of a transaction, and After the time of its cost.
func (q *queries) SweepTxs(ctx context.Context, f ReportFilter) ([]SweepTx, error) {
	w := where{conditions: []string{"work = 'sweep'"}}
	w.add("spent_ms < $%d", f.To.UnixMilli())
	if f.AfterID == "" {
		w.add("spent_ms >= $%d", f.From.UnixMilli())
	} else {
		w.args = append(w.args, f.After.UnixMilli(), f.AfterID)
		w.conditions = append(w.conditions, "(spent_ms, id) > ("+parameter(len(w.args)-1)+", "+parameter(len(w.args))+")")
	}
	if f.MerchantID != "" {
		w.add("EXISTS (SELECT 1 FROM sweep_tx_merchants WHERE tx_id = chain_txs.id AND merchant_id = $%d)", f.MerchantID)
	}
	type part struct {
		tx SweepTx
		of SweepMerchant
	}
	parts, err := queryAll(ctx, q, func(row scanner) (p part, err error) {
		err = row.Scan(&p.tx.ID, &p.tx.ChainKey, milliseconds{&p.tx.Cost.At}, &p.tx.Cost.Gwei, nullText(&p.of.MerchantID), nullInt{&p.of.Deposits})
		return p, err
	}, `SELECT txs.id, txs.chain_key, txs.spent_ms, txs.spent_gwei, merchant_id, deposits
		FROM (SELECT id, chain_key, spent_ms, spent_gwei FROM chain_txs`+w.text()+" ORDER BY spent_ms, id LIMIT "+parameter(w.next())+`) AS txs
		LEFT JOIN sweep_tx_merchants ON tx_id = txs.id ORDER BY txs.spent_ms, txs.id`, append(w.args, f.Limit)...)
	var txs []SweepTx
	for _, p := range parts {
		if len(txs) == 0 || txs[len(txs)-1].ID != p.tx.ID {
			txs = append(txs, p.tx)
		}
		if p.of.MerchantID != "" {
			last := &txs[len(txs)-1]
			last.Merchants = append(last.Merchants, p.of)
		}
	}
	for _, tx := range txs {
		slices.SortFunc(tx.Merchants, func(a, b SweepMerchant) int { return strings.Compare(a.MerchantID, b.MerchantID) })
	}
	return txs, err
}
