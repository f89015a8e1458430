package db

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// TransferID is the id of a transfer that the service stores. It depends on the first key of the
// transfer's chain, so that transfers keep their ids when the chain is renamed.
func (q *Queries) TransferID(prefix string, t invoice.Transfer) string {
	key := t.ChainKey
	if first, ok := q.idKeys[key]; ok {
		key = first
	}
	return invoice.TransferID(prefix, key, t.TxHash, t.Ordinal)
}

// SetIDKeys sets the first keys of renamed chains, by their keys. It must be called before the store is used by
// several goroutines.
func (s *DB) SetIDKeys(first map[string]string) { s.idKeys = first }

// renameTimeout bounds a statement that renames a chain in one table.
const renameTimeout = 30 * time.Minute

// RenameChain gives a chain another key in all tables. Stored bodies of events keep the former key.
func (tx *Tx) RenameChain(ctx context.Context, from, to string) error {
	tx.timeout = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeoutCause(ctx, renameTimeout, ErrTimeout)
	}
	columns, err := tx.chainColumns(ctx)
	if err != nil {
		return err
	}
	restore, err := tx.deferChainKeys(ctx)
	if err != nil {
		return err
	}
	for _, table := range columns {
		if _, err := tx.Exec(ctx, "UPDATE "+table+" SET chain_key = $2 WHERE chain_key = $1", from, to); err != nil {
			return fmt.Errorf("rename %s in %s: %w", from, table, err)
		}
	}
	for _, member := range []struct{ table, column, form string }{
		{"merchant_profiles", "default_addresses", "%s:"}, {"merchant_profiles", "allowed_addresses", `"chainKey":%s`},
		{"merchant_profiles", "pending_addresses", `"chainKey":%s`}, {"merchant_holders", "addresses", `"chainKey":%s`},
	} {
		was, err := asMember(member.form, from)
		if err != nil {
			return err
		}
		is, err := asMember(member.form, to)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("UPDATE %s SET %s = replace(%[2]s, $1, $2) WHERE %[2]s LIKE '%%' || $1 || '%%'", member.table, member.column), was, is); err != nil {
			return err
		}
	}
	return restore()
}

// asMember returns a chain key as it appears in a JSON column.
func asMember(form, key string) (string, error) {
	text, err := json.Marshal(key)
	return fmt.Sprintf(form, text), err
}

// chainColumns returns the tables with a column chain_key.
func (tx *Tx) chainColumns(ctx context.Context) ([]string, error) {
	query := "SELECT m.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.name = 'chain_key' ORDER BY m.name"
	if tx.OnPostgres() {
		query = `SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
			WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND a.attname = 'chain_key' ORDER BY c.relname`
	}
	return QueryAll(ctx, tx, ScanID, query)
}

// deferChainKeys defers the checks of foreign keys that name a chain, until the end of the transaction
// or until restore.
func (tx *Tx) deferChainKeys(ctx context.Context) (restore func() error, err error) {
	if !tx.OnPostgres() {
		_, err := tx.Exec(ctx, "PRAGMA defer_foreign_keys = ON")
		return func() error { return nil }, err
	}
	for _, setting := range []string{"statement_timeout", "idle_in_transaction_session_timeout"} {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL %s = %d", setting, renameTimeout.Milliseconds())); err != nil {
			return nil, err
		}
	}
	keys, err := QueryAll(ctx, tx, ScanID, `SELECT conrelid::regclass::text || ' ALTER CONSTRAINT ' || quote_ident(conname) FROM pg_constraint
		WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace AND EXISTS (SELECT 1 FROM pg_attribute
			WHERE attrelid = conrelid AND attnum = ANY (conkey) AND attname = 'chain_key') ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	alter := func(how string) error {
		for _, key := range keys {
			if _, err := tx.Exec(ctx, "ALTER TABLE "+key+" "+how); err != nil {
				return err
			}
		}
		return nil
	}
	return func() error {
		if _, err := tx.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
			return err
		}
		return alter("NOT DEFERRABLE")
	}, alter("DEFERRABLE INITIALLY DEFERRED")
}

// TokenUses are counts of objects that still need the token.
type TokenUses struct {
	OpenInvoices    int `json:"openInvoices"`
	PendingPayments int `json:"pendingPayments"`
	OpenRefunds     int `json:"openRefunds"` // prepared, sent or in a block that is not final
	UnsweptDeposits int `json:"unsweptDeposits"`
}

// Plus returns the sums of two.
func (u TokenUses) Plus(v TokenUses) TokenUses {
	return TokenUses{
		u.OpenInvoices + v.OpenInvoices, u.PendingPayments + v.PendingPayments, u.OpenRefunds + v.OpenRefunds, u.UnsweptDeposits + v.UnsweptDeposits,
	}
}

// String describes the counts, such as "2 open invoices or drafts".
func (u TokenUses) String() string {
	var uses []string
	for _, use := range []struct {
		n    int
		what string
	}{
		{u.OpenInvoices, "open invoices or drafts"},
		{u.PendingPayments, "payments that are not final or not screened"},
		{u.OpenRefunds, "refunds that are not final"},
		{u.UnsweptDeposits, "deposits that are not swept"},
	} {
		if use.n > 0 {
			uses = append(uses, fmt.Sprintf("%d %s", use.n, use.what))
		}
	}
	return strings.Join(uses, ", ")
}

// TokenUses counts the objects that still need a token.
func (q *Queries) TokenUses(ctx context.Context, chainKey string, token invoice.Address) (u TokenUses, err error) {
	for _, use := range []struct {
		count *int
		of    string
	}{
		{&u.OpenInvoices, "invoices WHERE chain_key = $1 AND token = $2 AND status IN ('open', 'draft')"},
		{&u.PendingPayments, "payments WHERE chain_key = $1 AND token = $2 AND status IN ('pending', 'held')"},
		{&u.OpenRefunds, `refund_records AS r JOIN payments AS p ON p.id = r.payment_id
			WHERE r.chain_key = $1 AND p.token = $2 AND r.status IN ('awaiting_address', 'awaiting_approval', 'pending')`},
		{&u.UnsweptDeposits, "deposit_balances WHERE chain_key = $1 AND token = $2 AND since IS NOT NULL"},
	} {
		if *use.count, err = QueryRow(ctx, q, ScanCount, "SELECT count(*) FROM "+use.of, chainKey, token.String()); err != nil {
			return u, err
		}
	}
	return u, nil
}

// RetireToken records the last block that was read for a token.
func (tx *Tx) RetireToken(ctx context.Context, chainKey string, token invoice.Address, last uint64) error {
	return tx.Send(ctx, nil, "UPDATE known_tokens SET last_block = $3, missed_through = NULL WHERE chain_key = $1 AND address = $2",
		chainKey, token.String(), int64(last))
}
