package store

import (
	"context"
	"maps"
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
// address. Those of lost invoices have ids that IsLostDeposit recognizes.
func (q *queries) Deposits(ctx context.Context, chainKey string, among []invoice.Address) (map[invoice.Address]string, error) {
	rows := make([][]any, len(among))
	for n, a := range among {
		rows[n] = []any{int64(n), chainKey, a.String()}
	}
	ids, err := q.lookUp(ctx, []string{"n BIGINT", "chain", "account"}, rows,
		`SELECT coalesce((SELECT invoice_id FROM deposits WHERE deposits.chain_key = chain AND deposits.address = account),
			(SELECT '`+lostDeposit+`' || commitment_id FROM lost_addresses WHERE lost_addresses.chain_key = chain AND lost_addresses.address = account))`)
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
	return q.whichAddresses(ctx, chainKey, among, isSettlement+" UNION ALL SELECT 1 FROM deposits WHERE deposits.chain_key = chain AND deposits.address = account"+
		" UNION ALL SELECT 1 FROM lost_addresses WHERE lost_addresses.chain_key = chain AND lost_addresses.address = account")
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

// depositBalance is a row of deposit_balances, with the newest confirmed sweep.
type depositBalance struct {
	received, swept invoice.Amount // of all confirmed payments and sweeps
	unswept         invoice.Amount
	since           time.Time        // zero while everything is swept
	lastSweep       invoice.Position // zero without one
}

// add adds a payment, unless the newest sweep took it.
func (b *depositBalance) add(p invoice.Transfer) {
	isSwept := b.lastSweep != (invoice.Position{}) && !b.lastSweep.Before(p.Position)
	if p.Amount.IsZero() || isSwept {
		return
	}
	if b.unswept.IsZero() || p.BlockTime.Before(b.since) {
		b.since = p.BlockTime
	}
	b.unswept = b.unswept.Plus(p.Amount)
}

// sweep empties the address. The caller adds the payments after the newest sweep again.
func (b *depositBalance) sweep(t invoice.Transfer) {
	b.swept = b.swept.Plus(t.Amount)
	if b.lastSweep.Before(t.Position) {
		b.lastSweep = t.Position
	}
	b.unswept, b.since = invoice.Amount{}, time.Time{}
}

// AddToDeposits adds confirmed payments to deposit addresses, and confirmed sweeps, to the balances of
// the addresses, and sets the swept transactions of their invoices. Payments to other addresses are
// ignored. The cursor of the chain must be locked, and the payments and sweeps must have been written.
//
// A sweep empties its address, also of money that was never recorded. So an address holds what it received
// after its newest sweep, in whichever order the blocks were read.
func (tx *Tx) AddToDeposits(ctx context.Context, payments []invoice.Payment, sweeps []invoice.Sweep) error {
	var keys []depositKey
	received, swept := make(map[depositKey][]invoice.Transfer), make(map[depositKey][]invoice.Transfer)
	add := func(to map[depositKey][]invoice.Transfer, account invoice.Address, t invoice.Transfer) {
		key := depositKey{t.ChainKey, account, t.Token}
		if len(received[key])+len(swept[key]) == 0 {
			keys = append(keys, key)
		}
		to[key] = append(to[key], t)
	}
	for _, p := range payments {
		if p.DepositOf != "" {
			add(received, p.To, p.Transfer)
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
	emptied := make(map[depositKey]depositBalance)
	for _, key := range keys {
		b := balances[key]
		for _, t := range received[key] {
			b.received = b.received.Plus(t.Amount)
			b.add(t)
		}
		for _, t := range swept[key] {
			b.sweep(t)
			emptied[key] = b
		}
		balances[key] = b
	}
	if err := tx.addAfterSweeps(ctx, emptied); err != nil {
		return err
	}
	maps.Copy(balances, emptied)
	if err := tx.saveDepositBalances(ctx, keys, balances); err != nil {
		return err
	}
	if err := tx.queueSweeps(ctx, keys); err != nil {
		return err
	}
	return sendIn(ctx, &tx.queries, `UPDATE invoices SET swept_tx = (SELECT tx_hash FROM sweeps
		WHERE sweeps.invoice_id = invoices.id AND sweeps.token = invoices.token AND sweeps.status = 'confirmed'
		ORDER BY sweeps.block_number DESC, sweeps.log_index DESC LIMIT 1) WHERE id IN `, ids)
}

// saveDepositBalances writes what the addresses hold.
func (tx *Tx) saveDepositBalances(ctx context.Context, keys []depositKey, balances map[depositKey]depositBalance) error {
	rows := make([][]any, len(keys))
	for i, key := range keys {
		b := balances[key]
		rows[i] = []any{key.chainKey, key.address.String(), key.token.String(), b.received.String(), b.swept.String(), b.unswept.String(), orNull(b.since)}
	}
	return tx.insert(ctx, insertion{"deposit_balances", []string{"chain_key", "address", "token", "received", "swept", "unswept", "since"},
		`ON CONFLICT (chain_key, address, token) DO UPDATE SET received = excluded.received, swept = excluded.swept,
			unswept = excluded.unswept, since = excluded.since`}, rows)
}

// lastSweep selects the newest confirmed sweep of an address.
const lastSweep = ` FROM sweeps WHERE sweeps.token = coin AND sweeps.status = 'confirmed' AND sweeps.invoice_id = (
		SELECT deposits.invoice_id FROM deposits WHERE deposits.address = account AND deposits.chain_key = chain)
	ORDER BY sweeps.block_number DESC, sweeps.log_index DESC LIMIT 1`

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
			var block, index int64
			err := row.Scan(&k.chainKey, addressCol(&k.address), addressCol(&k.token), amountCol(&b.received), amountCol(&b.swept), amountCol(&b.unswept),
				seconds{&b.since}, nullInt{&block}, nullInt{&index})
			b.lastSweep = invoice.Position{BlockNumber: uint64(block), LogIndex: int(index)}
			found[k] = b
			return struct{}{}, err
		}, with+`SELECT chain_key, deposit_balances.address, deposit_balances.token, received, swept, unswept, since,
				(SELECT sweeps.block_number`+lastSweep+`), (SELECT sweeps.log_index`+lastSweep+`)
			FROM wanted CROSS JOIN deposit_balances WHERE chain_key = chain AND address = account AND token = coin`, args...)
		return err
	})
	return found, err
}

// addAfterSweeps adds the confirmed payments that addresses received after their newest sweeps.
func (tx *Tx) addAfterSweeps(ctx context.Context, emptied map[depositKey]depositBalance) error {
	var rows [][]any
	for k, b := range emptied {
		rows = append(rows, []any{k.chainKey, k.address.String(), k.token.String(), int64(b.lastSweep.BlockNumber), int64(b.lastSweep.LogIndex)})
	}
	return tx.lookUpWanted([]string{"chain", "account", "coin", "block BIGINT", "log BIGINT"}, rows, func(with string, args []any) error {
		_, err := queryAll(ctx, &tx.queries, func(row scanner) (struct{}, error) {
			var t invoice.Transfer
			var block, index int64
			err := row.Scan(&t.ChainKey, addressCol(&t.To), addressCol(&t.Token), amountCol(&t.Amount), &block, &index, seconds{&t.BlockTime})
			t.BlockNumber, t.LogIndex = uint64(block), int(index)
			k := depositKey{t.ChainKey, t.To, t.Token}
			b := emptied[k]
			b.add(t)
			emptied[k] = b
			return struct{}{}, err
		}, with+`SELECT chain_key, to_address, token, amount, block_number, log_index, block_time FROM wanted CROSS JOIN payments
			WHERE to_address = account AND chain_key = chain AND token = coin AND status = 'confirmed' AND deposit_of IS NOT NULL
				AND (block_number > block OR block_number = block AND log_index > log)`, args...)
		return err
	})
}
