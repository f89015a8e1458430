package db_test

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// as returns the URL of a database for a role.
func as(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	rowtest.Must(t, err)
	u.User = url.User(role)
	return u.String()
}

// TestMissingPrivilege takes one privilege after the other from the role of a running service.
func TestMissingPrivilege(t *testing.T) {
	t.Parallel()
	dsn := dbtest.MigratedPostgres(t)
	dbtest.Open(t, dsn)
	conn := dbtest.SQL(t, dsn)
	role := "app_" + strings.ToLower(rand.Text())
	run := func(statement string) {
		t.Helper()
		_, err := conn.ExecContext(t.Context(), strings.ReplaceAll(statement, "$role", role))
		rowtest.Must(t, err)
	}
	run("CREATE ROLE $role LOGIN")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := conn.Exec(statement); err != nil { // the test's context has ended
				t.Error(err)
			}
		}
	})
	run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role")
	s, err := db.Open(t.Context(), as(t, dsn, role))
	rowtest.Must(t, err)
	t.Cleanup(func() { rowtest.Must(t, s.Close()) })
	rowtest.Must(t, s.CheckWritable(t.Context()))
	run("CREATE TABLE unrelated (n int)") // of the same owner, as an extension's
	rowtest.Must(t, s.CheckWritable(t.Context()))
	for _, test := range []struct{ privilege, table string }{
		{"DELETE", "deliveries"}, {"UPDATE", "invoices"}, {"INSERT", "audit_entries"}, {"SELECT", "api_keys"}, {"DELETE", "attempts"},
	} {
		run("REVOKE " + test.privilege + " ON " + test.table + " FROM $role")
		if err := s.CheckWritable(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks the privilege "+test.privilege+" on "+test.table) {
			t.Errorf("without %s on %s: %v", test.privilege, test.table, err)
		}
		run("GRANT " + test.privilege + " ON " + test.table + " TO $role")
	}
	run("REVOKE UPDATE, DELETE ON audit_entries FROM $role") // the service does not need them
	rowtest.Must(t, s.CheckWritable(t.Context()))
}

// TestOtherSchema opens a database with tables in another schema than the connection's.
func TestOtherSchema(t *testing.T) {
	t.Parallel()
	dsn := dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, dsn)
	if s.Created() {
		t.Error("a database with tables is new")
	}
	_, err := dbtest.SQL(t, dsn).ExecContext(t.Context(), "CREATE SCHEMA elsewhere")
	rowtest.Must(t, err)
	u, err := url.Parse(dsn)
	rowtest.Must(t, err)
	q := u.Query()
	q.Set("search_path", "elsewhere")
	u.RawQuery = q.Encode()
	_, err = db.Open(t.Context(), u.String())
	if err == nil || !strings.Contains(err.Error(), `the schema "public" has them`) || !strings.Contains(err.Error(), "search_path") {
		t.Errorf("with another search_path: %v", err)
	}
	for name, empty := range dbtest.Databases() {
		s, err := db.Open(t.Context(), empty(t))
		rowtest.Must(t, err)
		if !s.Created() {
			t.Errorf("%s: an empty database is not new", name)
		}
		rowtest.Must(t, s.Close())
	}
}

// TestOwnTables compares the tables with checked privileges with the tables of a new database.
func TestOwnTables(t *testing.T) {
	t.Parallel()
	conn := dbtest.SQL(t, dbtest.MigratedPostgres(t))
	for _, table := range texts(t, conn, `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
		AND NOT relispartition AND relname <> 'goose_db_version'`) {
		if !slices.Contains(db.OwnTables(), table) {
			t.Errorf("the privileges on %s are not checked", table)
		}
	}
}
