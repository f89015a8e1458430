package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// MovedTable is a table whose rows Move has copied and compared.
type MovedTable struct {
	Name   string
	Rows   int64
	Amount string // sum of its column amount in minor units, of all tokens together; empty without that column
}

// Move copies a SQLite database into an empty PostgreSQL database, in one transaction. It compares every table by
// its number of rows, a hash of all rows, and the sum of the column amount, before it commits, and then marks the file, on
// which no service starts any more. Until it returns, no service can use the file, and no command can write to it. After an error the target
// is as empty as before, and the file is not marked. report, which is not nil, is called for each table.
func Move(ctx context.Context, from, to string, now time.Time, report func(MovedTable)) (moved []MovedTable, err error) {
	path, ok := strings.CutPrefix(from, "sqlite:")
	if !ok {
		return nil, errors.New("the configuration's database is no SQLite file, so there is nothing to move")
	}
	if !strings.HasPrefix(to, "postgres://") && !strings.HasPrefix(to, "postgresql://") {
		return nil, fmt.Errorf("the target is %q; want postgres://…", redact(to))
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("find the database: %w", err)
	}
	unlock, err := LockService(from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	empty, err := prepareMove(ctx, from)
	if err != nil {
		return nil, err
	}
	target, err := Open(ctx, to)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	if err := target.CheckWritable(ctx); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", sqliteDSN(path, SQLiteReaderCache, "_txlock=immediate")) // which keeps others from writing
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	source, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	moved, err = moveTo(ctx, source, target, empty, report)
	if err != nil {
		return nil, errors.Join(err, source.Rollback())
	}
	_, err = source.ExecContext(ctx, "UPDATE recovery SET state = 'backup', reason = $1, since = $2 WHERE id = 1",
		"quittance migrate has moved its rows to PostgreSQL; set database in the configuration to that", now.Unix())
	if err = errors.Join(err, source.Commit()); err != nil {
		err = fmt.Errorf("everything was moved, but %s is not marked as moved; use it no more: %w", path, err)
	}
	return moved, err
}

// prepareMove checks the source and brings its schema up to date. It returns how many rows the tables of an empty database have.
func prepareMove(ctx context.Context, from string) (empty map[string]int64, err error) {
	s, err := Open(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r, err := s.Recovery(ctx)
	if err == nil {
		err = r.Err()
	}
	if err == nil {
		_, err = s.CheckIntact(ctx)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "quittance-migrate-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fresh, err := Open(ctx, "sqlite:"+dir+"/empty.db")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	tables, err := queryAll(ctx, &fresh.queries, scanID, sqliteTables)
	empty = make(map[string]int64)
	for _, table := range tables {
		n, err := queryRow(ctx, &fresh.queries, scanSeq, "SELECT count(*) FROM "+table)
		if err != nil {
			return nil, err
		}
		empty[table] = n
	}
	return empty, err
}

const (
	// sqliteTables and postgresTables select the names of all tables with rows of ours.
	sqliteTables   = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version' ORDER BY 1`
	postgresTables = `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
		AND relname <> 'goose_db_version' ORDER BY 1`
	sqliteColumns   = "SELECT name FROM pragma_table_info($1) ORDER BY 1"
	postgresColumns = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY 1"
	foreignKeys     = `SELECT conrelid::regclass::text, quote_ident(conname), 'foreign key', pg_get_constraintdef(oid) FROM pg_constraint
		WHERE contype = 'f' AND conparentid = 0 AND connamespace = current_schema()::regnamespace ORDER BY 1, 2`
)

// mover copies tables.
type mover struct {
	from  *sql.Tx
	to    pgx.Tx
	empty map[string]int64 // rows of the tables of an empty database
}

// moveTo copies all tables in a transaction of the target.
func moveTo(ctx context.Context, source *sql.Tx, target *Store, empty map[string]int64, report func(MovedTable)) (moved []MovedTable, err error) {
	p, ok := target.dialect.(*postgresDB)
	if !ok {
		return nil, errors.New("the target is no PostgreSQL database")
	}
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address(p.config), err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		m := mover{source, tx, empty}
		moved, err = m.run(ctx, report)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "ANALYZE"); err != nil {
		return nil, fmt.Errorf("count the rows for the planner: %w", err)
	}
	return moved, nil
}

func (m *mover) run(ctx context.Context, report func(MovedTable)) (moved []MovedTable, err error) {
	tables, err := m.prepare(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := m.unlink(ctx, tables)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		done, err := m.move(ctx, table)
		if err != nil {
			return nil, fmt.Errorf("move the table %s: %w", table, err)
		}
		report(done)
		moved = append(moved, done)
	}
	// The identity of the cluster is recorded by the first start on it.
	_, err = m.to.Exec(ctx, "UPDATE recovery SET cluster = NULL, database_oid = NULL, wal_timeline = NULL, wal_position = NULL WHERE id = 1")
	if err != nil {
		return nil, err
	}
	for _, key := range keys { // which checks the rows
		if _, err := m.to.Exec(ctx, key.create()); err != nil {
			return nil, fmt.Errorf("create the foreign key %s: %w", key.name, err)
		}
	}
	for _, table := range tables {
		if _, err := m.to.Exec(ctx, "ALTER TABLE "+table+" ENABLE TRIGGER USER"); err != nil {
			return nil, fmt.Errorf("enable the triggers of %s: %w", table, err)
		}
	}
	return moved, nil
}

// prepare locks the tables of the target and returns their names. It fails if they have more rows than a new database.
func (m *mover) prepare(ctx context.Context) ([]string, error) {
	for _, setting := range loadSettings {
		if _, err := m.to.Exec(ctx, "SET LOCAL "+setting); err != nil {
			return nil, err
		}
	}
	tables, err := m.postgresNames(ctx, postgresTables)
	if err != nil {
		return nil, err
	}
	if _, err := m.to.Exec(ctx, "LOCK TABLE "+strings.Join(tables, ", ")+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return nil, fmt.Errorf("lock the tables; does a service use the target? %w", err)
	}
	sources, err := m.sqliteNames(ctx, sqliteTables)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(sources, tables) {
		return nil, fmt.Errorf("the databases have other tables: %v and %v", sources, tables)
	}
	for _, table := range tables {
		var n int64
		if err := m.to.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
			return nil, err
		}
		if n != m.empty[table] {
			return nil, fmt.Errorf("%w: its table %s has %d rows", ErrNotEmpty, table, n)
		}
	}
	return tables, nil
}

// unlink drops the foreign keys, which it returns, disables the triggers, and empties the tables.
func (m *mover) unlink(ctx context.Context, tables []string) ([]definition, error) {
	rows, err := m.to.Query(ctx, foreignKeys)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d definition, err error) {
		err = row.Scan(&d.table, &d.name, &d.kind, &d.text)
		return d, err
	})
	if err != nil {
		return nil, err
	}
	var statements []string
	for _, key := range keys {
		statements = append(statements, key.drop())
	}
	for _, table := range tables {
		statements = append(statements, "ALTER TABLE "+table+" DISABLE TRIGGER USER")
	}
	for _, statement := range append(statements, "TRUNCATE "+strings.Join(tables, ", ")) {
		if _, err := m.to.Exec(ctx, statement); err != nil {
			return nil, fmt.Errorf("prepare the target: %s: %w", statement, err)
		}
	}
	return keys, nil
}

// move copies the rows of a table, reads them back, and compares them.
func (m *mover) move(ctx context.Context, table string) (MovedTable, error) {
	columns, err := m.sqliteNames(ctx, sqliteColumns, table)
	if err != nil {
		return MovedTable{}, err
	}
	others, err := m.postgresNames(ctx, postgresColumns, table)
	if err != nil {
		return MovedTable{}, err
	}
	if !slices.Equal(columns, others) {
		return MovedTable{}, fmt.Errorf("the databases have other columns: %v and %v", columns, others)
	}
	selected := "SELECT " + strings.Join(columns, ", ") + " FROM " + table // names of the catalog
	read, err := m.copy(ctx, table, columns, selected)
	if err != nil {
		return MovedTable{}, err
	}
	written := newTally(columns)
	back, err := m.to.Query(ctx, selected)
	if err != nil {
		return MovedTable{}, err
	}
	defer back.Close()
	for back.Next() {
		values, err := back.Values()
		if err != nil {
			return MovedTable{}, err
		}
		written.add(values)
	}
	if err := back.Err(); err != nil {
		return MovedTable{}, err
	}
	if !read.equal(written) {
		return MovedTable{}, fmt.Errorf("%s were read, and %s are in the target", read, written)
	}
	return MovedTable{Name: table, Rows: read.rows, Amount: read.amount()}, nil
}

// copy copies the rows of a table, and returns their tally.
func (m *mover) copy(ctx context.Context, table string, columns []string, selected string) (read *tally, err error) {
	rows, err := m.from.QueryContext(ctx, selected)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Err(), rows.Close()) }()
	read = newTally(columns)
	_, err = m.to.CopyFrom(ctx, pgx.Identifier{table}, columns, &sourceRows{rows: rows, width: len(columns), tally: read})
	return read, err
}

// sqliteNames returns the names that a query of the source selects.
func (m *mover) sqliteNames(ctx context.Context, query string, args ...any) (names []string, err error) {
	rows, err := m.from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, rows.Err()
}

// postgresNames returns the names that a query of the target selects.
func (m *mover) postgresNames(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := m.to.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	slices.Sort(names)
	return names, err
}

// sourceRows gives the rows of a SQLite table to COPY.
type sourceRows struct {
	rows  *sql.Rows
	width int
	tally *tally
	now   []any
	err   error
}

// Next implements pgx.CopyFromSource.
func (s *sourceRows) Next() bool {
	if s.err != nil || !s.rows.Next() {
		return false
	}
	s.now = make([]any, s.width)
	pointers := make([]any, s.width)
	for i := range s.now {
		pointers[i] = &s.now[i]
	}
	if s.err = s.rows.Scan(pointers...); s.err == nil {
		s.tally.add(s.now)
	}
	return s.err == nil
}

// Values implements pgx.CopyFromSource.
func (s *sourceRows) Values() ([]any, error) { return s.now, nil }

// Err implements pgx.CopyFromSource.
func (s *sourceRows) Err() error { return errors.Join(s.err, s.rows.Err()) }
