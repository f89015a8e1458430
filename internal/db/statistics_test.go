package db_test

import (
	"context"
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestUpdateStatistics checks that a table is analyzed once it has 500 rows, and again once it has doubled.
func TestUpdateStatistics(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, url)
	conn := dbtest.SQL(t, url)
	if _, err := conn.ExecContext(t.Context(), "ALTER TABLE merchants SET (autovacuum_enabled = false)"); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, tc := range []struct {
		rows    int
		counted bool
	}{{499, false}, {1, true}, {400, false}, {100, true}} {
		written += tc.rows
		addMerchants(t, conn, written-tc.rows, written)
		grown, err := s.UpdateStatistics(t.Context())
		expect.OK(t, err)
		if got := slices.Contains(grown, "merchants"); got != tc.counted {
			t.Errorf("after %d rows: counted %v; want %v", written, got, tc.counted)
		}
		var counted int
		expect.OK(t, conn.QueryRowContext(t.Context(), "SELECT reltuples::bigint FROM pg_class WHERE oid = 'merchants'::regclass").Scan(&counted))
		if tc.counted && counted != written {
			t.Errorf("the planner expects %d rows; want %d", counted, written)
		}
	}
}

// addMerchants adds merchants with the numbers from first, and waits until PostgreSQL has counted as many more changes.
func addMerchants(t *testing.T, conn *sql.DB, first, end int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changes := func() (n int) {
		err := conn.QueryRowContext(ctx, "SELECT n_mod_since_analyze FROM pg_stat_user_tables WHERE relname = 'merchants'").Scan(&n)
		expect.OK(t, err)
		return n
	}
	before := changes()
	if _, err := conn.ExecContext(ctx, "INSERT INTO merchants (id, created_at) SELECT 'm' || i, 0 FROM generate_series($1::bigint, $2::bigint - 1) AS i", first, end); err != nil {
		t.Fatal(err)
	}
	for changes() < before+end-first {
		if !clock.Sleep(ctx, 20*time.Millisecond, nil) {
			t.Fatal("PostgreSQL has not noted the changes")
		}
	}
}
