package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// loadSettings are the settings of the transaction that fills a database. A service that uses the
// database holds locks on its tables; the load does not wait for it.
var loadSettings = []string{"statement_timeout = 0", "idle_in_transaction_session_timeout = 0", "lock_timeout = 5000", "maintenance_work_mem = '512MB'", "jit = off"}

// load writes all rows in one transaction, by COPY into tables without indexes and foreign
// keys, which it creates again at the end.
func (p *postgresDB) load(ctx context.Context, _ *DB, tables []string, rows iter.Seq2[Loaded, error], report func(LoadProgress)) (err error) {
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address(p.config), err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		l := loader{tx: tx, tables: tables, report: report}
		return l.run(ctx, rows)
	})
	if err != nil {
		return err
	}
	report(LoadProgress{Step: LoadAnalyze})
	_, err = conn.Exec(ctx, "ANALYZE "+strings.Join(tables, ", "))
	return err
}

// loader fills the tables in a transaction.
type loader struct {
	tx     pgx.Tx
	report func(LoadProgress)
	count  int
	tables []string // to fill
}

func (l *loader) run(ctx context.Context, rows iter.Seq2[Loaded, error]) error {
	if err := l.lock(ctx); err != nil {
		return err
	}
	before, err := l.definitions(ctx)
	if err != nil {
		return err
	}
	for _, d := range before {
		if _, err := l.tx.Exec(ctx, d.drop()); err != nil {
			return fmt.Errorf("drop %s %s: %w", d.kind, d.name, err)
		}
	}
	// COPY with FREEZE, which saves a VACUUM, requires tables that are truncated in its transaction.
	if _, err := l.tx.Exec(ctx, "TRUNCATE "+strings.Join(l.tables, ", ")); err != nil {
		return err
	}
	if err := l.copyAll(ctx, rows); err != nil {
		return err
	}
	if err := l.create(ctx, before); err != nil {
		return err
	}
	after, err := l.definitions(ctx)
	if err == nil && !slices.Equal(before, after) {
		err = errors.New("the indexes and constraints are not those of before")
	}
	return err
}

// lock keeps services out until the transaction ends, and returns ErrNotEmpty if one has used
// the database.
func (l *loader) lock(ctx context.Context) error {
	for _, setting := range loadSettings {
		if _, err := l.tx.Exec(ctx, "SET LOCAL "+setting); err != nil {
			return err
		}
	}
	if _, err := l.tx.Exec(ctx, "LOCK TABLE "+strings.Join(append(slices.Clone(l.tables), "deliverers"), ", ")+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		return fmt.Errorf("lock the tables; does a service use the database? %w", err)
	}
	for _, table := range append(slices.Clone(usedTables), l.tables...) {
		var used bool
		if err := l.tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+table+")").Scan(&used); err != nil {
			return err
		}
		if used {
			return fmt.Errorf("%w: it has %s", ErrNotEmpty, table)
		}
	}
	return nil
}

// definition is the definition of an index, or of a constraint.
type definition struct{ table, name, kind, text string }

func (d definition) drop() string {
	if d.kind == "index" {
		return "DROP INDEX " + d.name
	}
	return "ALTER TABLE " + d.table + " DROP CONSTRAINT " + d.name
}

func (d definition) create() string {
	if d.kind == "index" {
		return d.text
	}
	return "ALTER TABLE " + d.table + " ADD CONSTRAINT " + d.name + " " + d.text
}

// definitions returns the foreign keys of the tables and to them, and their keys and other indexes, in the order in
// which they can be dropped.
func (l *loader) definitions(ctx context.Context) ([]definition, error) {
	rows, err := l.tx.Query(ctx, `SELECT * FROM (SELECT conrelid::regclass::text AS tbl, quote_ident(conname) AS name, CASE contype WHEN 'f' THEN 'foreign key' ELSE 'key' END AS kind, pg_get_constraintdef(oid) AS text
		FROM pg_constraint WHERE contype IN ('f', 'p', 'u') AND (conrelid = ANY ($1::text[]::regclass[]) OR confrelid = ANY ($1::text[]::regclass[]))
		UNION ALL SELECT indrelid::regclass::text, indexrelid::regclass::text, 'index', pg_get_indexdef(indexrelid)
		FROM pg_index WHERE indrelid = ANY ($1::text[]::regclass[]) AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid AND contype IN ('p', 'u'))) AS found
		ORDER BY kind = 'foreign key' DESC, tbl, name`, l.tables)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d definition, err error) {
		err = row.Scan(&d.table, &d.name, &d.kind, &d.text)
		return d, err
	})
}

// create creates the dropped indexes and constraints again, in reverse order.
func (l *loader) create(ctx context.Context, dropped []definition) error {
	for i, d := range slices.Backward(dropped) {
		if _, err := l.tx.Exec(ctx, d.create()); err != nil {
			return fmt.Errorf("create %s %s: %w", d.kind, d.name, err)
		}
		l.report(LoadProgress{LoadIndexes, len(dropped) - i, len(dropped)})
	}
	return nil
}

// copied is the input of COPY for some Loaded.
type copied struct {
	count  int
	tables []copiedTable
}

type copiedTable struct {
	Insertion
	text []byte
}

// copyAll copies all rows. It encodes rows while it sends the ones before.
func (l *loader) copyAll(ctx context.Context, rows iter.Seq2[Loaded, error]) error {
	group, ctx := errgroup.WithContext(ctx)
	encoded := make(chan copied, 1)
	group.Go(func() error {
		defer close(encoded)
		for r, err := range rows {
			if err != nil {
				return err
			}
			select {
			case encoded <- encode(r):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	group.Go(func() error {
		for c := range encoded {
			if err := l.copy(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

func (l *loader) copy(ctx context.Context, c copied) error {
	for _, t := range c.tables {
		names, _ := splitTypes(t.Columns)
		_, err := l.tx.Conn().PgConn().CopyFrom(ctx, bytes.NewReader(t.text), "COPY "+t.Table+" ("+strings.Join(names, ", ")+") FROM STDIN (FREEZE)")
		if err != nil {
			return fmt.Errorf("copy rows into %s: %w", t.Table, err)
		}
	}
	l.count += c.count
	l.report(LoadProgress{Step: LoadInvoices, Done: l.count})
	return nil
}

// encode returns rows in the text format of COPY.
func encode(r Loaded) copied {
	c := copied{count: r.Count}
	for _, t := range r.Tables {
		if len(t.Rows) == 0 {
			continue
		}
		var text []byte
		for _, row := range t.Rows {
			for i, v := range row {
				if i > 0 {
					text = append(text, '\t')
				}
				text = appendCopied(text, v)
			}
			text = append(text, '\n')
		}
		c.tables = append(c.tables, copiedTable{t.Insertion, text})
	}
	return c
}

var copyEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)

// appendCopied appends a value in the text format of COPY.
func appendCopied(text []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(text, `\N`...)
	case int64:
		return strconv.AppendInt(text, v, 10)
	case int:
		return strconv.AppendInt(text, int64(v), 10)
	case string:
		if strings.ContainsAny(v, "\\\t\n\r") {
			v = copyEscapes.Replace(v)
		}
		return append(text, v...)
	}
	return append(text, copyEscapes.Replace(fmt.Sprint(v))...)
}
