package store

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// insertDeposits inserts the deposit addresses of invoices that have one.
func (tx *Tx) insertDeposits(ctx context.Context, invoices []invoice.Invoice) error {
	var rows [][]any
	for _, inv := range invoices {
		if !inv.DepositAddress.IsZero() {
			rows = append(rows, []any{inv.ChainKey, inv.DepositAddress.String(), inv.ID, inv.MerchantID})
		}
	}
	return tx.insert(ctx, insertion{table: "deposits", columns: []string{"chain_key", "address", "invoice_id", "merchant_id"}}, rows)
}

// Deposits returns the invoices whose deposit addresses are among the addresses, by
// address.
func (q *queries) Deposits(ctx context.Context, chainKey string, among []invoice.Address) (map[invoice.Address]string, error) {
	rows := make([][]any, len(among))
	for n, a := range among {
		rows[n] = []any{int64(n), chainKey, a.String()}
	}
	ids, err := q.lookUp(ctx, []string{"n BIGINT", "chain", "account"}, rows,
		"SELECT invoice_id FROM deposits WHERE deposits.chain_key = chain AND deposits.address = account")
	found := make(map[invoice.Address]string)
	for n, id := range ids {
		if id != "" {
			found[among[n]] = id
		}
	}
	return found, err
}

// WatchedAddresses returns which of the addresses are settlement or deposit addresses on
// the chain.
func (q *queries) WatchedAddresses(ctx context.Context, chainKey string, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.whichAddresses(ctx, chainKey, among, isSettlement+" UNION ALL SELECT 1 FROM deposits WHERE deposits.chain_key = chain AND deposits.address = account")
}

// AreDeposits returns which of the addresses are deposit addresses on any chain.
func (q *queries) AreDeposits(ctx context.Context, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.whichAddresses(ctx, "", among, "deposits WHERE deposits.address = account")
}

// whichAddresses returns those of the addresses for which the table has a row under the
// conditions on chain and account.
func (q *queries) whichAddresses(ctx context.Context, chainKey string, among []invoice.Address, tableAndConditions string) (map[invoice.Address]bool, error) {
	rows := make([][]any, len(among))
	for i, a := range among {
		rows[i] = []any{chainKey, a.String()}
	}
	found, err := q.whichExist(ctx, []string{"chain", "account"}, rows, tableAndConditions)
	which := make(map[invoice.Address]bool, len(found))
	for _, n := range found {
		which[among[n]] = true
	}
	return which, err
}

// depositKey identifies what a deposit address holds of a token.
type depositKey struct {
	chainKey       string
	address, token invoice.Address
}

// depositBalance is a row of deposit_balances.
type depositBalance struct {
	received, swept invoice.Amount
	since           time.Time // zero while everything is swept
}

// AddToDeposits adds payments to deposit addresses and sweeps that were confirmed to what
// the addresses received and what was swept, and sets the swept transactions of their
// invoices. Payments to other addresses are ignored. The cursor of the chain must be
// locked, and the payments and sweeps must have been written.
func (tx *Tx) AddToDeposits(ctx context.Context, payments []invoice.Payment, sweeps []invoice.Sweep) error {
	received, swept := make(map[depositKey]invoice.Amount), make(map[depositKey]invoice.Amount)
	firsts := make(map[depositKey]time.Time) // the earliest block time of the payments
	var keys []depositKey
	add := func(sums map[depositKey]invoice.Amount, account invoice.Address, t invoice.Transfer) depositKey {
		key := depositKey{t.ChainKey, account, t.Token}
		if received[key].IsZero() && swept[key].IsZero() {
			keys = append(keys, key)
		}
		sums[key] = sums[key].Plus(t.Amount)
		return key
	}
	for _, p := range payments {
		if p.DepositOf == "" {
			continue
		}
		key := add(received, p.To, p.Transfer)
		if first, ok := firsts[key]; !ok || p.BlockTime.Before(first) {
			firsts[key] = p.BlockTime
		}
	}
	var ids []string
	for _, s := range sweeps {
		add(swept, s.From, s.Transfer)
		ids = append(ids, s.InvoiceID)
	}
	if len(keys) == 0 {
		return nil
	}
	balances, err := tx.depositBalances(ctx, keys)
	if err != nil {
		return err
	}
	rows := make([][]any, len(keys))
	for i, key := range keys {
		b := balances[key]
		b.received, b.swept = b.received.Plus(received[key]), b.swept.Plus(swept[key])
		unswept := b.received.Minus(b.swept)
		switch {
		case unswept.IsZero():
			b.since = time.Time{}
		case b.since.IsZero():
			b.since = firsts[key]
		}
		rows[i] = []any{key.chainKey, key.address.String(), key.token.String(), b.received.String(), b.swept.String(), unswept.String(), orNull(b.since)}
	}
	err = tx.insert(ctx, insertion{"deposit_balances", []string{"chain_key", "address", "token", "received", "swept", "unswept", "since"},
		`ON CONFLICT (chain_key, address, token) DO UPDATE SET received = excluded.received, swept = excluded.swept,
			unswept = excluded.unswept, since = excluded.since`}, rows)
	if err != nil {
		return err
	}
	if err := tx.queueSweeps(ctx, keys); err != nil {
		return err
	}
	return sendIn(ctx, &tx.queries, `UPDATE invoices SET swept_tx = (SELECT tx_hash FROM sweeps
		WHERE sweeps.invoice_id = invoices.id AND sweeps.token = invoices.token AND sweeps.status = 'confirmed'
		ORDER BY sweeps.block_number DESC, sweeps.log_index DESC LIMIT 1) WHERE id IN `, ids)
}

// depositBalances returns what is stored of the addresses.
func (q *queries) depositBalances(ctx context.Context, keys []depositKey) (map[depositKey]depositBalance, error) {
	rows := make([][]any, len(keys))
	for i, k := range keys {
		rows[i] = []any{k.chainKey, k.address.String(), k.token.String()}
	}
	found := make(map[depositKey]depositBalance)
	err := q.lookUpWanted([]string{"chain", "account", "coin"}, rows, func(with string, args []any) error {
		_, err := queryAll(ctx, q, func(row scanner) (struct{}, error) {
			var k depositKey
			var b depositBalance
			err := row.Scan(&k.chainKey, addressCol(&k.address), addressCol(&k.token), amountCol(&b.received), amountCol(&b.swept), seconds{&b.since})
			found[k] = b
			return struct{}{}, err
		}, with+`SELECT chain_key, address, token, received, swept, since FROM wanted CROSS JOIN deposit_balances
			WHERE chain_key = chain AND address = account AND token = coin`, args...)
		return err
	})
	return found, err
}
