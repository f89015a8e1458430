package store

import (
	"context"
	"errors"
	"fmt"
)

// Lease is the right to do a work that one replica does at a time.
type Lease struct {
	Name   string // of the work
	Holder string // a random id, never a host
}

// AcquireLease takes the lease until a time, both times in Unix milliseconds,
// or extends it when its holder has it. It reports false while another holder
// has it.
//
// Clocks of replicas differ, so two may take turns early; what is written
// under a lease asks whether the holder still has it, and no clock.
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

// ReleaseLease gives the lease back, so that another need not wait for its
// end. A lease that is another's by now stays as it is.
func (s *Store) ReleaseLease(ctx context.Context, l Lease) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, "DELETE FROM leases WHERE name = $1 AND holder = $2", l.Name, l.Holder)
		return err
	})
}

// under runs fn in a transaction that the lease's holder alone may make, and
// that nobody else can take the lease during. It is ErrConflict when the
// lease is another's.
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
