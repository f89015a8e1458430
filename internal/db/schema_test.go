package db_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/test/testdeps"
)

// column is a column of a schema file.
type column struct{ name, definition, comment string }

// table is a table of a schema file.
type table struct {
	name, comment string
	columns       []column
}

var (
	startsTable  = regexp.MustCompile(`^CREATE TABLE (\w+) \($`)
	startsColumn = regexp.MustCompile(`^    ([a-z]\w*) +(.*)$`)
)

// schemaTables reads the tables of a schema file. The comment of a column is at the end of its line or above it.
func schemaTables(t *testing.T, kind string) (tables []table) {
	t.Helper()
	var above []string
	inside := false
	for line := range strings.Lines(schemaFile(t, kind)) {
		line = strings.TrimRight(line, "\n")
		definition, comment, _ := strings.Cut(line, "-- ")
		definition = strings.TrimRight(definition, " ")
		switch name, field := startsTable.FindStringSubmatch(line), startsColumn.FindStringSubmatch(definition); {
		case definition == "" && comment != "":
			above = append(above, comment)
			continue
		case name != nil:
			tables = append(tables, table{name: name[1], comment: strings.Join(above, " ")})
			inside = true
		case strings.HasPrefix(line, ")"):
			inside = false
		case inside && field != nil:
			if comment == "" {
				comment = strings.Join(above, " ")
			}
			of := &tables[len(tables)-1]
			of.columns = append(of.columns, column{field[1], field[2], comment})
		}
		above = nil
	}
	return tables
}

// schemaFile returns a schema file.
func schemaFile(t *testing.T, kind string) string {
	t.Helper()
	text := expect.Must(os.ReadFile("schema/" + kind + ".sql"))
	return string(text)
}

// TestSchemaFiles requires the same tables and columns in both schema files, in the same order and with the same
// comments, and a comment for each of them.
func TestSchemaFiles(t *testing.T) {
	t.Parallel()
	sqlite, postgres := schemaTables(t, "sqlite"), schemaTables(t, "postgres")
	if len(sqlite) < 50 {
		t.Fatalf("the test finds only %d tables", len(sqlite))
	}
	for _, of := range sqlite {
		if of.comment == "" {
			t.Errorf("the table %s has no comment", of.name)
		}
		for _, c := range of.columns {
			if c.comment == "" {
				t.Errorf("the column %s.%s has no comment", of.name, c.name)
			}
		}
	}
	for _, of := range postgres {
		for _, c := range of.columns {
			if strings.HasPrefix(c.definition, "TEXT") && !strings.HasPrefix(c.definition, `TEXT COLLATE "C"`) {
				t.Errorf(`the column %s.%s of postgres.sql lacks COLLATE "C"`, of.name, c.name)
			}
		}
	}
	common := func(tables []table) (all []string) {
		for _, of := range tables {
			all = append(all, of.name+" -- "+of.comment)
			for _, c := range of.columns {
				all = append(all, of.name+"."+c.name+" -- "+c.comment)
			}
		}
		return all
	}
	if diff := cmp.Diff(common(sqlite), common(postgres)); diff != "" {
		t.Errorf("the schema files differ (-sqlite.sql +postgres.sql):\n%s", diff)
	}
}

// TestMigrationFiles requires the same migrations for both databases, with numbers that follow one another.
func TestMigrationFiles(t *testing.T) {
	t.Parallel()
	of := make(map[string][]string)
	for _, kind := range []string{"sqlite", "postgres"} {
		paths := expect.Must(filepath.Glob("migrations/" + kind + "/*"))
		for i, path := range paths {
			if name := filepath.Base(path); !strings.HasPrefix(name, fmt.Sprintf("%05d_", i+2)) || filepath.Ext(name) != ".sql" {
				t.Errorf("%s is number %d; want a name such as %05[2]d_name.sql", path, i+2)
			}
			of[kind] = append(of[kind], filepath.Base(path))
		}
	}
	if diff := cmp.Diff(of["sqlite"], of["postgres"]); diff != "" {
		t.Errorf("the migrations differ (-sqlite +postgres):\n%s", diff)
	}
	if want := int64(len(of["sqlite"]) + 1); db.NewestMigration() != want {
		t.Errorf("the schema's version is %d, want %d", db.NewestMigration(), want)
	}
}

// released is the schema of a release in testdata/released.
type released struct {
	folder  string
	version int64
}

// releases returns the releases, the oldest first.
func releases(t *testing.T) (all []released) {
	t.Helper()
	folders := expect.Must(filepath.Glob("testdata/released/*/"))
	for _, folder := range folders {
		number, _, _ := strings.Cut(filepath.Base(folder), "_")
		version := expect.Must(strconv.ParseInt(number, 10, 64))
		all = append(all, released{folder, version})
	}
	return all
}

// eachEmpty runs the test with the URL of an empty database of each kind, and the kind.
func eachEmpty(t *testing.T, test func(t *testing.T, url, kind string)) {
	t.Helper()
	for kind, url := range dbtest.Databases() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, url(t), kind)
		})
	}
}

// newSchema returns the schema of a new database that this program makes.
func newSchema(t *testing.T, kind string) []string {
	t.Helper()
	url := dbtest.MigratedDatabases()[kind](t)
	dbtest.Open(t, url)
	return dbtest.Schema(t, url)
}

// TestUpgradeOfReleases upgrades the schema of each release. It becomes the one of the schema files, so a change of
// these needs a migration, and a migration a change of these. Rows of the release stay.
func TestUpgradeOfReleases(t *testing.T) {
	t.Parallel()
	for _, r := range releases(t) {
		eachEmpty(t, func(t *testing.T, url, kind string) {
			text := expect.Must(os.ReadFile(filepath.Join(r.folder, kind+".sql")))
			rowtest.Must(t, db.MakeRelease(t.Context(), url, string(text), r.version))
			counts := insertRows(t, url, filepath.Join(r.folder, "rows.sql"))
			dbtest.Open(t, url)
			if diff := cmp.Diff(newSchema(t, kind), dbtest.Schema(t, url)); diff != "" {
				t.Errorf("%s: the schema files (-) and an upgraded database (+) differ: migrations/README.md says what to change\n%s", r.folder, diff)
			}
			conn := dbtest.SQL(t, url)
			for name, want := range counts {
				var n int
				rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM "+name).Scan(&n))
				expect.Equal(t, n, want, "%s: %s has … rows after the upgrade:", r.folder, name)
			}
		})
	}
}

var insertInto = regexp.MustCompile(`^INSERT INTO (\w+) `)

// insertRows runs the statements of a file, if there is one, and returns how many rows each table of them has.
func insertRows(t *testing.T, url, path string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return counts
	}
	rowtest.Must(t, err)
	conn := dbtest.SQL(t, url)
	for line := range strings.Lines(string(text)) {
		if m := insertInto.FindStringSubmatch(line); m != nil {
			expect.Success(t)(conn.ExecContext(t.Context(), line))
			rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM "+m[1]).Scan(new(int)))
			counts[m[1]]++
		}
	}
	return counts
}

// madeUp is a release with an index, a column and a table less than this program, and the migrations since then.
type madeUp struct {
	schema     string
	migrations fstest.MapFS
}

// madeUpRelease removes parts from a schema file, and makes migrations that add them.
func madeUpRelease(t *testing.T, kind string) madeUp {
	t.Helper()
	const table, index = "CREATE TABLE public_hosts (", "CREATE INDEX invoices_by_address ON invoices (merchant_address, id);\n"
	old := schemaFile(t, kind)
	at := strings.Index(old, table)
	end := strings.Index(old[at:], ";") + 1
	made := old[at : at+end]
	column := regexp.MustCompile(`(?m)^    config_revision .*\n`).FindString(old)
	if !strings.Contains(old, index) || at < 0 || column == "" {
		t.Fatalf("%s.sql has no such parts: %q %q", kind, made, column)
	}
	old = strings.Replace(strings.Replace(old[:at]+old[at+end:], index, "", 1), column, "", 1)
	column, _, _ = strings.Cut(column, ",")
	up := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("-- +goose Up\n" + text)} }
	first, concurrently := made+"\nALTER TABLE chains ADD COLUMN "+strings.TrimSpace(column)+";\n", up(index)
	if kind == "postgres" {
		concurrently.Data = []byte("-- +goose NO TRANSACTION\n-- +goose Up\n" + strings.Replace(index, "INDEX", "INDEX CONCURRENTLY", 1))
	}
	return madeUp{old, fstest.MapFS{"00002_two_parts.sql": up(first), "00003_index.sql": concurrently}}
}

// TestExtraUpgradeMachinery upgrades a made-up release to this program's schema. A failed migration leaves
// the database unchanged. A new database has the whole schema. A program of the release refuses both.
func TestExtraUpgradeMachinery(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, url, kind string) {
		ctx, made, want, current := t.Context(), madeUpRelease(t, kind), newSchema(t, kind), schemaFile(t, kind)
		rowtest.Must(t, db.MakeRelease(ctx, url, made.schema, 1))
		before := dbtest.Schema(t, url)
		if len(before) >= len(want) {
			t.Fatalf("the release has %d parts, and this program %d", len(before), len(want))
		}
		broken := fstest.MapFS{"00002_broken.sql": {Data: append(slices.Clone(made.migrations["00002_two_parts.sql"].Data), "DROP TABLE no_such_table;\n"...)}}
		if err := db.Migrate(ctx, url, current, broken, false); err == nil || !strings.Contains(err.Error(), "no_such_table") {
			t.Errorf("a broken migration ended with %v", err)
		}
		if diff := cmp.Diff(before, dbtest.Schema(t, url)); diff != "" {
			t.Errorf("a broken migration left (-before +after):\n%s", diff)
		}
		rowtest.Must(t, db.Migrate(ctx, url, current, made.migrations, false))
		if diff := cmp.Diff(want, dbtest.Schema(t, url)); diff != "" {
			t.Errorf("the schema file (-) and the upgraded database (+) differ:\n%s", diff)
		}
		fresh := dbtest.Databases()[kind](t)
		rowtest.Must(t, db.Migrate(ctx, fresh, current, made.migrations, true))
		if diff := cmp.Diff(want, dbtest.Schema(t, fresh)); diff != "" {
			t.Errorf("the schema file (-) and a new database (+) differ:\n%s", diff)
		}
		for _, at := range []string{url, fresh} {
			rowtest.Must(t, db.Migrate(ctx, at, current, made.migrations, false)) // no migration is left
			err := db.Migrate(ctx, at, made.schema, fstest.MapFS{}, false)
			if err == nil || !strings.Contains(err.Error(), "its version is 3, and this program knows versions up to 1") {
				t.Errorf("a program of the release starts with %v", err)
			}
		}
	})
}

// TestSchemaDiffersWithoutMigration requires that a difference is found if a schema file has a part
// that no migration makes.
func TestSchemaDiffersWithoutMigration(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, url, kind string) {
		made, want := madeUpRelease(t, kind), newSchema(t, kind)
		rowtest.Must(t, db.MakeRelease(t.Context(), url, made.schema, 1))
		delete(made.migrations, "00003_index.sql")
		rowtest.Must(t, db.Migrate(t.Context(), url, schemaFile(t, kind), made.migrations, false))
		got := dbtest.Schema(t, url)
		missing := slices.DeleteFunc(slices.Clone(want), func(part string) bool { return slices.Contains(got, part) })
		if len(got) != len(want)-1 || len(missing) != 1 || !strings.Contains(missing[0], "invoices_by_address") {
			t.Errorf("missing are %q; want the index invoices_by_address", missing)
		}
	})
}

// TestCreateIsOneTransaction makes the schema of a file that fails at its end: the database stays empty, and the next
// start makes it.
func TestCreateIsOneTransaction(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, url, kind string) {
		if err := db.Migrate(t.Context(), url, schemaFile(t, kind)+"DROP TABLE no_such_table;", fs.FS(fstest.MapFS{}), true); err == nil {
			t.Fatal("a broken schema was made")
		}
		expect.Len(t, dbtest.Schema(t, url), 0, "parts are left:")
		if s := dbtest.Open(t, url); !s.Created() {
			t.Error("the next start found a database")
		}
	})
}

// TestNewerSchema checks that a schema of a newer program is refused with both versions,
// and that an open store keeps working.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, at string) {
		s := dbtest.Open(t, at)
		rowtest.Must(t, s.SetVersion(t.Context(), 9999))
		rowtest.Insert(t, s, rowtest.Sample("inv_1", "m")) // the open store works
		_, err := db.Open(t.Context(), at)
		for _, want := range []string{"9999", "newer quittance", "up to"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it opens with %v; want an error that says %q", err, want)
			}
		}
	})
}

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
	text := expect.Must(os.ReadFile(filepath.Join(last.folder, "postgres.sql")))
	tables := make(map[string]bool)
	for _, m := range createTable.FindAllStringSubmatch(normalized(string(text)), -1) {
		tables[m[1]] = true
	}
	if !tables["INVOICES"] {
		t.Fatalf("the last release has the tables %v", tables)
	}
	for _, path := range paths[last.version-1:] {
		text := expect.Must(os.ReadFile(path))
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

// TestByteOrder requires that the texts of all tables are in the order of their bytes.
func TestByteOrder(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	dbtest.Open(t, url)
	var n int
	rowtest.Must(t, dbtest.SQL(t, url).QueryRowContext(t.Context(), `SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
		WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND attnum > 0 AND NOT attisdropped
		AND attcollation = 'default'::regcollation`).Scan(&n))
	expect.Equal(t, n, 0, "columns are in the order of the database's locale:")
}

// TestColumnsOfStatesExist checks that the database has the columns that docs/states.md names.
func TestColumnsOfStatesExist(t *testing.T) {
	text := expect.Must(os.ReadFile(testdeps.Repo("docs/states.md")))
	url := dbtest.SQLite(t)
	dbtest.Open(t, url)
	conn, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	expect.OK(t, err)
	defer func() { expect.NoError(t, conn.Close()) }()
	// Tables are plural, the objects of events are not.
	named := regexp.MustCompile("`([a-z_]+s)\\.([a-z_]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 8 {
		t.Errorf("docs/states.md names %d columns", len(named))
	}
	for _, name := range named {
		var there int
		expect.OK(t, conn.QueryRowContext(t.Context(), "SELECT count(*) FROM pragma_table_info($1) WHERE name = $2", name[1], name[2]).Scan(&there))
		if there != 1 {
			t.Errorf("docs/states.md names %s.%s, which does not exist", name[1], name[2])
		}
	}
}
