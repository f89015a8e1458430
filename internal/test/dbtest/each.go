package dbtest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// Each runs the test on a fresh database of each of Databases.
func Each(t *testing.T, test func(t *testing.T, s *db.DB)) {
	t.Helper()
	EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		test(t, Open(t, url))
	})
}

// EachURL runs the test with the URL of a fresh database of each of MigratedDatabases.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	for name, database := range MigratedDatabases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, database(t))
		})
	}
}

// Databases returns, by name, a function for each kind of database that creates a fresh one for a test
// and returns its URL. With -short there is only SQLite.
func Databases() map[string]func(testing.TB) string { return databases(SQLite, Postgres) }

// MigratedDatabases is Databases with databases that have the schema.
func MigratedDatabases() map[string]func(testing.TB) string {
	return databases(Migrated, MigratedPostgres)
}

func databases(sqlite, postgres func(testing.TB) string) map[string]func(testing.TB) string {
	if testing.Short() {
		return map[string]func(testing.TB) string{"sqlite": sqlite}
	}
	return map[string]func(testing.TB) string{"sqlite": sqlite, "postgres": postgres}
}

// SQLite returns the URL of a database that does not exist yet. It is in memory if there is
// room, where a commit does not wait for a disk.
func SQLite(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp(testdeps.MemoryDir(), "quittance-sqlite-") //nolint:usetesting // in memory
	expect.OK(tb, err)
	tb.Cleanup(func() { expect.NoError(tb, os.RemoveAll(dir)) })
	return "sqlite:" + filepath.Join(dir, "quittance.db")
}

// Migrated returns the URL of a SQLite database that has the schema.
func Migrated(tb testing.TB) string {
	tb.Helper()
	url := SQLite(tb)
	copySchema(tb, strings.TrimPrefix(url, "sqlite:"))
	return url
}

// Open opens the database for the length of the test. A SQLite database that
// does not exist yet begins as a copy of one with the schema.
func Open(tb testing.TB, url string) *db.DB {
	tb.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		copySchema(tb, path)
	}
	s, err := db.Open(tb.Context(), url)
	expect.OK(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the store: %v", err)
		}
	})
	return s
}

// copySchema makes a SQLite database with the schema, unless the file exists. Running the schema takes
// fifty times as long.
func copySchema(tb testing.TB, path string) {
	tb.Helper()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	schema, err := sqliteSchema()
	if err != nil {
		tb.Fatalf("dbtest: make a database with the schema: %v", err)
	}
	expect.OK(tb, os.WriteFile(path, schema, 0o600))
}

// sqliteSchema returns the file of a SQLite database that has only the schema.
var sqliteSchema = sync.OnceValues(func() (file []byte, err error) {
	dir, err := os.MkdirTemp("", "quittance-schema-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "quittance.db")
	s, err := db.Open(context.Background(), "sqlite:"+path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})
