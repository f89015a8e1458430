package db

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

	"github.com/quittance/quittance/internal/invoice"
)

// MovedTable is a table with rows that Move has copied and compared.
type MovedTable struct {
	Name   string
	Rows   int64
	Amount string // sum of the column amount in minor units, over all tokens; empty without that column
}

// ErrNotEmpty is returned by Move for a target that has rows.
var ErrNotEmpty = errors.New("the database is not empty; name a fresh one")

// Move copies a SQLite database into an empty PostgreSQL database, in one transaction. It compares
// every table by its number of rows, a hash of all rows, and the sum of the column amount, before it
// commits. The file is marked before the copy, so that no service starts on it next to the target,
// however the copy ends. Until Move returns, no service can use the file, and no command can write to
// it. After an error the target is as empty as before and the file is not marked, unless the error
// reports otherwise. report, which is not nil, is called for each table.
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
	found, empty, err := prepareMove(ctx, from)
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
	if err := setMoveState(ctx, db, Recovery{State: RecoveryBackup, Reason: movingReason, Since: now}); err != nil {
		return nil, fmt.Errorf("mark %s: %w", path, err)
	}
	moved, err = moveMarked(ctx, db, target, mover{was: found.beforeMove(), empty: empty}, now, report)
	if err == nil || errors.Is(err, errMaybeMoved) {
		return moved, err
	}
	if found.IsMoved() && errors.Is(err, ErrNotEmpty) {
		err = fmt.Errorf("an earlier run was ended; if this was its target, all rows are there: set database in the configuration to it. %w", err)
	}
	return nil, errors.Join(err, setMoveState(context.WithoutCancel(ctx), db, found))
}

// errMaybeMoved is part of an error after which the rows are, or may be, in the target. The file stays
// marked.
var errMaybeMoved = errors.New("the file stays marked")

// moveMarked copies all rows of a marked file, and marks it as moved.
func moveMarked(ctx context.Context, db *sql.DB, target *DB, m mover, now time.Time, report func(MovedTable)) (moved []MovedTable, err error) {
	if m.from, err = db.BeginTx(ctx, nil); err != nil {
		return nil, fmt.Errorf("lock the file: %w", err)
	}
	p, ok := target.dialect.(*postgresDB)
	if !ok {
		return nil, errors.Join(errors.New("the target is no PostgreSQL database"), m.from.Rollback())
	}
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s: %w", address(p.config), err), m.from.Rollback())
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if moved, err = m.commit(ctx, conn, report); err != nil {
		return nil, errors.Join(err, m.from.Rollback())
	}
	err = setMoveState(ctx, m.from, Recovery{State: RecoveryBackup, Reason: movedReason, Since: now})
	if err = errors.Join(err, m.from.Commit()); err != nil {
		return moved, fmt.Errorf("everything was moved, set database in the configuration to the target; %w: %w", errMaybeMoved, err)
	}
	if _, err := conn.Exec(ctx, "ANALYZE"); err != nil {
		return moved, fmt.Errorf("everything was moved, set database in the configuration to the target. "+
			"Counting its rows for the planner failed; run ANALYZE there; %w: %w", errMaybeMoved, err)
	}
	return moved, nil
}

// commit copies all tables in a transaction of the target.
func (m *mover) commit(ctx context.Context, conn *pgx.Conn, report func(MovedTable)) (moved []MovedTable, err error) {
	if m.to, err = conn.Begin(ctx); err != nil {
		return nil, err
	}
	if moved, err = m.run(ctx, report); err != nil {
		return nil, errors.Join(err, m.to.Rollback(context.WithoutCancel(ctx)))
	}
	if err = m.to.Commit(ctx); err != nil {
		return nil, fmt.Errorf("it is not known whether the target has the rows; run this again, it is complete if it is not empty; %w: %w", errMaybeMoved, err)
	}
	return moved, nil
}

// setMoveState sets the state of the file.
func setMoveState(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, r Recovery,
) error {
	_, err := db.ExecContext(ctx, "UPDATE recovery SET state = $1, reason = $2, since = $3 WHERE id = 1", string(r.State), r.Reason, invoice.UnixSeconds(r.Since))
	return err
}

// prepareMove checks the source and brings its schema up to date. It returns its state, and how many rows the tables of an
// empty database have. A move that was broken off can be repeated.
func prepareMove(ctx context.Context, from string) (found Recovery, empty map[string]int64, err error) {
	s, err := Open(ctx, from)
	if err != nil {
		return found, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if found, err = s.Recovery(ctx); err == nil {
		err = found.beforeMove().Err()
	}
	if err == nil {
		_, err = s.CheckIntact(ctx)
	}
	if err == nil {
		empty, err = rowsOfEmpty(ctx)
	}
	return found, empty, err
}

// beforeMove returns the state before a move that has not finished, or else the state itself.
func (r Recovery) beforeMove() Recovery {
	if r.Reason == movingReason {
		return Recovery{State: RecoveryNormal, Since: r.Since}
	}
	return r
}

// rowsOfEmpty returns how many rows the tables of an empty database have.
func rowsOfEmpty(ctx context.Context) (empty map[string]int64, err error) {
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
	tables, err := QueryAll(ctx, fresh, ScanID, sqliteTables)
	empty = make(map[string]int64)
	for _, table := range tables {
		n, err := QueryRow(ctx, fresh, ScanSeq, "SELECT count(*) FROM "+table)
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
	postgresTables = `SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
		AND relname <> 'goose_db_version' ORDER BY 1`
	sqliteColumns   = "SELECT name FROM pragma_table_info($1) ORDER BY 1"
	postgresColumns = "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY 1"
	foreignKeys     = `SELECT conrelid::regclass::text, quote_ident(conname), pg_get_constraintdef(oid) FROM pg_constraint
		WHERE contype = 'f' AND connamespace = current_schema()::regnamespace ORDER BY 1, 2`
)

// mover copies tables.
type mover struct {
	from  *sql.Tx
	to    pgx.Tx
	was   Recovery         // of the source, before it was marked
	empty map[string]int64 // rows of the tables of an empty database
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
	// The target is not marked. The identity of the cluster is recorded by the first start on it.
	_, err = m.to.Exec(ctx, `UPDATE recovery SET state = $1, reason = $2, since = $3, cluster = NULL, database_oid = NULL, wal_timeline = NULL, wal_position = NULL
		WHERE id = 1`, string(m.was.State), m.was.Reason, invoice.UnixSeconds(m.was.Since))
	if err != nil {
		return nil, err
	}
	for _, key := range keys { // which checks the rows
		if _, err := m.to.Exec(ctx, "ALTER TABLE "+key.table+" ADD CONSTRAINT "+key.name+" "+key.text); err != nil {
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

// moveSettings are the settings of the transaction that fills the target. A service that uses the database holds locks
// on its tables; the move does not wait for it.
var moveSettings = []string{"statement_timeout = 0", "idle_in_transaction_session_timeout = 0", "lock_timeout = 5000", "maintenance_work_mem = '512MB'", "jit = off"}

// prepare locks the tables of the target and returns their names. It fails if they have more rows than a new database.
func (m *mover) prepare(ctx context.Context) ([]string, error) {
	for _, setting := range moveSettings {
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

// foreignKey is a constraint and its definition.
type foreignKey struct{ table, name, text string }

// unlink drops the foreign keys, which it returns, disables the triggers, and empties the tables.
func (m *mover) unlink(ctx context.Context, tables []string) ([]foreignKey, error) {
	rows, err := m.to.Query(ctx, foreignKeys)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k foreignKey, err error) {
		err = row.Scan(&k.table, &k.name, &k.text)
		return k, err
	})
	if err != nil {
		return nil, err
	}
	var statements []string
	for _, key := range keys {
		statements = append(statements, "ALTER TABLE "+key.table+" DROP CONSTRAINT "+key.name)
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
