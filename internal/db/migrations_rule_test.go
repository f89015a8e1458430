package db_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestMigrationsLeaveThePreviousReleaseWorking reads the migrations since the last release. They may change its tables
// only in ways that running replicas of that release do not notice: docs/decisions/0056-rolling-upgrades.md.
func TestMigrationsLeaveThePreviousReleaseWorking(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("migrations/postgres/*.sql") // a SQLite database has one replica
	rowtest.Must(t, err)
	all := releases(t)
	if len(all) == 0 {
		if len(paths) > 0 {
			t.Errorf("there is no release that %q upgrade; change the schema files only, or add the release to testdata/released", paths)
		}
		return
	}
	last := all[len(all)-1]
	text, err := os.ReadFile(filepath.Join(last.folder, "postgres.sql"))
	rowtest.Must(t, err)
	tables := make(map[string]bool)
	for _, m := range createTable.FindAllStringSubmatch(normalized(string(text)), -1) {
		tables[m[1]] = true
	}
	if !tables["INVOICES"] {
		t.Fatalf("the last release has the tables %v", tables)
	}
	for _, path := range paths[last.version-1:] {
		text, err := os.ReadFile(path)
		rowtest.Must(t, err)
		for _, fault := range migrationFaults(string(text), tables) {
			t.Errorf("%s: %s", path, fault)
		}
	}
}

var (
	lineComment = regexp.MustCompile(`--[^\n]*`)
	parentheses = regexp.MustCompile(`\([^()]+\)`)
	dollarBody  = regexp.MustCompile(`(?s)\$(\w*)\$.*?\$(\w*)\$`)
	spaces      = regexp.MustCompile(`\s+`)
	createTable = regexp.MustCompile(`CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	harmless    = regexp.MustCompile(`^(CREATE (TABLE|FUNCTION|OR REPLACE FUNCTION)|INSERT INTO|SELECT) `)
	concurrent  = regexp.MustCompile(`^(CREATE INDEX|DROP INDEX) CONCURRENTLY `)
	parameter   = regexp.MustCompile(`^ALTER TABLE \w+ (ALTER COLUMN \w+ SET \(N_DISTINCT = [-.\d]+\)|SET \(FILLFACTOR = \d+\))$`) // conflicts only with VACUUM and ANALYZE
	addColumn   = regexp.MustCompile(`^ALTER TABLE (?:ONLY )?\w+ ADD COLUMN [^,]*$`)
	onTable     = regexp.MustCompile(`^(?:ALTER TABLE(?: ONLY)?(?: IF EXISTS)?|UPDATE(?: ONLY)?|DELETE FROM(?: ONLY)?|TRUNCATE(?: TABLE)?|LOCK(?: TABLE)?|DROP TABLE(?: IF EXISTS)?|CREATE(?: UNIQUE)? INDEX.* ON(?: ONLY)?|CREATE TRIGGER.*? ON) (\w+)`)
	computed    = regexp.MustCompile(`DEFAULT \(|DEFAULT \w+ ?\(`)
)

// normalized returns SQL in upper case, without comments, and without the bodies of functions.
func normalized(text string) string {
	text = dollarBody.ReplaceAllString(lineComment.ReplaceAllString(text, " "), "''")
	return strings.ToUpper(spaces.ReplaceAllString(text, " "))
}

// withoutParentheses empties the parentheses of a statement.
func withoutParentheses(statement string) string {
	for parentheses.MatchString(statement) {
		statement = parentheses.ReplaceAllString(statement, "()")
	}
	return statement
}

// migrationFaults returns the changes of a migration to tables of the last release that its replicas may notice.
func migrationFaults(text string, tables map[string]bool) (faults []string) {
	for statement := range strings.SplitSeq(normalized(text), ";") {
		statement = strings.TrimSpace(statement)
		table := onTable.FindStringSubmatch(statement)
		switch {
		case statement == "", harmless.MatchString(statement), concurrent.MatchString(statement), parameter.MatchString(statement), table != nil && !tables[table[1]]:
		case addColumn.MatchString(withoutParentheses(statement)):
			switch column := statement; {
			case computed.MatchString(column):
				faults = append(faults, "a default that is computed rewrites the table: "+column)
			case strings.Contains(column, "NOT NULL") && !strings.Contains(column, "DEFAULT "):
				faults = append(faults, "the previous release does not set this column: "+column)
			case strings.Contains(column, "UNIQUE"), strings.Contains(column, "PRIMARY KEY"):
				faults = append(faults, "a constraint that the previous release does not know: "+column)
			}
		default:
			faults = append(faults, "replicas of the previous release may fail or wait: "+statement)
		}
	}
	return faults
}

func TestMigrationFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"CREATE TABLE new (id TEXT); CREATE INDEX new_by_id ON new (id); INSERT INTO new VALUES ('a')":      0,
		"ALTER TABLE invoices ADD COLUMN a TEXT; -- a comment; with more":                                   0,
		"ALTER TABLE invoices\n    ADD COLUMN a BIGINT NOT NULL DEFAULT 0 CHECK (a IN (1, 2))":              0,
		"CREATE FUNCTION f() RETURNS trigger AS $$ BEGIN DELETE FROM invoices; END $$":                      0,
		"CREATE TRIGGER t BEFORE UPDATE OR DELETE ON new FOR EACH ROW EXECUTE FUNCTION f()":                 0,
		"ALTER TABLE invoices ADD COLUMN a TEXT NOT NULL":                                                   1,
		"ALTER TABLE invoices ADD COLUMN a TEXT UNIQUE":                                                     1,
		"ALTER TABLE invoices ADD COLUMN a BIGINT DEFAULT random()":                                         1,
		"ALTER TABLE invoices ADD COLUMN a TEXT, DROP COLUMN amount":                                        1,
		"ALTER TABLE invoices DROP COLUMN amount":                                                           1,
		"ALTER TABLE invoices RENAME COLUMN amount TO price":                                                1,
		"ALTER TABLE invoices RENAME TO bills":                                                              1,
		"alter table invoices alter column amount type BIGINT":                                              1,
		"ALTER TABLE invoices ALTER COLUMN amount SET NOT NULL":                                             1,
		"ALTER TABLE invoices ALTER COLUMN amount SET (n_distinct = -1)":                                    0,
		"ALTER TABLE invoices ALTER COLUMN amount SET (n_distinct = -1), ALTER COLUMN amount DROP NOT NULL": 1,
		"ALTER TABLE invoices SET (fillfactor = 80)":                                                        0,
		"ALTER TABLE invoices SET (fillfactor = 80), ALTER COLUMN amount SET NOT NULL":                      1,
		"ALTER TABLE invoices SET LOGGED":                                                                   1,
		"ALTER TABLE invoices ADD CHECK (amount <> '1')":                                                    1,
		"DROP TABLE invoices; DROP INDEX invoices_by_id":                                                    2,
		"CREATE INDEX CONCURRENTLY a ON invoices (amount)":                                                  0,
		"CREATE INDEX a ON invoices (amount)":                                                               1,
		"CREATE UNIQUE INDEX a ON invoices (amount)":                                                        1,
		"CREATE TRIGGER t BEFORE UPDATE OR DELETE ON invoices FOR EACH ROW EXECUTE FUNCTION f()":            1,
		"UPDATE invoices SET amount = '1'":                                                                  1,
		"DELETE FROM invoices":                                                                              1,
		"LOCK TABLE invoices":                                                                               1,
		"TRUNCATE invoices":                                                                                 1,
		"VACUUM":                                                                                            1,
	} {
		if faults := migrationFaults(text, map[string]bool{"INVOICES": true}); len(faults) != want {
			t.Errorf("%s: %d faults, want %d: %q", text, len(faults), want, faults)
		}
	}
}
