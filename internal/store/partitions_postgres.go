package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// partitionAttempts makes attempts a table that is partitioned by the numbers of events, while
// others write to it. The table of before becomes the first partition: its rows are read once,
// without keeping anyone from writing, to prove that they fit. It does nothing if it is done,
// and may be repeated at any point.
func partitionAttempts(ctx context.Context, db *sql.DB) error {
	var kind string
	if err := db.QueryRowContext(ctx, "SELECT relkind::text FROM pg_class WHERE oid = 'attempts'::regclass").Scan(&kind); err != nil || kind == "p" {
		return err
	}
	var bound int64 // far enough above that nobody reaches it during the migration
	if err := db.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) + greatest($1, coalesce(max(seq), 0) / 10) + 1 FROM events", minPartition).Scan(&bound); err != nil {
		return err
	}
	err := inTransactionOf(ctx, db,
		"ALTER TABLE attempts DROP CONSTRAINT IF EXISTS attempts_bound",
		fmt.Sprintf("ALTER TABLE attempts ADD CONSTRAINT attempts_bound CHECK (seq < %d) NOT VALID", bound))
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "ALTER TABLE attempts VALIDATE CONSTRAINT attempts_bound"); err != nil {
		return fmt.Errorf("prove that the attempts fit into a partition: %w", err)
	}
	return inTransactionOf(ctx, db,
		"ALTER TABLE attempts RENAME TO attempts_0",
		"ALTER INDEX attempts_pkey RENAME TO attempts_0_pkey",
		"CREATE TABLE attempts (LIKE attempts_0 INCLUDING DEFAULTS INCLUDING CONSTRAINTS) PARTITION BY RANGE (seq)",
		"ALTER TABLE attempts DROP CONSTRAINT attempts_bound, ADD CONSTRAINT attempts_pkey PRIMARY KEY (seq, number), ADD CONSTRAINT attempts_seq_fkey FOREIGN KEY (seq) REFERENCES events (seq)",
		fmt.Sprintf("ALTER TABLE attempts ATTACH PARTITION attempts_0 FOR VALUES FROM (MINVALUE) TO (%d)", bound),
		"ALTER TABLE attempts_0 DROP CONSTRAINT attempts_bound",
		"CREATE TABLE attempts_default PARTITION OF attempts DEFAULT",
	)
}

// inTransactionOf runs statements that lock tables for a moment. It fails if another
// transaction, such as that of a backup, holds a lock for longer than five seconds.
func inTransactionOf(ctx context.Context, db *sql.DB, statements ...string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range append([]string{"SET LOCAL lock_timeout = 5000"}, statements...) {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("partition the attempts: %w", err), tx.Rollback())
		}
	}
	return tx.Commit()
}
