package store

import (
	"context"
	"iter"
)

// load inserts each Rows in a transaction.
func (db *sqliteDB) load(ctx context.Context, s *Store, rows iter.Seq2[Rows, error], report func(LoadProgress)) error {
	if err := s.checkEmpty(ctx); err != nil {
		return err
	}
	p := LoadProgress{Step: LoadInvoices}
	for r, err := range rows {
		if err != nil {
			return err
		}
		if err := s.Append(ctx, r); err != nil {
			return err
		}
		p.Done += len(r.Invoices)
		report(p)
	}
	return nil
}
