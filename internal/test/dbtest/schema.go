package dbtest

import (
	"database/sql"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Schema returns what makes up the schema of a database, one part a line: tables, columns, defaults, constraints,
// indexes, triggers, functions and storage parameters. It leaves out the order of columns, the names of constraints,
// since an upgraded database may have others than a new one, and goose's own table.
func Schema(tb testing.TB, url string) []string {
	tb.Helper()
	conn := SQL(tb, url)
	if strings.HasPrefix(url, "sqlite:") {
		return sqliteParts(tb, conn)
	}
	parts := rows(tb, conn, func(row *sql.Rows) (part string, err error) {
		err = row.Scan(&part)
		return part, err
	}, postgresParts)
	slices.Sort(parts)
	return parts
}

// postgresParts selects the parts of the schema that the search_path leads to.
const postgresParts = `
WITH tables AS (
	SELECT oid, relname, relkind, reloptions FROM pg_class WHERE relnamespace = current_schema()::regnamespace
	AND relkind IN ('r', 'p', 'v', 'm', 'S') AND relname NOT LIKE 'goose\_%'
)
SELECT format('relation %s kind %s options %s partitioned by %s', relname, relkind,
	(SELECT string_agg(option, ' ' ORDER BY option) FROM unnest(reloptions) AS option), pg_get_partkeydef(oid)) FROM tables
UNION ALL
SELECT format('column %s.%s %s collation %s not null %s default %s options %s', relname, attname, format_type(atttypid, atttypmod),
	nullif(attcollation, 0)::regcollation, attnotnull, pg_get_expr(adbin, adrelid), attoptions)
	FROM tables JOIN pg_attribute ON attrelid = tables.oid AND attnum > 0 AND NOT attisdropped
	LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE relkind <> 'S'
UNION ALL
SELECT format('constraint of %s: %s, valid %s', relname, pg_get_constraintdef(pg_constraint.oid), convalidated)
	FROM tables JOIN pg_constraint ON conrelid = tables.oid
UNION ALL
SELECT format('index %s, valid %s', pg_get_indexdef(indexrelid), indisvalid) FROM tables JOIN pg_index ON indrelid = tables.oid
UNION ALL
SELECT 'trigger ' || pg_get_triggerdef(pg_trigger.oid) FROM tables JOIN pg_trigger ON tgrelid = tables.oid WHERE NOT tgisinternal
UNION ALL
SELECT 'function ' || pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace`

// sqliteParts returns the parts of the statements that made the schema. ALTER TABLE adds columns to them.
func sqliteParts(tb testing.TB, conn *DB) (parts []string) {
	tb.Helper()
	type object struct{ kind, name, text string }
	for _, o := range rows(tb, conn, func(row *sql.Rows) (o object, err error) {
		err = row.Scan(&o.kind, &o.name, &o.text)
		return o, err
	}, `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'goose\_%' ESCAPE '\'`) {
		text := plainSQL(o.text)
		if o.kind != "table" {
			parts = append(parts, text)
			continue
		}
		open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		for _, part := range splitSQL(text[open+1 : end]) {
			parts = append(parts, o.name+" "+part)
		}
		parts = append(parts, o.name+" options"+text[end+1:])
	}
	slices.Sort(parts)
	return parts
}

var (
	sqlComment = regexp.MustCompile(`--[^\n]*`)
	sqlSpace   = regexp.MustCompile(`\s+`)
	inBrackets = strings.NewReplacer("( ", "(", " )", ")")
)

// plainSQL removes comments and needless spaces.
func plainSQL(text string) string {
	return strings.TrimSpace(inBrackets.Replace(sqlSpace.ReplaceAllString(sqlComment.ReplaceAllString(text, ""), " ")))
}

// splitSQL splits at the commas outside brackets and texts.
func splitSQL(text string) (parts []string) {
	depth, quoted, from := 0, false, 0
	for i, c := range text {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	return append(parts, strings.TrimSpace(text[from:]))
}
