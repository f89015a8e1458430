package db

import "context"

// Recorded returns a store for reads that reports its statements.
func Recorded(s *DB, report func(query string, args []any)) *DB {
	return &DB{Queries: Queries{run: recorder{s.run, report}, postgres: s.postgres}, dialect: s.dialect}
}

// RecordedTx returns a transaction that reports its statements.
func RecordedTx(tx *Tx, report func(query string, args []any)) *Tx {
	return &Tx{Queries: Queries{run: recorder{tx.run, report}, postgres: tx.postgres}}
}

// recorder reports the statements that pass through it.
type recorder struct {
	runner
	report func(query string, args []any)
}

func (r recorder) exec(ctx context.Context, query string, args ...any) (int64, error) {
	r.report(query, args)
	return r.runner.exec(ctx, query, args...)
}

func (r recorder) query(ctx context.Context, each func(Scanner) (bool, error), query string, args ...any) error {
	r.report(query, args)
	return r.runner.query(ctx, each, query, args...)
}

func (r recorder) send(ctx context.Context, each func(Scanner) (bool, error), query string, args ...any) error {
	r.report(query, args)
	return r.runner.send(ctx, each, query, args...)
}

// Intercepted returns the database with each transaction run by around, which can fail it before it begins or after it
// was committed, as a lost connection does.
func Intercepted(s *DB, around func(transaction func() error) error) *DB {
	return &DB{Queries: s.Queries, dialect: interceptor{s.dialect, around}}
}

type interceptor struct {
	dialect
	around func(func() error) error
}

func (i interceptor) update(ctx context.Context, fn func(*Tx) error) error {
	return i.around(func() error { return i.dialect.update(ctx, fn) })
}
