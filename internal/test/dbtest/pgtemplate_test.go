package dbtest

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestMigratedPostgres changes a database with the schema, and makes another one, which has only the schema.
func TestMigratedPostgres(t *testing.T) {
	t.Parallel()
	expect.Success(t)(connect(t, MigratedPostgres(t)).Exec(t.Context(), "CREATE TABLE first ()"))
	second := MigratedPostgres(t)
	if got := scan(t, second, "SELECT count(*) FILTER (WHERE relname = 'invoices') || ' ' || count(*) FILTER (WHERE relname = 'first') FROM pg_class"); got != "1 0" {
		t.Errorf("it has %s tables of these names, want 1 0", got)
	}
	Open(t, second)
}

// TestPostgresIsEmpty requires that a database without the schema has no tables.
func TestPostgresIsEmpty(t *testing.T) {
	t.Parallel()
	MigratedPostgres(t)
	if got := scan(t, Postgres(t), "SELECT count(*)::text FROM pg_class WHERE relnamespace = 'public'::regnamespace"); got != "0" {
		t.Errorf("it has %s tables and indexes, want none", got)
	}
}

// scan returns the text that a query returns.
func scan(t *testing.T, url, query string) (text string) {
	t.Helper()
	expect.OK(t, connect(t, url).QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&text))
	return text
}
