package storetest

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestOpenKeepsWhatIsThere opens databases that are not empty: they are not replaced by a copy of
// the template.
func TestOpenKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ change, query, want string }{
		"a table":   {"CREATE TABLE kept AS SELECT 'x' AS kept", "SELECT kept FROM kept", "x"},
		"a setting": {"DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET application_name = %L', current_database(), 'kept'); END $$", "SHOW application_name", "kept"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := Postgres(t)
			if _, err := connect(t, url).Exec(t.Context(), test.change); err != nil {
				t.Fatal(err)
			}
			Open(t, url)
			if got := scan(t, url, test.query); got != test.want {
				t.Errorf("%s returns %q, want %q", test.query, got, test.want)
			}
		})
	}
}

// TestOpenCopiesTheTemplate changes a database, and opens another one: it has the schema alone.
func TestOpenCopiesTheTemplate(t *testing.T) {
	t.Parallel()
	first := Postgres(t)
	Open(t, first)
	if _, err := connect(t, first).Exec(t.Context(), "CREATE TABLE first ()"); err != nil {
		t.Fatal(err)
	}
	second := Postgres(t)
	Open(t, second)
	if got := scan(t, second, "SELECT count(*) FILTER (WHERE relname = 'invoices') || ' ' || count(*) FILTER (WHERE relname = 'first') FROM pg_class"); got != "1 0" {
		t.Errorf("it has %s tables of these names, want 1 0", got)
	}
}

// scan returns the text that a query returns.
func scan(t *testing.T, url, query string) (text string) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}
