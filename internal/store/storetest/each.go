package storetest

import (
	"path/filepath"
	"testing"

	"github.com/quittance/quittance/internal/store"
)

// Each runs the test on a fresh database of each kind that the program
// supports.
func Each(t *testing.T, test func(t *testing.T, s *store.Store)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, Open(t, SQLite(t)))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, Open(t, Postgres(t)))
	})
}

// SQLite returns the URL of a database that does not exist yet.
func SQLite(tb testing.TB) string {
	return "sqlite:" + filepath.Join(tb.TempDir(), "quittance.db")
}

// Open opens the database for the length of the test.
func Open(tb testing.TB, url string) *store.Store {
	tb.Helper()
	s, err := store.Open(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close the store: %v", err)
		}
	})
	return s
}
