package ledger

import (
	"context"
	"strconv"
	"strings"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// PreparedKey is what a transfer has in common with a prepared refund that it pays without naming it.
type PreparedKey struct {
	From, To, Token invoice.Address
	Amount          invoice.Amount
	SubmittedTx     invoice.Hash // of the refund; zero: any, or none
}

// PreparedFitting returns, for each key, up to limit pending prepared refunds of a chain that no transfer on the chain
// pays. Those with a submitted transaction come first, and then the oldest. A key reads only the refunds that it
// returns, because merchants can prepare any number of refunds to an account.
func PreparedFitting(
	ctx context.Context, q db.Querier, chainKey string, keys []PreparedKey, limit int,
) (map[PreparedKey][]invoice.RefundRecord, error) {
	var ids []string
	listed := make(map[PreparedKey][]string, len(keys))
	for own, some := range grouped(keys, func(k PreparedKey) bool { return !k.SubmittedTx.IsZero() }) {
		rows := make([][]any, len(some))
		for n, k := range some {
			rows[n] = []any{int64(n), chainKey, k.From.String(), k.To.String(), k.Token.String(), k.Amount.String(), k.SubmittedTx.String()}
		}
		index, condition, order := "refund_records_awaited", "", "refund_records.submitted_tx IS NULL, "
		if own {
			index, condition, order = "refund_records_submitted", "refund_records.submitted_tx = submitted AND ", ""
		}
		found, err := lookUp(ctx, q, []string{"n BIGINT", "chain", "sends", "receives", "coin", "moved", "submitted"}, rows,
			"SELECT string_agg(id, ' ') FROM (SELECT refund_records.id FROM refund_records "+q.IndexedBy(index)+`
				LEFT JOIN refunds ON refunds.id = refund_records.refund_id
				WHERE `+condition+`refund_records.chain_key = chain AND refund_records.sender = sends AND refund_records.recipient = receives
					AND refund_records.token = coin AND refund_records.amount = moved AND refund_records.tag IS NOT NULL
					AND refund_records.status = 'pending' AND (refund_records.refund_id IS NULL OR refunds.status = 'orphaned')
				ORDER BY `+order+"refund_records.list_id LIMIT "+strconv.Itoa(limit)+") AS listed")
		if err != nil {
			return nil, err
		}
		for n, list := range found {
			listed[some[n]] = strings.Fields(list)
			ids = append(ids, listed[some[n]]...)
		}
	}
	records, err := preparedWith(ctx, q, chainKey, "refund_records.id", ids)
	byID := byKey(records, func(r invoice.RefundRecord) string { return r.ID })
	fitting := make(map[PreparedKey][]invoice.RefundRecord, len(keys))
	for key, list := range listed {
		for _, id := range list {
			fitting[key] = append(fitting[key], byID[id])
		}
	}
	return fitting, err
}
