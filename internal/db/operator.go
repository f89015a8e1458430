package db

import (
	"context"
	"fmt"
)

// SchemaVersions returns the newest migration of the database, and the newest that this
// program knows.
func (s *DB) SchemaVersions(ctx context.Context) (found, known int64, err error) {
	found, err = QueryRow(ctx, s, ScanSeq, "SELECT max(version_id) FROM goose_db_version")
	if err != nil {
		return 0, 0, fmt.Errorf("read the database's migrations: %w", err)
	}
	return found, newestMigration(), nil
}

// Product returns the kind of database: sqlite or postgresql.
func (s *DB) Product() string { return s.system() }
