package db_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
)

func TestParametersOnSQLite(t *testing.T) {
	for query, want := range map[string]string{
		"SELECT 1":               "SELECT 1",
		"VALUES ($1,$2),($3,$4)": "VALUES (?,?),(?,?)",
		"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)": "VALUES (?,?,?,?,?,?,?,?,?,?)",
		"VALUES ($2,$1)":    "VALUES (?2,?1)",
		"VALUES ($1,$2,$1)": "VALUES (?1,?2,?1)",
		"VALUES ($1,$3)":    "VALUES (?1,?3)",
		"SELECT 1 LIMIT $1": "SELECT 1 LIMIT 0 + ?",
	} {
		if got := db.SQLiteText(query); got != want {
			t.Errorf("%s became %s; want %s", query, got, want)
		}
	}
}

// TestStatementsAreBounded runs more texts than the cache keeps.
func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "bounded.db"))
	expect.OK(t, err)
	defer func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}()
	statements, prepared := db.NewStatements(conn)
	if _, err := statements.ExecContext(ctx, "CREATE TABLE numbers (n INTEGER NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, some are prepared and others are not
		for n := range db.SQLiteStatements {
			if _, err := statements.ExecContext(ctx, fmt.Sprintf("DELETE FROM numbers WHERE n = %d * $1", n), 2); err != nil {
				t.Fatal(err)
			}
			var got int
			text := fmt.Sprintf("SELECT %d * $1", n)
			if err := one(ctx, statements, &got, text, 2); err != nil || got != 2*n {
				t.Fatalf("%s: %d, %v", text, got, err)
			}
		}
	}
	if n := prepared(); n != db.SQLiteStatements {
		t.Errorf("%d statements are prepared; want %d", n, db.SQLiteStatements)
	}
}

// TestPreparingLeavesTheCacheUnlocked checks that readers need not wait while one prepares a statement, which may
// have to open a connection.
func TestPreparingLeavesTheCacheUnlocked(t *testing.T) {
	t.Parallel()
	conn, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "unlocked.db"))
	expect.OK(t, err)
	var statements *db.Statements
	calls := 0
	statements, prepared := db.NewStatements(preparing{conn, func() {
		calls++
		if statements.Locked() {
			t.Error("the cache is locked")
		}
		if calls == 1 && !t.Failed() { // another caller prepares the same text
			if _, err := statements.ExecContext(t.Context(), "SELECT 1"); err != nil {
				t.Error(err)
			}
		}
	}})
	if _, err := statements.ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
	if n := prepared(); calls != 2 || n != 1 {
		t.Errorf("%d calls prepared %d statements", calls, n)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}

// preparing calls a function before it prepares a statement.
type preparing struct {
	*sql.DB
	before func()
}

func (p preparing) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	p.before()
	return p.DB.PrepareContext(ctx, query)
}

// one reads the first row of a query.
func one(ctx context.Context, on interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, into *int, text string, args ...any,
) (err error) {
	rows, err := on.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if rows.Next() {
		err = rows.Scan(into)
	}
	return errors.Join(err, rows.Err())
}
