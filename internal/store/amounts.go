package store

import (
	"context"

	"github.com/quittance/quittance/internal/invoice"
)

// AmountKey is an amount that arrives at an address.
type AmountKey struct {
	ChainKey        string
	Merchant, Token invoice.Address
	Amount          invoice.Amount
}

// AmountUse says what an amount that arrives at an address already means.
type AmountUse struct {
	// Taken: an open invoice has it, as its transfer amount or as its amount.
	Taken bool
	// Until is the newest expiresAt (Unix seconds) of the invoices that are
	// not open any more and had it as their transfer amount; 0 when there is
	// none since the time that was asked for.
	Until int64
}

// AmountUses returns which of the amounts mean something, and what. Invoices
// that are not open count as long as they expired at or after since.
func (q *queries) AmountUses(ctx context.Context, keys []AmountKey, since int64) (map[AmountKey]AmountUse, error) {
	uses := make(map[AmountKey]AmountUse)
	err := padded(keys, AmountKey{}, func(list []AmountKey) error { return q.amountUses(ctx, uses, list, since) })
	return uses, err
}

func (q *queries) amountUses(ctx context.Context, uses map[AmountKey]AmountUse, keys []AmountKey, since int64) error {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.Merchant.String(), k.Amount.String()}
	}
	text, args := values([]string{"merchant", "amount"}, rows)
	// Each part looks up one wanted amount after the other in an index: SQLite
	// takes the tables of a CROSS JOIN in their order, and would otherwise read
	// all open invoices.
	part := func(columns, condition string) string {
		return "SELECT merchant_address, chain_key, token, " + columns + " FROM wanted CROSS JOIN invoices WHERE " + condition
	}
	const byTransferAmount = "merchant_address = merchant AND transfer_amount = wanted.amount AND status "
	type use struct {
		key AmountKey
		AmountUse
	}
	found, err := collect(ctx, q, func(row scanner) (u use, err error) {
		err = row.Scan(addressCol(&u.key.Merchant), &u.key.ChainKey, addressCol(&u.key.Token), amountCol(&u.key.Amount), seconds{&u.Until})
		u.Taken = u.Until == 0
		return u, err
	}, text+
		part("transfer_amount, 0", byTransferAmount+"= 'open'")+" UNION ALL "+
		part("invoices.amount, 0", "merchant_address = merchant AND invoices.amount = wanted.amount AND status = 'open'")+" UNION ALL "+
		part("transfer_amount, expires_at", byTransferAmount+"<> 'open' AND expires_at >= "+parameter(len(args)+1)),
		append(args, since)...)
	for _, u := range found {
		known := uses[u.key]
		uses[u.key] = AmountUse{Taken: known.Taken || u.Taken, Until: max(known.Until, u.Until)}
	}
	return err
}
