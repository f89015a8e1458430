package db

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// ErrNotEmpty is returned by Load for a database that a service has used.
var ErrNotEmpty = errors.New("the database is not empty; name a fresh one")

// Loaded are rows of some tables. A row comes after the rows that it refers to.
type Loaded struct {
	Tables []TableRows
	Count  int // of the rows that LoadProgress counts
}

// LoadProgress is how far Load has come in one of its steps.
type LoadProgress struct {
	Step LoadStep
	Done int
	Of   int // 0 while it is not known
}

// LoadStep is what Load does.
type LoadStep string

// The steps of Load, in their order. SQLite does not have the last.
const (
	LoadInvoices LoadStep = "write invoices"
	LoadIndexes  LoadStep = "create indexes and constraints"
	LoadAnalyze  LoadStep = "count rows for the planner"
)

// Load fills the tables of an empty database. It returns ErrNotEmpty if a service has used the
// database. On PostgreSQL one transaction writes all rows, so that a load that fails leaves no rows;
// on SQLite each Rows are a transaction, and a load that fails leaves a database without its indexes.
func (s *DB) Load(ctx context.Context, tables []string, rows iter.Seq2[Loaded, error], report func(LoadProgress)) error {
	if err := s.dialect.load(ctx, s, tables, rows, report); err != nil {
		return fmt.Errorf("fill the database: %w", err)
	}
	return nil
}

func (tx *Tx) insertTables(ctx context.Context, tables []TableRows) error {
	for _, t := range tables {
		if err := tx.Insert(ctx, t.Insertion, t.Rows); err != nil {
			return err
		}
	}
	return nil
}

// usedTables have rows once a service has used the database.
var usedTables = []string{"merchants", "chains", "invoices", "events", "deliverers"}

// checkEmpty returns ErrNotEmpty if one of usedTables has a row.
func (q *Queries) checkEmpty(ctx context.Context) error {
	for _, table := range usedTables {
		switch _, err := QueryRow(ctx, q, ScanCount, "SELECT 1 FROM "+table+" LIMIT 1"); {
		case err == nil:
			return fmt.Errorf("%w: it has %s", ErrNotEmpty, table)
		case !errors.Is(err, ErrNotFound):
			return err
		}
	}
	return nil
}

// TableRows are rows of a table.
type TableRows struct {
	Insertion
	Rows [][]any
}
