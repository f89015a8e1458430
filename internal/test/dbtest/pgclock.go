package dbtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// PostgresWithClock is MigratedPostgres with a database whose clock_timestamp() returns the time of the last call of
// setTime. now() still returns the real time. The user must be a superuser, and the server on this machine.
func PostgresWithClock(tb testing.TB) (url string, setTime func(time.Time)) {
	tb.Helper()
	must := func(err error) {
		if err != nil {
			tb.Fatalf("dbtest: set the clock of a database: %v", err)
		}
	}
	url = MigratedPostgres(tb)
	dir, err := os.MkdirTemp(tempDir(), "quittance-clock-") //nolint:usetesting // which root alone may enter
	must(err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(os.Chmod(dir, 0o755)) //nolint:gosec // the server runs as another user
	file, err := os.Create(filepath.Join(dir, "clock"))
	must(err)
	tb.Cleanup(func() { _ = file.Close() })
	setTime = func(at time.Time) {
		if _, err := file.WriteAt(fmt.Appendf(nil, "%017.6f", float64(at.UnixMicro())/1e6), 0); err != nil {
			panic(err)
		}
	}
	setTime(time.Now())
	must(administer(url, fmt.Sprintf("CREATE FUNCTION clock_timestamp() RETURNS timestamptz VOLATILE LANGUAGE sql AS 'SELECT to_timestamp(pg_read_file(''%s'')::float8)'", file.Name())))
	must(administer(url, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database()); END $$"))
	return url, setTime
}
