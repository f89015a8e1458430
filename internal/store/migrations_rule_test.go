package store_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// released is the newest migration of the last release, and those before it are
	// frozen. There is no release yet, and rolling upgrades begin with this one.
	released = "00023"
	// frozen is the SHA-256 of the migrations up to released.
	frozen = "a5d9ebddf07bec5ad64e93a1f4b3309e76b50c4e3bea5f1b47aef804d4b14081"
)

// unruly are the migrations that do more than the rule allows, and may.
var unruly = map[string]bool{
	"migrations/00071_byte_order/postgres.sql": true, // TestByteOrder checks it
	"migrations/00073_short_keys/postgres.sql": true, // its unique index refuses only what a constraint does already
	"migrations/00074_long_keys/postgres.sql":  true, // no release needs the indexes that it drops
}

// TestMigrationsLeaveThePreviousReleaseWorking reads the migrations since the last
// release. They may change its tables only in ways that running replicas of that release
// do not notice: docs/decisions/0056-rolling-upgrades.md.
func TestMigrationsLeaveThePreviousReleaseWorking(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	tables := make(map[string]bool) // tables of the last release
	var later []string
	for _, path := range migrationFiles(t) {
		text, err := os.ReadFile(path)
		must(t, err)
		if number, _, _ := strings.Cut(strings.TrimPrefix(path, "migrations/"), "_"); number > released {
			later = append(later, path)
			continue
		}
		fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		for _, m := range createTable.FindAllStringSubmatch(normalized(string(text)), -1) {
			tables[m[1]] = true
		}
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); got != frozen {
		t.Errorf("the migrations up to %s are frozen, and their checksum is now %s", released, got)
	}
	if !tables["INVOICES"] || len(later) == 0 {
		t.Fatalf("tables %v, later migrations %v", tables, later)
	}
	for _, path := range later {
		if strings.HasSuffix(path, "/sqlite.sql") || unruly[path] {
			continue // a SQLite database has one replica
		}
		text, err := os.ReadFile(path)
		must(t, err)
		for _, fault := range migrationFaults(string(text), tables) {
			t.Errorf("%s: %s", path, fault)
		}
	}
}

// migrationFiles returns the paths of all migrations, in order.
func migrationFiles(t *testing.T) (paths []string) {
	t.Helper()
	must(t, filepath.WalkDir("migrations", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	}))
	slices.Sort(paths)
	return paths
}

var (
	lineComment = regexp.MustCompile(`--[^\n]*`)
	parentheses = regexp.MustCompile(`\([^()]+\)`)
	dollarBody  = regexp.MustCompile(`(?s)\$(\w*)\$.*?\$(\w*)\$`)
	spaces      = regexp.MustCompile(`\s+`)
	createTable = regexp.MustCompile(`CREATE TABLE (?:IF NOT EXISTS )?(\w+)`)
	harmless    = regexp.MustCompile(`^(CREATE (TABLE|FUNCTION|OR REPLACE FUNCTION)|INSERT INTO|SELECT) `)
	concurrent  = regexp.MustCompile(`^(CREATE INDEX|DROP INDEX) CONCURRENTLY `)
	parameter   = regexp.MustCompile(`^ALTER TABLE \w+ (ALTER COLUMN \w+ SET \(N_DISTINCT = [-.\d]+\)|SET \(FILLFACTOR = \d+\))$`) // waits for nothing but VACUUM and ANALYZE
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

// migrationFaults returns the changes of a migration to tables of the last release that
// its replicas may notice.
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
