package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
)

// loadCache is how many KB of pages a load keeps: the pages of the keys, which have a random order.
const loadCache = 512_000

// load inserts each Loaded in a transaction, without syncs, into tables without the indexes that
// can be dropped. It creates these at the end.
func (db *sqliteDB) load(ctx context.Context, s *DB, tables []string, rows iter.Seq2[Loaded, error], report func(LoadProgress)) (err error) {
	if err := s.checkEmpty(ctx); err != nil {
		return err
	}
	file, err := sql.Open("sqlite", sqliteDSN(db.path, loadCache, "_pragma=query_only(0)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	file.SetMaxOpenConns(1) // settings apply to one connection
	indexes, err := s.droppableIndexes(ctx, tables)
	if err != nil {
		return err
	}
	statements := []string{"PRAGMA synchronous = OFF"}
	for _, d := range indexes {
		statements = append(statements, d.drop())
	}
	if err := execAll(ctx, file, statements); err != nil {
		return err
	}
	if err := insertAll(ctx, file, rows, report); err != nil {
		return err
	}
	for i, d := range indexes {
		if err := execAll(ctx, file, []string{d.create()}); err != nil {
			return err
		}
		report(LoadProgress{LoadIndexes, i + 1, len(indexes)})
	}
	return execAll(ctx, file, []string{"PRAGMA synchronous = FULL", "PRAGMA wal_checkpoint(TRUNCATE)"}) // which syncs the file
}

// droppableIndexes returns the indexes of tables that are not a part of their tables' definitions.
func (q *Queries) droppableIndexes(ctx context.Context, tables []string) ([]definition, error) {
	return QueryAll(ctx, q, func(row Scanner) (definition, error) {
		d := definition{kind: "index"}
		err := row.Scan(&d.table, &d.name, &d.text)
		return d, err
	}, "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN "+
		ParameterList(0, len(tables))+" ORDER BY tbl_name, name", ToAny(tables)...)
}

func execAll(ctx context.Context, file *sql.DB, statements []string) error {
	for _, s := range statements {
		if _, err := file.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// insertAll inserts each Loaded in a transaction.
func insertAll(ctx context.Context, file *sql.DB, rows iter.Seq2[Loaded, error], report func(LoadProgress)) (err error) {
	conn, err := file.Conn(ctx)
	if err != nil {
		return err
	}
	writer := startGroupWriter(conn)
	defer func() { err = errors.Join(err, writer.stop()) }()
	p := LoadProgress{Step: LoadInvoices}
	for r, err := range rows {
		if err != nil {
			return err
		}
		if err := writer.do(ctx, func(tx *Tx) error { return tx.insertTables(ctx, r.Tables) }); err != nil {
			return err
		}
		p.Done += r.Count
		report(p)
	}
	return nil
}
