package db

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Taken reports whether err means that a row was not inserted because its key exists, or that a statement set a column
// to NULL for that reason.
func Taken(err error) bool {
	const uniqueViolation, notNullViolation = "23505", "23502" // PostgreSQL's codes
	var postgres *pgconn.PgError
	if errors.As(err, &postgres) {
		return postgres.Code == uniqueViolation || postgres.Code == notNullViolation
	}
	var lite *sqlite.Error
	if !errors.As(err, &lite) {
		return false
	}
	switch lite.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_NOTNULL:
		return true
	}
	return false
}
