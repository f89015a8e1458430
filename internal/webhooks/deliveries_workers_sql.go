package webhooks

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// Deliverer is a process that makes attempts.
type Deliverer struct {
	ID string // random, of one run of the process
	// Endpoints is a hash of the endpoints in its configuration. Two workers with
	// the same hash know the same endpoints.
	Endpoints string
}

// RegisterWorker notes that the worker may hold leases until a time.
// It must have returned before the worker asks for a lease, and
// no lease may last longer.
func (s Tables) RegisterWorker(ctx context.Context, w Deliverer, now, until time.Time) error {
	err := s.DB.Update(ctx, func(tx *db.Tx) error {
		if err := lockEvents(ctx, tx); err != nil { // an event may be leased while the lock is awaited
			return err
		}
		if _, err := tx.Exec(ctx, "DELETE FROM deliverers WHERE until_ms < $1", now.UnixMilli()); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO deliverers (id, endpoints, until_ms) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET endpoints = excluded.endpoints, until_ms = excluded.until_ms`, w.ID, w.Endpoints, until.UnixMilli())
		return err
	})
	return db.During("register a delivery worker", err)
}

// DeregisterWorker notes that the worker holds no leases any more.
func (s Tables) DeregisterWorker(ctx context.Context, id string) error {
	err := s.DB.Update(ctx, func(tx *db.Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM deliverers WHERE id = $1", id)
		return err
	})
	return db.During("deregister a delivery worker", err)
}

// otherWorkers returns how many workers are registered in addition to one.
func otherWorkers(ctx context.Context, tx *db.Tx, id string, now time.Time) (int64, error) {
	return db.QueryRow(ctx, tx, db.ScanSeq, "SELECT count(*) FROM deliverers WHERE id <> $1 AND until_ms > $2", id, now.UnixMilli())
}
