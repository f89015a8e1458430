package ledger

import (
	"context"
	"maps"
	"time"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// insertDeposits inserts the deposit addresses of invoices that have one.
func insertDeposits(ctx context.Context, tx *db.Tx, invoices []invoice.Invoice) error {
	var rows [][]any
	for _, inv := range invoices {
		if !inv.DepositAddress.IsZero() {
			rows = append(rows, []any{inv.ChainKey, inv.DepositAddress.String(), inv.ID, inv.MerchantID})
		}
	}
	return tx.Insert(ctx, db.Insertion{Table: "deposits", Columns: []string{"chain_key", "address", "invoice_id", "merchant_id"}}, rows)
}

// Deposits returns the invoices that have one of the deposit addresses, by address. Addresses of lost
// invoices have ids that isLostDeposit recognizes.
func Deposits(ctx context.Context, q db.Querier, chainKey string, among []invoice.Address) (map[invoice.Address]string, error) {
	rows := make([][]any, len(among))
	for n, a := range among {
		rows[n] = []any{int64(n), chainKey, a.String()}
	}
	ids, err := lookUp(ctx, q, []string{"n BIGINT", "chain", "account"}, rows,
		`SELECT coalesce((SELECT invoice_id FROM deposits WHERE deposits.chain_key = chain AND deposits.address = account),
			(SELECT '`+lostDeposit+`' || commitment_id FROM lost_addresses WHERE lost_addresses.chain_key = chain AND lost_addresses.address = account))`)
	found := make(map[invoice.Address]string)
	for n, id := range ids {
		if id != "" {
			found[among[n]] = id //nolint:gosec // there is one id for each row
		}
	}
	return found, err
}

// WatchedAddresses returns which of the addresses are settlement or deposit addresses on the chain.
func WatchedAddresses(ctx context.Context, q db.Querier, chainKey string, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.WhichAddresses(ctx, chainKey, among, access.IsSettlement+" UNION ALL SELECT 1 FROM deposits WHERE deposits.chain_key = chain AND deposits.address = account"+
		" UNION ALL SELECT 1 FROM lost_addresses WHERE lost_addresses.chain_key = chain AND lost_addresses.address = account")
}

// AreDeposits returns which of the addresses are deposit addresses on any chain.
func (q Reader) AreDeposits(ctx context.Context, among []invoice.Address) (map[invoice.Address]bool, error) {
	return q.WhichAddresses(ctx, "", among, "deposits WHERE deposits.address = account")
}

// depositKey identifies the balance of a deposit address in a token.
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
// A sweep empties its address, also of money that was never recorded. So the balance of an address is
// what it received after its newest sweep, in whichever order the blocks were read.
func AddToDeposits(ctx context.Context, tx *db.Tx, payments []invoice.Payment, sweeps []invoice.Sweep) error {
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
	balances, err := depositBalances(ctx, tx, keys)
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
	if err := addAfterSweeps(ctx, tx, emptied); err != nil {
		return err
	}
	maps.Copy(balances, emptied)
	if err := saveDepositBalances(ctx, tx, keys, balances); err != nil {
		return err
	}
	if err := queueSweeps(ctx, tx, keys); err != nil {
		return err
	}
	return db.SendIn(ctx, tx, `UPDATE invoices SET swept_tx = (SELECT tx_hash FROM sweeps
		WHERE sweeps.invoice_id = invoices.id AND sweeps.token = invoices.token AND sweeps.status = 'confirmed'
		ORDER BY sweeps.block_number DESC, sweeps.log_index DESC LIMIT 1) WHERE id IN `, ids)
}

// saveDepositBalances writes the balances of deposit addresses.
func saveDepositBalances(ctx context.Context, tx *db.Tx, keys []depositKey, balances map[depositKey]depositBalance) error {
	rows := make([][]any, len(keys))
	for i, key := range keys {
		b := balances[key]
		rows[i] = []any{key.chainKey, key.address.String(), key.token.String(), b.received.String(), b.swept.String(), b.unswept.String(), db.OrNull(b.since)}
	}
	return tx.Insert(ctx, db.Insertion{Table: "deposit_balances", Columns: []string{"chain_key", "address", "token", "received", "swept", "unswept", "since"},
		Conflict: `ON CONFLICT (chain_key, address, token) DO UPDATE SET received = excluded.received, swept = excluded.swept,
			unswept = excluded.unswept, since = excluded.since`}, rows)
}

// lastSweep selects the newest confirmed sweep of an address.
const lastSweep = ` FROM sweeps WHERE sweeps.token = coin AND sweeps.status = 'confirmed' AND sweeps.invoice_id = (
		SELECT deposits.invoice_id FROM deposits WHERE deposits.address = account AND deposits.chain_key = chain)
	ORDER BY sweeps.block_number DESC, sweeps.log_index DESC LIMIT 1`

// depositBalances returns the stored balances of the addresses.
func depositBalances(ctx context.Context, q db.Querier, keys []depositKey) (map[depositKey]depositBalance, error) {
	rows := db.Each(keys, func(k depositKey) []any { return []any{k.chainKey, k.address.String(), k.token.String()} })
	found := make(map[depositKey]depositBalance)
	err := q.LookUpWanted([]string{"chain", "account", "coin"}, rows, func(with string, args []any) error {
		return db.ForEach(ctx, q, func(row db.Scanner) error {
			var k depositKey
			var b depositBalance
			var block, index int64
			err := row.Scan(&k.chainKey, db.Address(&k.address), db.Address(&k.token), db.Amount(&b.received), db.Amount(&b.swept), db.Amount(&b.unswept),
				db.Seconds(&b.since), db.Int(&block), db.Int(&index))
			b.lastSweep = invoice.Position{BlockNumber: uint64(block), LogIndex: int(index)}
			found[k] = b
			return err
		}, with+`SELECT chain_key, deposit_balances.address, deposit_balances.token, received, swept, unswept, since,
				(SELECT sweeps.block_number`+lastSweep+`), (SELECT sweeps.log_index`+lastSweep+`)
			FROM wanted CROSS JOIN deposit_balances WHERE chain_key = chain AND address = account AND token = coin`, args...)
	})
	return found, err
}

// addAfterSweeps adds the confirmed payments that addresses received after their newest sweeps.
func addAfterSweeps(ctx context.Context, tx *db.Tx, emptied map[depositKey]depositBalance) error {
	var rows [][]any
	for k, b := range emptied {
		rows = append(rows, []any{k.chainKey, k.address.String(), k.token.String(), int64(b.lastSweep.BlockNumber), int64(b.lastSweep.LogIndex)})
	}
	return tx.LookUpWanted([]string{"chain", "account", "coin", "block BIGINT", "log BIGINT"}, rows, func(with string, args []any) error {
		return db.ForEach(ctx, tx, func(row db.Scanner) error {
			var t invoice.Transfer
			var block, index int64
			err := row.Scan(&t.ChainKey, db.Address(&t.To), db.Address(&t.Token), db.Amount(&t.Amount), &block, &index, db.Seconds(&t.BlockTime))
			t.BlockNumber, t.LogIndex = uint64(block), int(index)
			k := depositKey{t.ChainKey, t.To, t.Token}
			b := emptied[k]
			b.add(t)
			emptied[k] = b
			return err
		}, with+`SELECT chain_key, to_address, token, amount, block_number, log_index, block_time FROM wanted CROSS JOIN payments
			WHERE to_address = account AND chain_key = chain AND token = coin AND status = 'confirmed' AND deposit_of IS NOT NULL
				AND (block_number > block OR block_number = block AND log_index > log)`, args...)
	})
}

var sweepTable = db.NewTable("sweeps", func(s *invoice.Sweep) []db.Column {
	return append(observedColumns(&s.ID, &s.Transfer, &s.Status, &s.ObservedAt, &s.ConfirmedAt), db.Col("invoice_id", db.Text(&s.InvoiceID)))
})

// SaveSweeps inserts sweeps, and updates existing ones: their block, transfer and state. The sweeps must be distinct.
func SaveSweeps(ctx context.Context, tx *db.Tx, sweeps []invoice.Sweep) error {
	update := "ON CONFLICT (id) DO UPDATE SET " + sweepTable.Without(append(transferKey, "observed_at")...).Excluded()
	return sweepTable.Insert(ctx, tx, update, sweeps...)
}

// SweepsByID returns the sweeps with the ids, in no order. It skips unknown ids.
func SweepsByID(ctx context.Context, q db.Querier, ids []string) ([]invoice.Sweep, error) {
	return db.AllIn(ctx, q, sweepTable.Scan, sweepTable.Select()+" WHERE id IN ", ids)
}

// PendingSweeps returns the chain's pending sweeps in blocks from one number to another, inclusive.
func PendingSweeps(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Sweep, error) {
	return db.QueryAll(ctx, q, sweepTable.Scan, sweepTable.Select()+`
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'pending'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}

// OrphanedSweeps returns the chain's orphaned sweeps that were last seen in blocks from one
// number to another, inclusive.
func OrphanedSweeps(ctx context.Context, q db.Querier, chainKey string, from, to uint64) ([]invoice.Sweep, error) {
	return db.QueryAll(ctx, q, sweepTable.Scan, sweepTable.Select()+`
		WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3 AND status = 'orphaned'
		ORDER BY block_number, log_index`, chainKey, int64(from), int64(to))
}
