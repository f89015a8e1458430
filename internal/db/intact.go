package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// IntactTimeout bounds the check of a SQLite file at a start. The check of 208 MB took 7.3 s.
const IntactTimeout = 5 * time.Second

// CheckIntact returns an error if the SQLite file is damaged. It reads the tables and indexes for as long as
// ctx allows, their structure first; complete reports whether it read all. PostgreSQL checks its pages itself.
func (s *DB) CheckIntact(ctx context.Context) (complete bool, err error) {
	db, ok := s.dialect.(*sqliteDB)
	if !ok {
		return true, nil
	}
	var result string
	err = db.read.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&result)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("check the database %s: %w", db.path, err)
	case result != "ok":
		return false, fmt.Errorf("the database %s is damaged: %s. Restore the newest backup; keep the file, since "+
			"sqlite3 can recover rows of it", db.path, result)
	}
	return true, nil
}
