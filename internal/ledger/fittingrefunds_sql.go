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
}

// PreparedFitting returns, for each key, up to limit pending prepared refunds of a chain that no transfer on the chain
// pays. Those with a submitted transaction come first, and then the oldest.
func PreparedFitting(
	ctx context.Context, q db.Querier, chainKey string, keys []PreparedKey, limit int,
) (map[PreparedKey][]invoice.RefundRecord, error) {
	rows := make([][]any, len(keys))
	for n, k := range keys {
		rows[n] = []any{int64(n), chainKey, k.From.String(), k.To.String(), k.Token.String(), k.Amount.String()}
	}
	joined, err := lookUp(ctx, q, []string{"n BIGINT", "chain", "sender", "receiver", "coin", "moved"}, rows,
		"SELECT string_agg(id, ' ') FROM (SELECT refund_records.id FROM refund_records "+q.IndexedBy("refund_records_awaited")+`
			LEFT JOIN payments ON payments.id = refund_records.payment_id LEFT JOIN refunds ON refunds.id = refund_records.refund_id
			LEFT JOIN refund_submissions AS sent ON sent.refund_id = refund_records.id AND sent.withdrawn_at IS NULL
			WHERE refund_records.recipient = receiver AND refund_records.amount = moved AND refund_records.chain_key = chain
				AND refund_records.tag IS NOT NULL AND refund_records.status = 'pending'
				AND payments.token = coin AND coalesce(payments.settles_to, payments.to_address) = sender
				AND (refund_records.refund_id IS NULL OR refunds.status = 'orphaned')
			ORDER BY sent.tx_hash IS NULL, refund_records.list_id LIMIT `+strconv.Itoa(limit)+") AS listed")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, list := range joined {
		ids = append(ids, strings.Fields(list)...)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	records, err := preparedWith(ctx, q, chainKey, "refund_records.id", ids)
	byID := byKey(records, func(r invoice.RefundRecord) string { return r.ID })
	fitting := make(map[PreparedKey][]invoice.RefundRecord, len(keys))
	for n, list := range joined {
		for _, id := range strings.Fields(list) {
			fitting[keys[n]] = append(fitting[keys[n]], byID[id])
		}
	}
	return fitting, err
}
