package store

import (
	"context"
	"time"
)

// AdoptionPeriod is for how long programs of the previous version may go on writing after the first one of this
// version has completed what they wrote: how long a rolling upgrade takes at most. A version is that of the schema:
// a release that completes other rows than the one before needs a migration.
const AdoptionPeriod = 24 * time.Hour

// AdoptionDue reports whether there may be rows that a program of an older version wrote, and that no program of
// this version has completed. It is false once that was done AdoptionPeriod after the first time.
func (s *Store) AdoptionDue(ctx context.Context) (bool, error) {
	done, err := queryRow(ctx, &s.queries, scanSeq, "SELECT count(*) FROM adoptions WHERE schema_version = $1 AND last_at - first_at >= $2",
		newestMigration(), int64(AdoptionPeriod/time.Second))
	return done == 0, err
}

// Adopted records that all rows were completed that programs of older versions wrote before a time.
func (s *Store) Adopted(ctx context.Context, before time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `INSERT INTO adoptions (schema_version, first_at, last_at) VALUES ($1, $2, $2)
			ON CONFLICT (schema_version) DO UPDATE SET last_at = excluded.last_at WHERE adoptions.last_at < excluded.last_at`, newestMigration(), before.Unix())
		return err
	})
}
