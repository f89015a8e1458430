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

// AssumeFree assumes that the transfer amounts and idempotency keys that InsertInvoices and
// InsertIdempotencyKeys insert are free, as the transaction has read. Then the transaction does not
// wait for the database to report which of them it has inserted, which is a round trip for each of the
// two. If one of them exists because another transaction has inserted it since, or a key exists that
// is older than the window, the transaction fails with an error for which Taken holds.
func (tx *Tx) AssumeFree() { tx.assumesFree = true }

// Taken reports whether err means that a row was not inserted because its key exists.
func Taken(err error) bool {
	var postgres *pgconn.PgError
	if errors.As(err, &postgres) {
		return postgres.Code == uniqueViolation
	}
	var lite *sqlite.Error
	return errors.As(err, &lite) && (lite.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || lite.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// InsertFree inserts rows and returns the keys of the inserted ones. After AssumeFree that is all of
// them; before, the ON CONFLICT clause may skip some.
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
