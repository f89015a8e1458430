package store

import (
	"context"
	"fmt"
	"time"
)

// Worker is a process that makes attempts.
type Worker struct {
	ID string // random, of one run of the process
	// Endpoints is a hash of the endpoints in its configuration. Two workers with
	// the same hash know the same endpoints.
	Endpoints string
}

// RegisterWorker notes that the worker may hold leases until a time.
// It must have returned before the worker asks for a lease, and
// no lease may last longer.
func (s *Store) RegisterWorker(ctx context.Context, w Worker, now, until time.Time) error {
	err := s.Update(ctx, func(tx *Tx) error {
		if err := tx.lockEvents(ctx); err != nil { // one of which may be leased meanwhile
			return err
		}
		if _, err := tx.exec(ctx, "DELETE FROM deliverers WHERE until_ms < $1", now.UnixMilli()); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `INSERT INTO deliverers (id, endpoints, until_ms) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET endpoints = excluded.endpoints, until_ms = excluded.until_ms`, w.ID, w.Endpoints, until.UnixMilli())
		return err
	})
	if err != nil {
		return fmt.Errorf("register a delivery worker: %w", err)
	}
	return nil
}

// DeregisterWorker notes that the worker holds no leases any more.
func (s *Store) DeregisterWorker(ctx context.Context, id string) error {
	err := s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, "DELETE FROM deliverers WHERE id = $1", id)
		return err
	})
	if err != nil {
		return fmt.Errorf("deregister a delivery worker: %w", err)
	}
	return nil
}

// otherWorkers returns how many workers are registered in addition to one.
func (tx *Tx) otherWorkers(ctx context.Context, id string, now time.Time) (int64, error) {
	return queryRow(ctx, &tx.queries, scanSeq, "SELECT count(*) FROM deliverers WHERE id <> $1 AND until_ms > $2", id, now.UnixMilli())
}
