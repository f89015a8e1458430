package ledger

import (
	"context"

	"github.com/quittance/quittance/internal/db"
)

// Awaited reports what kinds of changes the service waits for on a chain.
type Awaited struct {
	// Any: there is an open invoice, a payment, refund or sweep that is not final, or a
	// transaction or authorization on its way.
	Any bool
	// Unconfirmed: a payment, refund or sweep is in a block that is not final.
	Unconfirmed bool
}

// readAwaited returns what the service waits for on a chain. It ignores prepared refunds, because most
// are never sent or are sent days later: the indexer finds their transfers at its slow pace.
func readAwaited(ctx context.Context, q db.Querier, chainKey string) (Awaited, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (a Awaited, err error) {
		var unconfirmed, other int
		err = row.Scan(&unconfirmed, &other)
		return Awaited{Any: unconfirmed+other > 0, Unconfirmed: unconfirmed > 0}, err
	}, `SELECT CASE WHEN EXISTS (SELECT 1 FROM payments WHERE chain_key = $1 AND status = 'pending')
			OR EXISTS (SELECT 1 FROM refunds WHERE chain_key = $1 AND status = 'pending')
			OR EXISTS (SELECT 1 FROM sweeps WHERE chain_key = $1 AND status = 'pending') THEN 1 ELSE 0 END,
		CASE WHEN EXISTS (SELECT 1 FROM invoices WHERE chain_key = $1 AND status = 'open')
			OR EXISTS (SELECT 1 FROM chain_txs WHERE chain_key = $1 AND status = 'sent')
			OR EXISTS (SELECT 1 FROM intents WHERE chain_key = $1 AND status = 'sent' AND seen_block IS NULL)
			OR EXISTS (SELECT 1`+AuthorizationTables+` WHERE a.chain_key = $1 AND `+isPendingAuthorization+`)
			THEN 1 ELSE 0 END`, chainKey)
}
