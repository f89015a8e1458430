package dbtest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx"
	_ "modernc.org/sqlite"             // registers the driver "sqlite"

	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// DB is database/sql's, for tests of packages that do not know SQL.
type DB = sql.DB

// Tx is a transaction of a DB.
type Tx = sql.Tx

// SQL opens the database for the length of the test, to read rows for which the program has no reader,
// and to try rows that it would never write.
func SQL(tb testing.TB, url string) *DB {
	tb.Helper()
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)"
	}
	conn, err := sql.Open(driver, source)
	expect.OK(tb, err)
	tb.Cleanup(func() { expect.NoError(tb, conn.Close()) })
	return conn
}

// Events returns the merchant's events in the order of their ids, whether they have a delivery or not.
func Events(tb testing.TB, conn *DB, merchant string) []webhooks.Event {
	tb.Helper()
	return rows(tb, conn, func(row *sql.Rows) (e webhooks.Event, err error) {
		var created, due int64
		err = row.Scan(&e.ID, &e.Seq, &e.Type, &e.Subject, &e.MerchantID, &e.InvoiceID, &e.Body, &created, &e.DeliveryID, &due)
		e.CreatedAt = invoice.Unix(created)
		if due != 0 {
			e.Due = time.UnixMilli(due)
		}
		return e, err
	}, `SELECT e.id, e.seq, e.type, e.subject, e.merchant_id, e.invoice_id, e.body, e.created_at, COALESCE(e.delivery_id, ''), COALESCE(d.due_ms, 0)
		FROM events e LEFT JOIN deliveries d ON d.seq = e.seq WHERE e.merchant_id = $1 ORDER BY e.seq`, merchant)
}

// IntentRow is an intent and its progress.
type IntentRow struct {
	Kind   string
	Status string
	Seen   int64 // the block where its event was seen; 0 while it was not
}

// Intents returns the invoice's intents in the order of their ids.
func Intents(tb testing.TB, conn *DB, invoiceID string) []IntentRow {
	tb.Helper()
	return rows(tb, conn, func(row *sql.Rows) (in IntentRow, err error) {
		err = row.Scan(&in.Kind, &in.Status, &in.Seen)
		return in, err
	}, "SELECT kind, status, COALESCE(seen_block, 0) FROM intents WHERE invoice_id = $1 ORDER BY id", invoiceID)
}

func rows[T any](tb testing.TB, conn *DB, scan func(*sql.Rows) (T, error), query string, args ...any) []T {
	tb.Helper()
	found, err := conn.QueryContext(tb.Context(), query, args...)
	expect.OK(tb, err)
	defer found.Close() //nolint:errcheck // Err below returns the error
	var all []T
	for found.Next() {
		v, err := scan(found)
		expect.OK(tb, err)
		all = append(all, v)
	}
	expect.OK(tb, found.Err())
	return all
}

// Find returns the columns, such as events.body, of all tables that contain a text in some row, in order.
func Find(tb testing.TB, conn *DB, text string) []string {
	tb.Helper()
	name := func(row *sql.Rows) (name string, err error) {
		err = row.Scan(&name)
		return name, err
	}
	listed := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if fmt.Sprintf("%T", conn.Driver()) == "*stdlib.Driver" {
		listed = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
	}
	var found []string
	for _, table := range rows(tb, conn, name, listed) {
		for _, columns := range rows(tb, conn, func(row *sql.Rows) (has []string, err error) {
			names, err := row.Columns()
			values, targets := make([]any, len(names)), make([]any, len(names))
			for i := range values {
				targets[i] = &values[i]
			}
			err = errors.Join(err, row.Scan(targets...))
			for i, v := range values {
				if b, ok := v.([]byte); ok {
					v = string(b)
				}
				if strings.Contains(fmt.Sprint(v), text) {
					has = append(has, table+"."+names[i])
				}
			}
			return has, err
		}, `SELECT * FROM "`+table+`"`) {
			found = append(found, columns...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}
