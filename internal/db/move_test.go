package db_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/quittance/quittance/internal/access"
	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/invoice"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// tablesOf returns the names of a SQLite database's tables.
func tablesOf(t *testing.T, conn *dbtest.DB) []string {
	t.Helper()
	return texts(t, conn, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version' ORDER BY 1`)
}

// texts returns the only column of a query's rows.
func texts(t *testing.T, conn *dbtest.DB, query string, args ...any) (all []string) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), query, args...)
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, rows.Close()) }()
	for rows.Next() {
		var text string
		rowtest.Must(t, rows.Scan(&text))
		all = append(all, text)
	}
	rowtest.Must(t, rows.Err())
	return all
}

// dump returns the rows of a table as texts, in the order of these.
func dump(t *testing.T, conn *dbtest.DB, table string, columns []string) (all []string) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), "SELECT "+strings.Join(columns, ", ")+" FROM "+table)
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, rows.Close()) }()
	for rows.Next() {
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		rowtest.Must(t, rows.Scan(pointers...))
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				values[i] = string(b)
			}
		}
		all = append(all, fmt.Sprintf("%#v", values))
	}
	rowtest.Must(t, rows.Err())
	slices.Sort(all)
	return all
}

// move moves a SQLite database, and compares all rows.
func move(t *testing.T, from, to string) []db.MovedTable {
	t.Helper()
	was := make(map[string][]string)
	source := dbtest.SQL(t, from)
	columns := make(map[string][]string)
	for _, table := range tablesOf(t, source) {
		columns[table] = texts(t, source, "SELECT name FROM pragma_table_info($1)", table)
		was[table] = dump(t, source, table, columns[table])
	}
	reported := 0
	moved, err := db.Move(t.Context(), from, to, time.Unix(5, 0), func(db.MovedTable) { reported++ })
	rowtest.Must(t, err)
	if reported != len(was) || len(moved) != len(was) {
		t.Errorf("%d tables were reported, %d returned, of %d", reported, len(moved), len(was))
	}
	target := dbtest.SQL(t, to)
	for table, rows := range was {
		if diff := cmp.Diff(rows, dump(t, target, table, columns[table])); diff != "" {
			t.Errorf("%s (-source +target):\n%s", table, diff)
		}
	}
	return moved
}

// TestMove moves a database with all constraints. The target is used as the source was, and no service starts on the source.
func TestMove(t *testing.T) {
	t.Parallel()
	from, to := dbtest.Migrated(t), dbtest.Postgres(t)
	s := dbtest.Open(t, from)
	rowtest.Fill(t, s)
	rowtest.Must(t, webhooks.BeginFirstTimeline(t.Context(), s, "tln_1", time.Unix(1, 0)))
	rowtest.Must(t, s.Close())
	moved := move(t, from, to)
	i := slices.IndexFunc(moved, func(m db.MovedTable) bool { return m.Name == "payments" })
	if i < 0 || moved[i].Rows == 0 || len(moved[i].Amount) < 3 {
		t.Errorf("payments: %+v", moved)
	}

	target, r := dbtest.Open(t, to), noticed(t, to)
	if r.State != db.RecoveryNormal {
		t.Errorf("the target is %+v", r)
	}
	rowtest.Insert(t, target, rowtest.Sample("inv_new", "m1"))
	const rules = `SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
		UNION ALL SELECT tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1`
	if diff := cmp.Diff(texts(t, dbtest.SQL(t, dbtest.MigratedPostgres(t)), rules), texts(t, dbtest.SQL(t, to), rules)); diff != "" {
		t.Errorf("constraints and triggers (-new +target):\n%s", diff)
	}
	source := dbtest.Open(t, from)
	r, err := source.Recovery(t.Context())
	if err != nil || r.State != db.RecoveryBackup || !strings.Contains(r.Err().Error(), "quittance migrate has moved its rows") {
		t.Errorf("the source is %+v, %v", r, err)
	}
	rowtest.Must(t, source.Close())
	if _, err := db.Move(t.Context(), from, dbtest.Postgres(t), time.Unix(6, 0), nil); err == nil || !strings.Contains(err.Error(), "has moved its rows") {
		t.Errorf("a second time: %v", err)
	}
}

// TestMoveEnded ends a move at any table, and by the death of its process. No service starts on the file while the rows
// may be in the target, and the move can be repeated.
func TestMoveEnded(t *testing.T) {
	t.Parallel()
	from, to := dbtest.Migrated(t), dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, from)
	dbtest.Schedule(t, s, "shop", 0, 3, 1000)
	state := func(want string) {
		t.Helper()
		r, err := s.Recovery(t.Context())
		if rowtest.Must(t, err); r.Reason != "" && want == "" || want != "" && (r.Err() == nil || !strings.Contains(r.Err().Error(), want)) {
			t.Errorf("the file is %+v, want %q", r, want)
		}
	}
	for _, last := range []string{"acme_cache", "x402_settlements"} {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := db.Move(ctx, from, to, time.Unix(5, 0), func(m db.MovedTable) {
			if state("began to move"); m.Name == last {
				cancel()
			}
		})
		expect.Error(t, context.Canceled, "ended after %s", last)(err)
		state("")
	}
	died := func() {
		t.Helper()
		_, err := dbtest.SQL(t, from).ExecContext(t.Context(), "UPDATE recovery SET state = 'backup', reason = 'quittance migrate began to move its rows to PostgreSQL, and has not finished'")
		rowtest.Must(t, err)
	}
	died()
	expect.Success(t)(db.Move(t.Context(), from, to, time.Unix(5, 0), func(db.MovedTable) {}))
	state("used no more")
	died() // between the target's commit and the mark
	if _, err := db.Move(t.Context(), from, to, time.Unix(5, 0), func(db.MovedTable) {}); !errors.Is(err, db.ErrNotEmpty) || !strings.Contains(err.Error(), "all rows are there") {
		t.Errorf("repeated with the same target: %v", err)
	}
	state("has not finished")
}

// TestMoveEveryTable moves rows with generated values in all columns of all tables.
func TestMoveEveryTable(t *testing.T) {
	t.Parallel()
	from, to := dbtest.Migrated(t), dbtest.Postgres(t)
	rowtest.Must(t, dbtest.Open(t, from).Close())
	rowtest.Must(t, dbtest.Open(t, to).Close())
	source := dbtest.SQL(t, from)
	source.SetMaxOpenConns(1) // the settings apply to one connection
	run := func(conn *dbtest.DB, statement string, args ...any) {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	run(source, "PRAGMA foreign_keys = 0")
	for _, statement := range texts(t, source, "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'") {
		run(source, statement)
	}
	run(source, "PRAGMA writable_schema = 1")
	for _, table := range tablesOf(t, source) {
		created := texts(t, source, "SELECT sql FROM sqlite_master WHERE type = 'table' AND name = $1", table)
		run(source, "UPDATE sqlite_master SET sql = $1 WHERE type = 'table' AND name = $2", withoutChecks(created[0]), table)
	}
	run(source, "PRAGMA writable_schema = RESET")
	target := dbtest.SQL(t, to)
	for _, statement := range texts(t, target, `SELECT 'ALTER TABLE ' || conrelid::regclass || ' DROP CONSTRAINT ' || quote_ident(conname) FROM pg_constraint
		WHERE contype IN ('c', 'f') AND conparentid = 0 AND conislocal AND coninhcount = 0 AND connamespace = current_schema()::regnamespace
		UNION ALL SELECT 'DROP INDEX ' || indexrelid::regclass FROM pg_index WHERE indexprs IS NOT NULL AND indrelid::regclass::text !~ '^(pg_|information_)'`) {
		run(target, statement)
	}
	for _, table := range tablesOf(t, source) {
		columns := texts(t, source, "SELECT name FROM pragma_table_info($1)", table)
		kinds := texts(t, source, `SELECT type || CASE WHEN "notnull" OR pk > 0 THEN '' ELSE ' null' END FROM pragma_table_info($1)`, table)
		for n := range 3 {
			values, marks := make([]any, len(columns)), make([]string, len(columns))
			for i, column := range columns {
				marks[i] = fmt.Sprintf("$%d", i+1)
				values[i] = generated(column, kinds[i], n)
			}
			run(source, "INSERT INTO "+table+" ("+strings.Join(columns, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", values...)
		}
	}
	for _, m := range move(t, from, to) {
		if m.Rows < 3 {
			t.Errorf("%s has %d rows", m.Name, m.Rows)
		}
	}
}

// generated returns a value of a column of the kind, of the n-th row.
func generated(column, kind string, n int) any {
	switch base, null := strings.CutSuffix(kind, " null"); {
	case null && n == 2:
		return nil
	case column == "amount":
		return fmt.Sprintf("340282366920938463463374607431768211455%d", n)
	case base == "TEXT":
		return fmt.Sprintf("%s %d é☕ '\"\\\n\t%%", column, n)
	case base == "INTEGER":
		return int64(1_000_000 + n)
	case base == "BLOB":
		return []byte{0, 255, byte(n)}
	}
	return int64(9_007_199_254_740_993 + n)
}

var comment = regexp.MustCompile(`--[^\n]*`)

// withoutChecks makes every CHECK constraint of a table's definition one that is true.
func withoutChecks(created string) string {
	const check = "CHECK ("
	parts := strings.Split(comment.ReplaceAllString(created, ""), check)
	for i, part := range parts[1:] {
		depth, end := 1, 0
		for ; depth > 0; end++ {
			depth += strings.Count(part[end:end+1], "(") - strings.Count(part[end:end+1], ")")
		}
		parts[i+1] = "1)" + part[end:]
	}
	return strings.Join(parts, check)
}

// TestMoveRefuses moves from and to unsuitable databases. The target stays empty.
func TestMoveRefuses(t *testing.T) {
	t.Parallel()
	from, used := dbtest.Migrated(t), dbtest.MigratedPostgres(t)
	s := dbtest.Open(t, from)
	dbtest.Schedule(t, s, "shop", 0, 3, 1000)
	dbtest.Schedule(t, dbtest.Open(t, used), "shop", 0, 1, 1000)
	empty := dbtest.MigratedPostgres(t)
	target := dbtest.Open(t, empty)
	for name, test := range map[string]struct{ from, to, want string }{
		"from PostgreSQL": {used, empty, "no SQLite file"},
		"to SQLite":       {from, from, "want postgres://"},
		"no file":         {"sqlite:/nowhere/q.db", empty, "no such file"},
		"used":            {from, used, "is not empty"},
	} {
		if _, err := db.Move(t.Context(), test.from, test.to, time.Unix(1, 0), nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	unlock, err := db.LockService(from)
	rowtest.Must(t, err)
	if _, err := db.Move(t.Context(), from, empty, time.Unix(1, 0), nil); err == nil || !strings.Contains(err.Error(), "in use by another quittance") {
		t.Errorf("while a service runs: %v", err)
	}
	rowtest.Must(t, unlock())

	// A row that breaks a rule of the target.
	conn := dbtest.SQL(t, from)
	conn.SetMaxOpenConns(1)
	for _, statement := range []string{"PRAGMA foreign_keys = 0", "UPDATE events SET invoice_id = 'nothing'"} {
		expect.Success(t)(conn.ExecContext(t.Context(), statement))
	}
	_, err = db.Move(t.Context(), from, empty, time.Unix(1, 0), func(db.MovedTable) {})
	if err == nil || !strings.Contains(err.Error(), "foreign key") {
		t.Errorf("with a row that refers to nothing: %v", err)
	}
	if seq, err := webhooks.NewReader(target).LastSeq(t.Context()); seq != 0 || err != nil {
		t.Errorf("the target has events to %d, %v", seq, err)
	}
	if r, err := s.Recovery(t.Context()); err != nil || r.State != db.RecoveryNormal || errors.Is(err, db.ErrNotFound) {
		t.Errorf("the source is %+v, %v", r, err)
	}
}

// TestRenamedChainOfHolder renames a chain in a merchant's stored addresses. The renamed configuration
// has the same addresses, so the merchant still counts as the same company.
func TestRenamedChainOfHolder(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		address := invoice.Address{1}
		was := access.MerchantHolder{MerchantID: "shop", Allowed: []invoice.AllowedAddress{{ChainKey: "base", Address: address}, {ChainKey: "other", Address: address}}, Since: time.Unix(1, 0)}
		rowtest.Must(t, s.Update(t.Context(), func(tx *db.Tx) error {
			if err := access.PutMerchantHolder(t.Context(), tx, was); err != nil {
				return err
			}
			return tx.RenameChain(t.Context(), "base", "base-mainnet")
		}))
		is, err := access.FindMerchantHolder(t.Context(), s, "shop")
		rowtest.Must(t, err)
		if want := []invoice.AllowedAddress{{ChainKey: "base-mainnet", Address: address}, {ChainKey: "other", Address: address}}; !slices.Equal(is.Allowed, want) {
			t.Errorf("the merchant held %v, want %v", is.Allowed, want)
		}
	})
}
