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

// amountSizes are the numbers of amounts that one statement looks for. They
// are few, so that the statements are.
var amountSizes = []int{1, 16, 64, 1024}

// AmountUses returns which of the amounts mean something, and what. Invoices
// that are not open count as long as they expired at or after since.
func (q *queries) AmountUses(ctx context.Context, keys []AmountKey, since int64) (map[AmountKey]AmountUse, error) {
	uses := make(map[AmountKey]AmountUse)
	for len(keys) > 0 {
		size := amountSizes[0]
		for _, s := range amountSizes {
			if size = s; s >= len(keys) {
				break
			}
		}
		n := min(size, len(keys))
		if err := q.amountUses(ctx, uses, keys[:n], size, since); err != nil {
			return nil, err
		}
		keys = keys[n:]
	}
	return uses, nil
}

func (q *queries) amountUses(ctx context.Context, uses map[AmountKey]AmountUse, keys []AmountKey, size int, since int64) error {
	args := make([]any, 0, 2*size+1)
	for i := range size {
		k := keys[min(i, len(keys)-1)] // the last one fills the rest
		args = append(args, k.Merchant.String(), k.Amount.String())
	}
	// Each part looks up one wanted amount after the other in an index: SQLite
	// takes the tables of a CROSS JOIN in their order, and would otherwise read
	// all open invoices.
	part := func(columns, amount, condition string) string {
		return "SELECT merchant_address, chain_key, token, " + columns +
			" FROM wanted CROSS JOIN invoices WHERE merchant_address = merchant AND " + amount + " = wanted.amount AND " + condition
	}
	type use struct {
		key AmountKey
		AmountUse
	}
	found, err := collect(ctx, q, func(row scanner) (u use, err error) {
		err = row.Scan(addressCol(&u.key.Merchant), &u.key.ChainKey, addressCol(&u.key.Token), amountCol(&u.key.Amount), seconds{&u.Until})
		u.Taken = u.Until == 0
		return u, err
	}, "WITH wanted (merchant, amount) AS (VALUES "+placeholders(size, 2)+") "+
		part("transfer_amount, 0", "invoices.transfer_amount", "status = 'open'")+" UNION ALL "+
		part("invoices.amount, 0", "invoices.amount", "status = 'open'")+" UNION ALL "+
		part("transfer_amount, expires_at", "invoices.transfer_amount", "status <> 'open' AND expires_at >= "+parameter(2*size+1)),
		append(args, since)...)
	for _, u := range found {
		known := uses[u.key]
		uses[u.key] = AmountUse{Taken: known.Taken || u.Taken, Until: max(known.Until, u.Until)}
	}
	return err
}
