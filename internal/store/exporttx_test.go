package store

import (
	"context"
	"time"
)

// The methods below call those of Tx in their own transaction.

// PutEndpoint is Tx.PutEndpoint.
func (s *Store) PutEndpoint(ctx context.Context, e EndpointRow, seal Seal) (first bool, err error) {
	err = s.Update(ctx, func(tx *Tx) error { first, err = tx.PutEndpoint(ctx, e, seal); return err })
	return first, err
}

// StageSecret is Tx.StageSecret.
func (s *Store) StageSecret(ctx context.Context, merchantID string, now time.Time, seal Seal) (version int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error { version, err = tx.StageSecret(ctx, merchantID, now, seal); return err })
	return version, err
}

// PromoteSecret is Tx.PromoteSecret.
func (s *Store) PromoteSecret(ctx context.Context, staged SecretRow, url string, validUntil time.Time) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.PromoteSecret(ctx, staged, url, validUntil) })
}

// DropStagedSecret is Tx.DropStagedSecret.
func (s *Store) DropStagedSecret(ctx context.Context, merchantID string) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.DropStagedSecret(ctx, merchantID) })
}

// Redeliver is Tx.Redeliver.
func (s *Store) Redeliver(ctx context.Context, eventID string, now time.Time) error {
	return s.Update(ctx, func(tx *Tx) error { _, err := tx.Redeliver(ctx, eventID, now); return err })
}

// RedeliverMany is Tx.RedeliverMany.
func (s *Store) RedeliverMany(ctx context.Context, f RedeliverFilter, now time.Time, limit int) (scheduled, next int64, err error) {
	err = s.Update(ctx, func(tx *Tx) error { scheduled, next, err = tx.RedeliverMany(ctx, f, now, limit); return err })
	return scheduled, next, err
}

// ReplaceSealed is Tx.ReplaceSealed.
func (s *Store) ReplaceSealed(ctx context.Context, r, old SecretRow) error {
	return s.Update(ctx, func(tx *Tx) error { return tx.ReplaceSealed(ctx, r, old) })
}
