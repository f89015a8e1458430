package rowtest

import (
	"context"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// NoticesOfPayment returns the notices that announced the payment.
func NoticesOfPayment(ctx context.Context, q db.Querier, paymentID string) ([]invoice.Notice, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (invoice.Notice, error) {
		var n invoice.Notice
		err := row.Scan(&n.ID, &n.Provider, &n.Type, &n.TransferID, &n.AmountText, &n.ProviderCurrency, &n.ProviderChain,
			&n.Destination, db.Amount(&n.Amount), db.Text(&n.Currency), db.Text(&n.ChainKey), db.Address(&n.Address),
			db.Text(&n.PaymentID), db.Seconds(&n.ReceivedAt))
		return n, err
	}, `SELECT id, provider, type, transfer_id, amount_text, provider_currency, provider_chain, destination,
		amount, currency, chain_key, address, payment_id, received_at FROM notices WHERE payment_id = $1 ORDER BY id`, paymentID)
}
