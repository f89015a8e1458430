package db

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WorkLease is the exclusive right of one replica to do some work.
type WorkLease struct {
	Name   string // of the work
	Holder string // a random id, never a host name
}

// AcquireWorkLease takes the lease until a time, or extends it for its holder. It
// reports false while another holder has the lease.
//
// Replicas' clocks differ, so a lease may be taken too early. A write under a
// lease therefore checks the holder and not the time.
func (s *DB) AcquireWorkLease(ctx context.Context, l WorkLease, now, until time.Time) (bool, error) {
	var n int64
	err := s.Update(ctx, func(tx *Tx) (err error) {
		n, err = tx.Exec(ctx, `INSERT INTO leases (name, holder, until_ms) VALUES ($1, $2, $4)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
			WHERE leases.holder = excluded.holder OR leases.until_ms <= $3`, l.Name, l.Holder, now.UnixMilli(), until.UnixMilli())
		return err
	})
	return n == 1, err
}

// ReleaseWorkLease ends the lease early. It has no effect if the lease has another holder by now.
func (s *DB) ReleaseWorkLease(ctx context.Context, l WorkLease) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "DELETE FROM leases WHERE name = $1 AND holder = $2", l.Name, l.Holder)
		return err
	})
}

// WithWorkLease runs fn in a transaction during which no other process can take the lease. It returns
// ErrConflict if the lease has another holder.
func (s *DB) WithWorkLease(ctx context.Context, l WorkLease, fn func(*Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := QueryRow(ctx, tx, ScanID, "SELECT name FROM leases WHERE name = $1 AND holder = $2"+tx.ForUpdate(), l.Name, l.Holder)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("the lease %s was lost: %w", l.Name, ErrConflict)
		}
		if err != nil {
			return err
		}
		return fn(tx)
	})
}
