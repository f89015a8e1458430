package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgresTx is a transaction of PostgreSQL. If the server is far away, the round trips of statements
// cost most. So a statement without a needed result waits for the next one with a needed result, and
// is sent with it; the first round trip begins the transaction as well.
//
// Invariant: waiting begins with BEGIN until the first round trip.
type postgresTx struct {
	conn    *pgx.Conn
	waiting []statement
	sent    bool  // the first round trip was begun
	failed  error // of a round trip: further statements are not sent, since they might run outside the transaction
}

// statement is a statement that was not sent yet.
type statement struct {
	query string
	args  []any
	read  func(pgx.BatchResults) error
}

// notBegunError is the error of a transaction that the server has not begun, and that may succeed on
// another connection.
type notBegunError struct{ error }

// Unwrap returns the error of the connection.
func (e notBegunError) Unwrap() error { return e.error }

// newPostgresTx returns a transaction that begins with the given statements.
func newPostgresTx(conn *pgx.Conn, first ...string) *postgresTx {
	tx := &postgresTx{conn: conn}
	for _, query := range append([]string{"BEGIN"}, first...) {
		tx.wait(query, nil, discard)
	}
	return tx
}

func discard(results pgx.BatchResults) error {
	_, err := results.Exec()
	return err
}

func (tx *postgresTx) wait(query string, args []any, read func(pgx.BatchResults) error) {
	tx.waiting = append(tx.waiting, statement{query, args, read})
}

func (tx *postgresTx) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	tx.wait(query, args, func(results pgx.BatchResults) error {
		tag, err := results.Exec()
		changed = tag.RowsAffected()
		return err
	})
	err = tx.flush(ctx)
	return changed, err
}

func (tx *postgresTx) query(ctx context.Context, each func(Scanner) (bool, error), query string, args ...any) error {
	tx.waitForRows(each, query, args)
	return tx.flush(ctx)
}

func (tx *postgresTx) send(_ context.Context, each func(Scanner) (bool, error), query string, args ...any) error {
	if each == nil {
		tx.wait(query, args, discard)
	} else {
		tx.waitForRows(each, query, args)
	}
	return tx.failed
}

func (tx *postgresTx) waitForRows(each func(Scanner) (bool, error), query string, args []any) {
	tx.wait(query, args, func(results pgx.BatchResults) error {
		return readBatchRows(results, each)
	})
}

// readBatchRows calls each with the rows of the next result.
func readBatchRows(results pgx.BatchResults, each func(Scanner) (bool, error)) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	return readRows(postgresRows{rows}, each)
}

// postgresRows scan like the rows of database/sql.
type postgresRows struct{ pgx.Rows }

// Scan reads numbers into bools, too.
func (r postgresRows) Scan(dest ...any) error {
	for i, d := range dest {
		if b, ok := d.(*bool); ok {
			dest[i] = boolCol{b}
		}
	}
	return r.Rows.Scan(dest...)
}

// boolCol reads a bool, or a number that is 0 or 1.
type boolCol struct{ dst *bool }

// Scan implements sql.Scanner.
func (c boolCol) Scan(src any) error {
	switch v := src.(type) {
	case bool:
		*c.dst = v
	case int64:
		*c.dst = v != 0
	default:
		return fmt.Errorf("a column holds a %T where true or false was expected", src)
	}
	return nil
}

// flush sends the statements that wait, in one round trip, and reads their results.
func (tx *postgresTx) flush(ctx context.Context) error {
	if tx.failed != nil || len(tx.waiting) == 0 {
		return tx.failed
	}
	var batch pgx.Batch
	for _, s := range tx.waiting {
		batch.Queue(s.query, s.args...)
	}
	waiting, first := tx.waiting, !tx.sent
	tx.waiting, tx.sent = nil, true
	results := tx.conn.SendBatch(ctx, &batch)
	for _, s := range waiting {
		if tx.failed = s.read(results); tx.failed != nil {
			break
		}
	}
	if err := results.Close(); tx.failed == nil {
		tx.failed = err
	}
	if first && tx.failed != nil && pgconn.SafeToRetry(tx.failed) {
		tx.failed = notBegunError{tx.failed}
	}
	return tx.failed
}

// commit commits the transaction with the statements that still wait.
func (tx *postgresTx) commit(ctx context.Context) error {
	if !tx.sent && len(tx.waiting) == 1 { // no statement was run
		return nil
	}
	var tag pgconn.CommandTag
	tx.wait("COMMIT", nil, func(results pgx.BatchResults) (err error) {
		tag, err = results.Exec()
		return err
	})
	if err := tx.flush(ctx); err != nil {
		return err
	}
	if tag.String() != "COMMIT" {
		return fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
	}
	return nil
}

// rollback rolls back a transaction that was begun.
func (tx *postgresTx) rollback(ctx context.Context) error {
	if !tx.sent || tx.conn.IsClosed() || tx.conn.PgConn().TxStatus() == 'I' {
		return nil
	}
	_, err := tx.conn.Exec(ctx, "ROLLBACK")
	if errors.Is(err, pgconn.ErrConnClosed) {
		return nil
	}
	return err
}
