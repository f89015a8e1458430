package store

import (
	"context"
	"maps"
	"slices"

	"github.com/quittance/quittance/internal/invoice"
)

// Told is an amount that the payers of an invoice are told to transfer.
type Told struct {
	Invoice   invoice.Invoice
	Base      invoice.Amount // what is due: the invoice's amount, or a remainder of it
	Amount    invoice.Amount // Base with a suffix; zero when none is free, for remainders alone
	FromBlock uint64         // the height up to which the chain is read; transfers above can mean it
	Remainder bool           // Base is a remainder
}

// toldInsertion leaves out an amount that is told for an open invoice.
var toldInsertion = insertion{
	table: "told_amounts",
	columns: []string{"invoice_id", "base", "amount", "merchant_address", "chain_key", "token",
		"from_block", "expires_at", "remainder", "live", "closed_block"},
	conflict: "ON CONFLICT (amount, merchant_address, chain_key, token) WHERE live = 1 DO NOTHING",
}

// InsertTold records told amounts, of each invoice one, and returns the ids of
// the invoices for which it did. An amount that is told for another open invoice
// is left out; a remainder without an amount is recorded.
func (tx *Tx) InsertTold(ctx context.Context, told []Told) (map[string]bool, error) {
	return tx.insertReturningKeys(ctx, toldInsertion, toldRows(told))
}

// InsertUntold records remainders for which nothing is told.
func (tx *Tx) InsertUntold(ctx context.Context, remainders []Told) error {
	return tx.insert(ctx, toldInsertion, toldRows(remainders))
}

// DeleteUntold removes remainders for which nothing is told.
func (tx *Tx) DeleteUntold(ctx context.Context, remainders []Told) error {
	for _, r := range remainders { // few, and seldom
		_, err := tx.exec(ctx, "DELETE FROM told_amounts WHERE invoice_id = $1 AND base = $2 AND remainder = 1 AND amount IS NULL",
			r.Invoice.ID, r.Base.String())
		if err != nil {
			return err
		}
	}
	return nil
}

func toldRows(told []Told) [][]any {
	rows := make([][]any, len(told))
	for i, t := range told {
		inv := t.Invoice
		var closed any // null where the transaction closes the invoice only afterwards
		if inv.Status != invoice.Open {
			closed = orNull(int64(inv.ClosedBlock))
		}
		rows[i] = []any{inv.ID, t.Base.String(), orNull(t.Amount), inv.Merchant.String(), inv.ChainKey, inv.Token.String(),
			int64(t.FromBlock), inv.ExpiresAt, bit(t.Remainder), bit(inv.Status == invoice.Open), closed}
	}
	return rows
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// ToldFor returns the amounts that were told for remainders, by invoice and
// remainder, of those that are recorded. One for which nothing is told is zero.
func (q *queries) ToldFor(ctx context.Context, remainders map[string][]invoice.Amount) (map[string]map[invoice.Amount]invoice.Amount, error) {
	type remainder struct {
		id   string
		base invoice.Amount
	}
	told := make(map[string]map[invoice.Amount]invoice.Amount, len(remainders))
	var wanted []remainder
	var rows [][]any
	for _, id := range slices.Sorted(maps.Keys(remainders)) {
		told[id] = make(map[invoice.Amount]invoice.Amount)
		for _, base := range remainders[id] {
			rows = append(rows, []any{int64(len(wanted)), id, base.String()})
			wanted = append(wanted, remainder{id, base})
		}
	}
	err := inBatches(rows, []any{int64(-1), "", ""}, func(part [][]any) error {
		text, args := withWanted([]string{"n BIGINT", "invoice", "due"}, part)
		_, err := queryAll(ctx, q, func(row scanner) (struct{}, error) {
			var n int64
			var amount string
			if err := row.Scan(&n, nullText(&amount)); err != nil || amount == "" {
				return struct{}{}, err
			}
			parsed, err := invoice.ParseAmount(amount)
			told[wanted[n].id][wanted[n].base] = parsed
			return struct{}{}, err
		}, text+`SELECT n, (SELECT coalesce(amount, '0') FROM told_amounts
			WHERE invoice_id = invoice AND base = due AND remainder = 1) FROM wanted`, args...)
		return err
	})
	return told, err
}

// untold holds open invoices that lack what their payers are to be told of the
// rest: those whose payments were not added up since an upgrade, and those for
// whose remainder no amount was free.
const untold = "status = 'open' AND (sums_stale = 1 OR remaining IS NOT NULL AND remaining_transfer IS NULL)"

// UntoldInvoices returns the ids of open invoices of the chain that lack what
// their payers are to be told of the rest, in their order, from the one after
// the given id on.
func (q *queries) UntoldInvoices(ctx context.Context, chainKey, after string, limit int) ([]string, error) {
	return queryAll(ctx, q, scanID, "SELECT id FROM invoices WHERE chain_key = $1 AND id > $2 AND "+untold+" ORDER BY id LIMIT $3",
		chainKey, after, limit)
}

// BindTo binds the open invoices of the chain that are bound above a height to
// it, and the amounts told for them: the blocks above were replaced, and those
// that replace them can hold transfers to these invoices.
func (tx *Tx) BindTo(ctx context.Context, chainKey string, height uint64) error {
	for _, update := range []string{
		`UPDATE told_amounts SET from_block = $2 WHERE from_block > $2 AND invoice_id IN
			(SELECT id FROM invoices WHERE chain_key = $1 AND from_block > $2 AND status = 'open')`,
		`UPDATE told_amounts SET from_block = $2 WHERE chain_key = $1 AND from_block > $2 AND live = 1 AND remainder = 1`,
		`UPDATE invoices SET from_block = $2 WHERE chain_key = $1 AND from_block > $2 AND status = 'open'`,
	} {
		if _, err := tx.exec(ctx, update, chainKey, int64(height)); err != nil {
			return err
		}
	}
	return nil
}

// bindingLock is the first key of PostgreSQL's advisory locks on binding to a
// chain's height. The second is a hash of the chain's key.
const bindingLock = 0x62696e64

// HeightsToBind returns IndexedHeights for invoices that this transaction
// creates. Until it ends no rollback lowers these heights, since BindTo would
// not see the invoices.
func (tx *Tx) HeightsToBind(ctx context.Context, chainKeys []string) (map[string]uint64, error) {
	for _, key := range slices.Sorted(slices.Values(chainKeys)) { // in one order, so that no two wait for each other
		if err := tx.lockBinding(ctx, "pg_advisory_xact_lock_shared", key); err != nil {
			return nil, err
		}
	}
	// A statement of its own: it sees what was committed while the lock was waited for.
	return tx.IndexedHeights(ctx, chainKeys)
}

// LockBinding waits for the transactions that bind invoices to the chain's
// height, and keeps others from it until this one ends. The cursor must be
// locked, and nothing written yet: a transaction that is waited for may wait for
// what was written.
func (tx *Tx) LockBinding(ctx context.Context, chainKey string) error {
	return tx.lockBinding(ctx, "pg_advisory_xact_lock", chainKey)
}

// lockBinding takes an advisory lock. SQLite has one writer and needs none.
func (tx *Tx) lockBinding(ctx context.Context, lock, chainKey string) error {
	if !tx.postgres {
		return nil
	}
	_, err := tx.exec(ctx, "SELECT "+lock+"(CAST($1 AS INTEGER), hashtext($2))", bindingLock, chainKey)
	return err
}

// IndexedHeights returns the newest block that was read of each of the chains,
// as far as they were read.
func (q *queries) IndexedHeights(ctx context.Context, chainKeys []string) (map[string]uint64, error) {
	heights := make(map[string]uint64)
	_, err := queryIn(chainKeys, func(chunk []any) ([]struct{}, error) {
		return queryAll(ctx, q, func(row scanner) (struct{}, error) {
			var key string
			var number uint64
			err := row.Scan(&key, &number)
			heights[key] = number
			return struct{}{}, err
		}, "SELECT chain_key, indexed_number FROM chains WHERE chain_key IN "+parameterList(0, len(chunk)), chunk...)
	})
	return heights, err
}
