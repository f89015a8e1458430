package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// uniqueViolation is PostgreSQL's code for a row with a key that another row has.
const uniqueViolation = "23505"

// AssumeFree says that the transfer amounts and idempotency keys that InsertInvoices and
// InsertIdempotencyKeys insert are free, as the transaction has read. Then it does not wait for the
// database to say which of them it has inserted, which is a round trip for each of the two. Where a
// row with one of them exists, inserted meanwhile by another transaction, or of a key that is older than the window,
// the transaction fails with an error for which Taken holds.
func (tx *Tx) AssumeFree() { tx.assumesFree = true }

// Taken reports whether err means that a row was not inserted since another row has its key.
func Taken(err error) bool {
	var postgres *pgconn.PgError
	if errors.As(err, &postgres) {
		return postgres.Code == uniqueViolation
	}
	var lite *sqlite.Error
	return errors.As(err, &lite) && (lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// InsertFree inserts rows and returns the keys of those that were inserted: after AssumeFree all,
// before those that the ON CONFLICT clause did not skip.
func (tx *Tx) InsertFree(ctx context.Context, ins Insertion, rows [][]any) (map[string]bool, error) {
	if !tx.assumesFree {
		return tx.InsertReturningKeys(ctx, ins, rows)
	}
	inserted := make(map[string]bool, len(rows))
	for _, row := range rows {
		inserted[row[0].(string)] = true // as insertReturningKeys reads it
	}
	ins.Conflict = ""
	return inserted, tx.Insert(ctx, ins, rows)
}
