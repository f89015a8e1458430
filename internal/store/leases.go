package store

import (
	"context"
	"errors"
	"fmt"
)

// Lease is the right to do work that one replica does at a time.
type Lease struct {
	Name   string // of the work
	Holder string // a random id, never a host
}

// AcquireLease takes the lease until a time, both times in Unix milliseconds,
// or extends it when its holder has it. It reports false while another holder
// has it.
//
// The clocks of replicas differ, so a lease may be taken too early. A write under
// a lease therefore checks the holder and not the time.
func (s *Store) AcquireLease(ctx context.Context, l Lease, nowMS, untilMS int64) (bool, error) {
	var n int64
	err := s.Update(ctx, func(tx *Tx) (err error) {
		n, err = tx.exec(ctx, `INSERT INTO leases (name, holder, until_ms) VALUES ($1, $2, $4)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms
			WHERE leases.holder = excluded.holder OR leases.until_ms <= $3`, l.Name, l.Holder, nowMS, untilMS)
		return err
	})
	return n == 1, err
}

// ReleaseLease releases the lease before its end. A lease that has another
// holder by now stays as it is.
func (s *Store) ReleaseLease(ctx context.Context, l Lease) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, "DELETE FROM leases WHERE name = $1 AND holder = $2", l.Name, l.Holder)
		return err
	})
}

// under runs fn in a transaction while the lease is held; nobody else can take
// the lease during it. It returns ErrConflict if the lease has another holder.
func (s *Store) under(ctx context.Context, l Lease, fn func(*Tx) error) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := one(ctx, &tx.queries, func(row scanner) (name string, err error) {
			return name, row.Scan(&name)
		}, "SELECT name FROM leases WHERE name = $1 AND holder = $2"+tx.forUpdate(), l.Name, l.Holder)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("the lease %s was lost: %w", l.Name, ErrConflict)
		}
		if err != nil {
			return err
		}
		return fn(tx)
	})
}
