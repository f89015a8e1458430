package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
)

// MarkUndecided marks payments with an attribution that depends on older blocks that are not read yet.
func MarkUndecided(ctx context.Context, tx *db.Tx, payments []PaymentRow) error {
	rows := db.Each(payments, func(p PaymentRow) []any {
		return []any{p.ID, p.ChainKey, p.To.String(), int64(p.BlockNumber), p.LogIndex}
	})
	return tx.Insert(ctx, db.Insertion{Table: "undecided_payments", Columns: []string{"payment_id", "chain_key", "to_address", "block_number BIGINT", "log_index BIGINT"},
		Conflict: "ON CONFLICT (payment_id) DO UPDATE SET to_address = excluded.to_address, block_number = excluded.block_number, log_index = excluded.log_index"}, rows)
}

// UnmarkUndecided undoes MarkUndecided.
func UnmarkUndecided(ctx context.Context, tx *db.Tx, paymentIDs []string) error {
	return db.SendIn(ctx, tx, "DELETE FROM undecided_payments WHERE payment_id IN ", paymentIDs)
}

// UndecidedPayments returns the undecided payments of the chain that are not
// orphaned, in the order of the chain, up to a limit.
func UndecidedPayments(ctx context.Context, q db.Querier, chainKey string, limit int) ([]PaymentRow, error) {
	ids, err := db.QueryAll(ctx, q, func(row db.Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}, `SELECT payment_id FROM undecided_payments AS undecided CROSS JOIN payments
		WHERE undecided.chain_key = $1 AND payments.id = undecided.payment_id AND payments.status <> 'orphaned'
		ORDER BY undecided.block_number, undecided.log_index LIMIT $2`, chainKey, limit)
	if err != nil {
		return nil, err
	}
	order := make(map[string]int, len(ids))
	for i, id := range ids {
		order[id] = i
	}
	found, err := PaymentsByID(ctx, q, ids)
	slices.SortFunc(found, func(a, b PaymentRow) int { return cmp.Compare(order[a.ID], order[b.ID]) })
	return found, err
}

// WhichUndecided returns the ids of the payments that are undecided.
func (q Reader) WhichUndecided(ctx context.Context, paymentIDs []string) ([]string, error) {
	return db.AllIn(ctx, q, func(row db.Scanner) (id string, err error) {
		err = row.Scan(&id)
		return id, err
	}, "SELECT payment_id FROM undecided_payments WHERE payment_id IN ", paymentIDs)
}

// LastUndecidedBlock returns the block of the newest undecided payment of the chain, or 0.
func LastUndecidedBlock(ctx context.Context, q db.Querier, chainKey string) (uint64, error) {
	return db.QueryRow(ctx, q, func(row db.Scanner) (uint64, error) {
		var number sql.NullInt64
		err := row.Scan(&number)
		return uint64(number.Int64), err
	}, "SELECT max(block_number) FROM undecided_payments WHERE chain_key = $1", chainKey)
}

// ReceiverState is why the attribution of a payment to an address may depend on older blocks that are not read yet.
type ReceiverState struct {
	Unbound   bool // it has invoices that were created before the chain was first read
	Undecided bool // it has undecided payments
}

// ReceiverStates returns the state of each of the addresses.
func ReceiverStates(ctx context.Context, q db.Querier, chainKey string, addresses []invoice.Address) (map[invoice.Address]ReceiverState, error) {
	rows := db.Each(addresses, func(a invoice.Address) []any { return []any{chainKey, a.String()} })
	waiting := make(map[invoice.Address]ReceiverState, len(addresses))
	for _, of := range []struct {
		rows string
		set  func(*ReceiverState)
	}{
		{"invoices WHERE merchant_address = receiver AND chain_key = chain AND from_block = 0 AND " + isRare, func(w *ReceiverState) { w.Unbound = true }},
		{"undecided_payments WHERE to_address = receiver AND chain_key = chain", func(w *ReceiverState) { w.Undecided = true }},
	} {
		found, err := q.WhichExist(ctx, []string{"chain", "receiver"}, rows, of.rows)
		if err != nil {
			return nil, err
		}
		for _, n := range found {
			at := waiting[addresses[n]]
			of.set(&at)
			waiting[addresses[n]] = at
		}
	}
	return waiting, nil
}
