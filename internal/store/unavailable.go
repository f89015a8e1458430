package store

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Unavailable reports whether err means that the database is away or takes no
// work now, so that the same can be tried again later. Whether what was tried
// has been done is not known then.
func Unavailable(err error) bool {
	var unconnected *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &unconnected) || errors.As(err, &network) {
		return true
	}
	// How a connection that broke tells of it, depending on who finds out first.
	for _, broken := range []error{driver.ErrBadConn, io.ErrUnexpectedEOF, pgconn.ErrConnClosed, sql.ErrConnDone} {
		if errors.Is(err, broken) {
			return true
		}
	}
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	for _, class := range []string{
		"08",  // connection exception
		"53",  // insufficient resources
		"57P", // operator intervention: a shutdown, a crash, a start under way
	} {
		if strings.HasPrefix(answer.Code, class) {
			return true
		}
	}
	return false
}
