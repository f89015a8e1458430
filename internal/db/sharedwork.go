package db

import (
	"context"
	"slices"
	"time"
)

// SharedWork is the holder of the lease on some work, and the replicas that would take the lease.
type SharedWork struct {
	Holder     string // empty without a holder
	Candidates []string
}

// ShareWork records for which works the holder would take the lease until a time, extends its leases,
// and returns the state of all works.
func (s *DB) ShareWork(ctx context.Context, holder string, works, wanted []string, now, until time.Time) (map[string]SharedWork, error) {
	var shares map[string]SharedWork
	err := s.heartbeat(ctx, func(tx *Tx) (err error) {
		if err := tx.nominate(ctx, holder, works, wanted, now, until); err != nil {
			return err
		}
		for _, name := range works {
			if err := tx.Send(ctx, nil, "UPDATE leases SET until_ms = $1 WHERE name = $2 AND holder = $3", until.UnixMilli(), name, holder); err != nil {
				return err
			}
		}
		shares, err = tx.sharedWork(ctx, works, now)
		return err
	})
	return shares, During("share work with other replicas", err)
}

// nominate stores for which works the holder would take the lease, and deletes dead replicas.
func (tx *Tx) nominate(ctx context.Context, holder string, works, wanted []string, now, until time.Time) error {
	if err := tx.Send(ctx, nil, "DELETE FROM lease_candidates WHERE until_ms <= $1", now.UnixMilli()); err != nil {
		return err
	}
	for _, name := range works {
		query, args := "DELETE FROM lease_candidates WHERE name = $1 AND holder = $2", []any{name, holder}
		if slices.Contains(wanted, name) {
			query = `INSERT INTO lease_candidates (name, holder, until_ms) VALUES ($1, $2, $3)
				ON CONFLICT (name, holder) DO UPDATE SET until_ms = excluded.until_ms`
			args = append(args, until.UnixMilli())
		}
		if err := tx.Send(ctx, nil, query, args...); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) sharedWork(ctx context.Context, works []string, now time.Time) (map[string]SharedWork, error) {
	type entry struct {
		name, holder string
		holds        bool
	}
	entries, err := QueryAll(ctx, tx, func(row Scanner) (e entry, err error) {
		err = row.Scan(&e.name, &e.holder, &e.holds)
		return e, err
	}, `SELECT name, holder, TRUE FROM leases WHERE until_ms > $1
		UNION ALL SELECT name, holder, FALSE FROM lease_candidates WHERE until_ms > $1`, now.UnixMilli())
	if err != nil {
		return nil, err
	}
	shares := make(map[string]SharedWork, len(works))
	for _, e := range entries {
		if !slices.Contains(works, e.name) {
			continue
		}
		share := shares[e.name]
		if e.holds {
			share.Holder = e.holder
		} else {
			share.Candidates = append(share.Candidates, e.holder)
		}
		shares[e.name] = share
	}
	return shares, nil
}

// LeaveWork ends the holder's leases and nominations.
func (s *DB) LeaveWork(ctx context.Context, holder string) error {
	err := s.heartbeat(ctx, func(tx *Tx) error {
		if err := tx.Send(ctx, nil, "DELETE FROM lease_candidates WHERE holder = $1", holder); err != nil {
			return err
		}
		return tx.Send(ctx, nil, "DELETE FROM leases WHERE holder = $1", holder)
	})
	return During("leave work to other replicas", err)
}
