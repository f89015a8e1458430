package db_test

import (
	"testing"

	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestByteOrder requires that the texts of all tables are in the order of their bytes, also after a service has made
// partitions.
func TestByteOrder(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	dbtest.Open(t, url)
	var n int
	rowtest.Must(t, dbtest.SQL(t, url).QueryRowContext(t.Context(), `SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
		AND attcollation = 'default'::regcollation`).Scan(&n))
	if n != 0 {
		t.Errorf("%d columns are in the order of the database's locale", n)
	}
}
