package db_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/ledger"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
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
		expect.Equal(t, db.SQLiteText(query), want, "%s became", query)
	}
}

// TestStatementsAreBounded runs more texts than the cache keeps.
func TestStatementsAreBounded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "bounded.db"))
	expect.OK(t, err)
	defer func() { expect.NoError(t, conn.Close()) }()
	statements, prepared := db.NewStatements(conn)
	expect.Success(t)(statements.ExecContext(ctx, "CREATE TABLE numbers (n INTEGER NOT NULL)"))
	for range 2 { // the second time, some are prepared and others are not
		for n := range db.SQLiteStatements {
			expect.Success(t)(statements.ExecContext(ctx, fmt.Sprintf("DELETE FROM numbers WHERE n = %d * $1", n), 2))
			var got int
			text := fmt.Sprintf("SELECT %d * $1", n)
			if err := one(ctx, statements, &got, text, 2); err != nil || got != 2*n {
				t.Fatalf("%s: %d, %v", text, got, err)
			}
		}
	}
	expect.Equal(t, prepared(), db.SQLiteStatements, "statements are prepared:")
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
	expect.NoError(t, conn.Close())
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

// TestEveryStatementIsBounded checks that every statement runs through Exec, QueryAll or QueryRow, which bound its
// duration. Other packages have no other way.
func TestEveryStatementIsBounded(t *testing.T) {
	t.Parallel()
	files := expect.Must(filepath.Glob("*.go"))
	for _, name := range files {
		if name == "db.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text := expect.Must(os.ReadFile(name))
		if strings.Contains(string(text), ".run.") {
			t.Errorf("%s runs a statement itself; use Exec, QueryAll or QueryRow", name)
		}
	}
}

// TestDeadlineInATransaction runs endless statements in SQLite transactions that share a commit with others. Each is
// interrupted and its transaction is rolled back, even if the transaction's function continues.
func TestDeadlineInATransaction(t *testing.T) {
	t.Parallel()
	s := dbtest.Open(t, dbtest.SQLite(t))
	rowtest.Insert(t, s, rowtest.Sample("inv_0", "m"))
	s.BoundTransactions(200 * time.Millisecond)
	for name, endless := range map[string]func(*db.Tx, context.Context) error{"read": (*db.Tx).ReadForEver, "write": (*db.Tx).WriteForEver} {
		var group sync.WaitGroup
		group.Go(func() {
			err := s.Update(t.Context(), func(tx *db.Tx) error {
				if err := add(t.Context(), tx, "inv_before_"+name); err != nil {
					return err
				}
				expect.Error(t, db.ErrTimeout, "%s: a statement that does not end gives", name)(endless(tx, t.Context()))
				if err := add(t.Context(), tx, "inv_after_"+name); !db.Unavailable(err) {
					t.Errorf("%s: the transaction goes on: %v", name, err)
				}
				return nil
			})
			if !errors.Is(err, db.ErrTimeout) || !db.Unavailable(err) {
				t.Errorf("%s: the transaction gives %v", name, err)
			}
		})
		errs := make(map[string]*error)
		for i := range 20 {
			id := fmt.Sprintf("inv_%s_%d", name, i)
			outcome := new(error)
			errs[id] = outcome
			group.Go(func() {
				*outcome = s.Update(t.Context(), func(tx *db.Tx) error { return add(t.Context(), tx, id) })
			})
		}
		group.Wait()
		for id, err := range errs {
			if got := has(t, s, id); got != (*err == nil) || *err != nil && !db.Unavailable(*err) {
				t.Errorf("%s gives %v, and is there: %t", id, *err, got)
			}
		}
		for _, id := range []string{"inv_before_", "inv_after_"} {
			if has(t, s, id+name) {
				t.Errorf("%s%s is there", id, name)
			}
		}
	}
	rowtest.Update(t, s, func(ctx context.Context, tx *db.Tx) error { return add(ctx, tx, "inv_1") })
}

// TestExtraUnavailableUnderLoad stops the database under load. Unavailable must
// report true for the error of every interrupted statement.
func TestExtraUnavailableUnderLoad(t *testing.T) {
	t.Parallel()
	cluster, err := dbtest.StartCluster(t.Context(), dbtest.Options{Fsync: true})
	expect.OK(t, err)
	t.Cleanup(func() { expect.NoError(t, cluster.Stop()) })
	s := dbtest.Open(t, cluster.DSN("postgres"))
	const workers, kills, worked, refused = 16, 3, 20, 4
	for range kills {
		var busy, group sync.WaitGroup
		busy.Add(workers)
		for i := range workers {
			group.Go(func() {
				failures := 0
				for turn := 0; failures < refused; turn++ {
					if turn == worked {
						busy.Done()
					}
					var err error
					if i%2 == 0 {
						_, err = ledger.NewReader(s).Invoice(t.Context(), "inv_0")
					} else {
						err = s.Update(t.Context(), func(tx *db.Tx) error {
							return access.InsertSettlementAddresses(t.Context(), tx, []access.SettlementAddress{{ChainKey: "dev", MerchantID: fmt.Sprint("mer_", i, turn)}}, invoice.Unix(1))
						})
					}
					switch {
					case err == nil, errors.Is(err, db.ErrNotFound):
					case db.Unavailable(err):
						failures++
					default:
						t.Errorf("a database that goes away gives %v, which does not count as unavailable", err)
						failures++
					}
				}
			})
		}
		busy.Wait()
		expect.NoError(t, cluster.Kill(t.Context()))
		group.Wait()
		expect.OK(t, cluster.Restart(t.Context()))
	}
}

func TestUnavailableCodes(t *testing.T) {
	for code, want := range map[string]bool{
		"57P01": true, "57P03": true, "57014": true, "53300": true, "53100": true, "08006": true, "25006": true, "25P03": true, "40001": true, "58030": true,
		"23505": false, "42P01": false, "25P02": false, "XX001": false,
	} {
		if err := fmt.Errorf("read: %w", &pgconn.PgError{Code: code}); db.Unavailable(err) != want {
			t.Errorf("Unavailable(%v) = %v; want %v", err, !want, want)
		}
	}
	node := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED} // not an error of a database
	for _, err := range []error{nil, context.Canceled, errors.New("no"), node, io.ErrUnexpectedEOF} {
		if db.Unavailable(err) {
			t.Errorf("Unavailable(%v) holds", err)
		}
	}
}

// TestExtraDestroyedFile destroys the file of a SQLite database under an open store.
func TestExtraDestroyedFile(t *testing.T) {
	t.Parallel()
	for name, content := range map[string][]byte{"empty": nil, "zeros": make([]byte, 1<<20), "text": bytes.Repeat([]byte("x"), 1<<20)} {
		url := dbtest.SQLite(t)
		s := dbtest.Open(t, url)
		expect.OK(t, os.WriteFile(strings.TrimPrefix(url, "sqlite:"), content, 0o600))
		if _, err := ledger.NewReader(s).Invoice(t.Context(), "inv_x"); !db.Unavailable(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
