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
	ids, err := db.QueryAll(ctx, q, db.ScanID, `SELECT payment_id FROM undecided_payments AS undecided CROSS JOIN payments
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
	return db.AllIn(ctx, q, db.ScanID, "SELECT payment_id FROM undecided_payments WHERE payment_id IN ", paymentIDs)
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

// undecidedRefund is a transfer that may be a refund, before that is decided.
type undecidedRefund struct {
	id string
	invoice.Transfer
}

var undecidedTable = db.NewTable("undecided_refunds", func(u *undecidedRefund) []db.Column { return transferColumns(&u.id, &u.Transfer) })

// deferRefunds stores transfers out of settlement addresses until the blocks are read that may hold
// the payments that they refund. The transfers must be distinct.
func deferRefunds(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	rows := db.Each(transfers, func(t invoice.Transfer) undecidedRefund {
		return undecidedRefund{tx.TransferID(invoice.PrefixRefund, t), t}
	})
	return undecidedTable.Insert(ctx, tx, "ON CONFLICT (id) DO UPDATE SET "+undecidedTable.Without(transferKey...).Excluded(), rows...)
}

// UndecidedRefunds returns the transfers that deferRefunds stored of the chain's blocks from one number to another,
// both included, in the order of the chain, up to a limit.
func UndecidedRefunds(ctx context.Context, q db.Querier, chainKey string, from, to uint64, limit int) ([]invoice.Transfer, error) {
	return db.QueryAll(ctx, q, func(row db.Scanner) (invoice.Transfer, error) {
		u, err := undecidedTable.Scan(row)
		return u.Transfer, err
	}, undecidedTable.Select()+` WHERE chain_key = $1 AND block_number BETWEEN $2 AND $3
		ORDER BY block_number, log_index LIMIT $4`, chainKey, int64(from), int64(to), limit)
}

// deleteUndecidedRefunds removes transfers that deferRefunds stored.
func deleteUndecidedRefunds(ctx context.Context, tx *db.Tx, transfers []invoice.Transfer) error {
	ids := db.Each(transfers, func(t invoice.Transfer) string { return tx.TransferID(invoice.PrefixRefund, t) })
	return db.SendIn(ctx, tx, "DELETE FROM undecided_refunds WHERE id IN ", ids)
}

// waitsUndecided reports whether a transfer that deferRefunds stored may pay a row of refund_records, or refund its
// payment.
const waitsUndecided = `EXISTS (SELECT 1 FROM undecided_refunds AS unknown WHERE ` + fitsPayment + `
	AND unknown.to_address IN (payments.from_address, refund_records.recipient) LIMIT 1 OFFSET 0)`

// MayBeRefunded reports whether a transfer that deferRefunds stored, to the payer or another recipient, may refund a
// payment.
func MayBeRefunded(ctx context.Context, q db.Querier, p invoice.Transfer, others ...invoice.Address) (bool, error) {
	var rows [][]any
	for _, to := range append(others, p.From) {
		rows = append(rows, []any{p.ChainKey, to.String(), p.To.String()})
	}
	found, err := q.WhichExist(ctx, []string{"chain", "receiver", "sender"}, rows, "undecided_refunds WHERE chain_key = chain AND to_address = receiver AND from_address = sender")
	return len(found) > 0, err
}
