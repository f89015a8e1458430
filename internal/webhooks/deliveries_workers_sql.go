package webhooks

import (
	"context"
	"time"

	"github.com/quittance/quittance/internal/db"
)

// RegisterWorker notes that a worker with a random id runs until a time. endpoints is a hash of the endpoints in its
// configuration: two workers with the same hash know the same endpoints.
func (s Tables) RegisterWorker(ctx context.Context, id, endpoints string, now, until time.Time) error {
	err := s.DB.Update(ctx, func(tx *db.Tx) error {
		if err := tx.Send(ctx, nil, "DELETE FROM deliverers WHERE until_ms < $1", now.UnixMilli()); err != nil {
			return err
		}
		return tx.Send(ctx, nil, `INSERT INTO deliverers (id, endpoints, until_ms) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET endpoints = excluded.endpoints, until_ms = excluded.until_ms`, id, endpoints, until.UnixMilli())
	})
	return db.During("register a delivery worker", err)
}
