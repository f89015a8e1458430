package db

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/quittance/quittance/internal/chain"
)

// readOnlyTransaction is PostgreSQL's code for a write on a standby or in a
// read-only session.
const readOnlyTransaction = "25006"

// Unavailable reports whether err means that the database is unreachable or cannot work for this
// process at the moment, so that the caller can retry later. The failed call may still have been
// carried out.
func Unavailable(err error) bool {
	var unconnected *pgconn.ConnectError
	var broke connectionError
	var stale *chain.StaleError
	if errors.As(err, &unconnected) || errors.As(err, &broke) || errors.As(err, &stale) {
		return true
	}
	// How a broken connection is reported depends on who notices first.
	for _, broken := range []error{ErrTimeout, errClosed, driver.ErrBadConn, pgconn.ErrConnClosed, sql.ErrConnDone} {
		if errors.Is(err, broken) {
			return true
		}
	}
	return unavailablePostgres(err) || unavailableSQLite(err)
}

// connectionError is a network error on the way to the database. Its type
// distinguishes it from errors of other connections, such as those to a node.
type connectionError struct{ error }

// Unwrap returns the network error.
func (e connectionError) Unwrap() error { return e.error }

// wrapNetworkError returns err, as a connectionError if the network caused it.
func wrapNetworkError(err error) error {
	var network net.Error
	if errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) {
		return connectionError{err}
	}
	return err
}

func unavailablePostgres(err error) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	for _, class := range []string{
		"08",                // connection exception
		readOnlyTransaction, // as on a standby
		"25P03", "25P04",    // a transaction that took too long
		"40",    // rolled back in favour of another, also when tried again
		"53",    // insufficient resources: connections, memory, a full disk
		"55P03", // a lock was not available in time
		"57",    // operator intervention: a timeout, a shutdown, a crash, a start under way
		"58",    // a failure outside of the database: an I/O error
	} {
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return false
}

func unavailableSQLite(err error) bool {
	var answer *sqlite.Error
	if !errors.As(err, &answer) {
		return false
	}
	switch answer.Code() & 0xff { // without what extends it
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, // the file was destroyed under it
		sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return true
	}
	return false
}

// During returns err after a text that names what failed, or nil if err is nil.
func During(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
