package ledger

import (
	"context"
	"slices"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// InsertNotice inserts a notice. It reports false if the provider sent it before.
func InsertNotice(ctx context.Context, tx *db.Tx, n invoice.Notice) (bool, error) {
	rows, err := tx.Exec(ctx, `INSERT INTO notices (id, provider, type, transfer_id, amount_text, provider_currency,
		provider_chain, destination, amount, currency, chain_key, address, payment_id, received_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT (provider, type, transfer_id) DO NOTHING`,
		n.ID, n.Provider, n.Type, n.TransferID, n.AmountText, n.ProviderCurrency, n.ProviderChain, n.Destination,
		db.OrNull(n.Amount), db.OrNull(n.Currency), db.OrNull(n.ChainKey), db.OrNull(n.Address), db.OrNull(n.PaymentID), n.ReceivedAt.Unix())
	return rows == 1, err
}

// UnlinkedPayment returns the newest payment that the notice can announce: with its chain, address and
// amount, seen within the window, and not linked to another notice of this provider and type. It
// returns ErrNotFound if there is no such payment.
func UnlinkedPayment(ctx context.Context, q db.Querier, n invoice.Notice) (PaymentRow, error) {
	return db.QueryRow(ctx, q, paymentTable.Scan, paymentTable.Select()+` `+q.IndexedBy("payments_by_receiver")+`
		WHERE to_address = $1 AND amount = $2 AND chain_key = $3 AND currency = $4 AND status <> 'orphaned'
			AND observed_at >= $7 AND NOT EXISTS (SELECT 1 FROM notices WHERE notices.payment_id = payments.id AND notices.provider = $5 AND notices.type = $6)
		ORDER BY observed_at DESC, seen_id DESC LIMIT 1`,
		n.Address.String(), n.Amount.String(), n.ChainKey, n.Currency, n.Provider, n.Type, n.ReceivedAt.Add(-invoice.NoticeWindow).Unix())
}

// maxUnlinkedNotices is how many notices UnlinkedNotices reads.
const maxUnlinkedNotices = 100

// unlinkedNotices returns when notices of transfers on a chain were received, in a range of time, if
// no payment of theirs is stored. It reads only the newest maxUnlinkedNotices.
func unlinkedNotices(ctx context.Context, q db.Querier, chainKey string, from, before time.Time) ([]time.Time, error) {
	return db.QueryAll(ctx, q, db.ScanTime, `SELECT received_at FROM (SELECT * FROM notices ORDER BY id DESC LIMIT $4) AS newest
		WHERE chain_key = $1 AND payment_id IS NULL AND address IS NOT NULL AND amount IS NOT NULL AND received_at >= $2 AND received_at < $3
		ORDER BY received_at`, chainKey, from.Unix(), before.Unix(), maxUnlinkedNotices)
}

// Announced returns the payments with the address and amount of a notice without a payment.
func Announced(ctx context.Context, q db.Querier, payments []PaymentRow) ([]PaymentRow, error) {
	rows := db.Each(payments, func(p PaymentRow) []any { return []any{p.To.String(), p.Amount.String()} })
	found, err := q.WhichExist(ctx, []string{"receiver", "moved"}, rows,
		"notices WHERE address = receiver AND amount = moved AND payment_id IS NULL")
	announced := make([]PaymentRow, len(found))
	for i, n := range slices.Sorted(slices.Values(found)) {
		announced[i] = payments[n]
	}
	return announced, err
}

// LinkNotices links the payment to the oldest matching notice of each provider and type that has no payment and was
// received within the window. It skips a provider and type that already announced the payment.
func LinkNotices(ctx context.Context, tx *db.Tx, p invoice.Payment) error {
	return tx.Do(ctx, `UPDATE notices SET payment_id = $1 WHERE id IN (
		SELECT min(id) FROM notices AS n WHERE address = $2 AND amount = $3 AND chain_key = $4 AND currency = $5
			AND payment_id IS NULL AND received_at >= $6 AND NOT EXISTS (SELECT 1 FROM notices AS has
				WHERE has.payment_id = $1 AND has.provider = n.provider AND has.type = n.type)
			GROUP BY provider, type)`,
		p.ID, p.To.String(), p.Amount.String(), p.ChainKey, p.Currency, p.ObservedAt.Add(-invoice.NoticeWindow).Unix())
}
