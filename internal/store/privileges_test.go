package store_test

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// as returns the URL of a database for a role.
func as(t *testing.T, dsn, role string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	u.User = url.User(role)
	return u.String()
}

// TestMissingPrivilege takes one privilege after the other from the role of a running service.
func TestMissingPrivilege(t *testing.T) {
	t.Parallel()
	dsn := storetest.MigratedPostgres(t)
	storetest.Open(t, dsn)
	db := storetest.SQL(t, dsn)
	role := "app_" + strings.ToLower(rand.Text())
	run := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), strings.ReplaceAll(statement, "$role", role))
		must(t, err)
	}
	run("CREATE ROLE $role LOGIN")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := db.Exec(statement); err != nil { // the test's context has ended
				t.Error(err)
			}
		}
	})
	run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO $role")
	s, err := store.Open(t.Context(), as(t, dsn, role))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	must(t, s.CheckWritable(t.Context()))
	run("CREATE TABLE unrelated (n int)") // of the same owner, as an extension's
	must(t, s.CheckWritable(t.Context()))
	for _, test := range []struct{ privilege, table string }{
		{"DELETE", "deliveries"}, {"UPDATE", "invoices"}, {"INSERT", "audit_entries"}, {"SELECT", "api_keys"}, {"DELETE", "attempts"},
	} {
		run("REVOKE " + test.privilege + " ON " + test.table + " FROM $role")
		if err := s.CheckWritable(t.Context()); err == nil || !strings.Contains(err.Error(), "lacks the privilege "+test.privilege+" on "+test.table) {
			t.Errorf("without %s on %s: %v", test.privilege, test.table, err)
		}
		run("GRANT " + test.privilege + " ON " + test.table + " TO $role")
	}
	run("REVOKE UPDATE, DELETE ON audit_entries FROM $role") // nobody needs them
	must(t, s.CheckWritable(t.Context()))
}

// TestOtherSchema opens a database whose tables are in another schema than that of the connection.
func TestOtherSchema(t *testing.T) {
	t.Parallel()
	dsn := storetest.MigratedPostgres(t)
	s := storetest.Open(t, dsn)
	if s.Created() {
		t.Error("a database with tables is new")
	}
	_, err := storetest.SQL(t, dsn).ExecContext(t.Context(), "CREATE SCHEMA elsewhere")
	must(t, err)
	u, err := url.Parse(dsn)
	must(t, err)
	q := u.Query()
	q.Set("search_path", "elsewhere")
	u.RawQuery = q.Encode()
	_, err = store.Open(t.Context(), u.String())
	if err == nil || !strings.Contains(err.Error(), `the schema "public" has them`) || !strings.Contains(err.Error(), "search_path") {
		t.Errorf("with another search_path: %v", err)
	}
	for name, empty := range storetest.Databases() {
		s, err := store.Open(t.Context(), empty(t))
		must(t, err)
		if !s.Created() {
			t.Errorf("%s: an empty database is not new", name)
		}
		must(t, s.Close())
	}
}

// TestOwnTables compares the tables of which privileges are checked with those of a new database.
func TestOwnTables(t *testing.T) {
	t.Parallel()
	db := storetest.SQL(t, storetest.MigratedPostgres(t))
	for _, table := range texts(t, db, `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
		AND NOT relispartition AND relname <> 'goose_db_version'`) {
		if !slices.Contains(store.OwnTables(), table) {
			t.Errorf("the privileges on %s are not checked", table)
		}
	}
}
