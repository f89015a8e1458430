package dbtest

import (
	"context"
	"errors"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/test/expect"
)

// connect opens a connection and closes it when the test ends.
func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	expect.OK(t, err)
	// The server may have stopped, so the error of Close does not matter.
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// ping returns the error with which a database refuses a connection.
func ping(t *testing.T, dsn string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return err
	}
	return conn.Close(t.Context())
}

func query[T any](t *testing.T, conn *pgx.Conn, sql string) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestPostgresGivesEachTestItsOwnDatabase(t *testing.T) {
	const tables = `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`
	var dsns []string
	for range 2 {
		// The first test leaves a table and an open connection.
		t.Run("", func(t *testing.T) {
			dsn := Postgres(t)
			dsns = append(dsns, dsn)
			conn, err := pgx.Connect(t.Context(), dsn)
			expect.OK(t, err)
			if n := query[int](t, conn, tables); n != 0 {
				t.Errorf("a new database holds %d tables, want 0", n)
			}
			run(t, conn, `CREATE TABLE left_behind (id int)`)
		})
		// Finalizers close unreferenced files. The cluster's lock must not be one of them.
		runtime.GC()
	}
	if dsns[0] == dsns[1] {
		t.Errorf("two tests were given the same database, %s", dsns[0])
	}
	for _, dsn := range dsns {
		var pgErr interface{ SQLState() string }
		if err := ping(t, dsn); !errors.As(err, &pgErr) || pgErr.SQLState() != "3D000" {
			t.Errorf("after its test, connecting to the database gives %v, want SQLSTATE 3D000 (no such database)", err)
		}
	}
}

func TestExtraClusterWithoutFsync(t *testing.T) {
	t.Parallel()
	c, err := StartCluster(t.Context(), Options{})
	expect.OK(t, err)
	defer func() { expect.NoError(t, c.Stop()) }()
	conn := connect(t, c.DSN("postgres"))
	if v := query[string](t, conn, `SHOW fsync`); v != "off" {
		t.Errorf("fsync = %s, want off", v)
	}
	// Sorted by bytes it would be B, a; the tests use the collation of production servers.
	rows, err := conn.Query(t.Context(), `SELECT x FROM (VALUES ('B'), ('a')) AS v (x) ORDER BY x`)
	expect.OK(t, err)
	if got, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || !slices.Equal(got, []string{"a", "B"}) {
		t.Errorf("sorted text = %v, %v, want [a B]", got, err)
	}
}

func TestWithDatabase(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:p@h:5/old?sslmode=disable": "postgres://u:p@h:5/new?connect_timeout=60&sslmode=disable",
		"postgres://h":                           "postgres://h/new?connect_timeout=60",
		"host=/run user=u dbname=old":            "host=/run user=u dbname=old dbname=new connect_timeout=60",
	} {
		got, err := withDatabase(dsn, "new")
		if err != nil || got != want {
			t.Errorf("withDatabase(%q) = %q, %v, want %q", dsn, got, err, want)
		}
		if config, err := pgx.ParseConfig(got); err != nil || config.Database != "new" {
			t.Errorf("pgx reads %q as %v, %v, want the database new", got, config, err)
		}
	}
	var urlErr *url.Error
	if got, err := withDatabase("postgres://[", "new"); !errors.As(err, &urlErr) || !strings.Contains(err.Error(), serverEnv) {
		t.Errorf("withDatabase of a broken URL = %q, %v, want an error that names %s", got, err, serverEnv)
	}
}
