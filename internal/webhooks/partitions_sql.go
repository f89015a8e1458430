package webhooks

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quittance/quittance/internal/db"
)

const (
	// partitionsLock is the key of PostgreSQL's advisory lock on making and dropping partitions.
	partitionsLock = 0x71756975
	// partitionSpan is the time span of the events of one partition of attempts, and minPartition is the
	// least number of events of a partition.
	partitionSpan = 24 * time.Hour
	minPartition  = 1_000_000
	// partitionLead is how far above the newest event a partition begins that is made late, when the
	// default partition already has the attempts of new events.
	partitionLead = minPartition / 10
	// maxDropped bounds the partitions that one call drops.
	maxDropped = 10
)

// partitionLocks bounds the wait for locks, because writers of events and attempts wait behind
// it.
const partitionLocks = "SET LOCAL lock_timeout = 1000"

// partition is a partition of attempts: of the events with numbers from one on, and below another.
type partition struct {
	name     string
	from, to int64
}

// MaintainPartitions makes a partition for the attempts of the next events, if the last one is for
// less than a day, and drops partitions if all their events were created before a time and none is
// pending. Attempts without a partition are in a default one, so it does not matter when this is
// called. Two processes take turns.
//
// It returns the time before which the attempts of events must be deleted row by row, because their
// partition will not be dropped soon. SQLite has no partitions.
func (s Tables) MaintainPartitions(ctx context.Context, now, before time.Time) (rowsBefore time.Time, err error) {
	if !s.DB.OnPostgres() {
		return before, nil
	}
	rowsBefore = before.Add(-partitionSpan)
	if err := makePartition(ctx, s.DB, now); err != nil && !isLocked(err) {
		return rowsBefore, fmt.Errorf("make a partition: %w", err)
	}
	for range maxDropped {
		switch dropped, err := dropPartition(ctx, s.DB, before); {
		case isLocked(err): // the next call tries again
			return rowsBefore, nil
		case err != nil:
			return rowsBefore, fmt.Errorf("drop a partition: %w", err)
		case !dropped:
			return rowsBefore, nil
		}
	}
	return rowsBefore, nil
}

// isLocked reports whether a statement waited too long for a lock.
func isLocked(err error) bool {
	const lockNotAvailable = "55P03"
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == lockNotAvailable
}

// makePartition makes the next partition if it is needed.
func makePartition(ctx context.Context, s *db.DB, now time.Time) error {
	return s.Update(ctx, func(tx *db.Tx) error {
		all, err := lockPartitions(ctx, tx)
		if err != nil || len(all) == 0 {
			return err
		}
		newest, err := NewReader(tx).LastSeq(ctx)
		if err != nil {
			return err
		}
		before, _, err := firstSeqs(ctx, tx, now.Add(-partitionSpan))
		if err != nil {
			return err
		}
		size, from := max(minPartition, newest-before), all[len(all)-1].to
		if from > newest+size/2 {
			return nil
		}
		if from <= newest {
			from = newest + partitionLead
		}
		name := "attempts_" + strconv.FormatInt(from, 10)
		for _, statement := range []string{
			"CREATE TABLE " + name + " (LIKE attempts INCLUDING ALL)",
			fmt.Sprintf("ALTER TABLE attempts ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)", name, from, from+size),
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropPartition drops the oldest partition that retention ends.
func dropPartition(ctx context.Context, s *db.DB, before time.Time) (dropped bool, err error) {
	err = s.Update(ctx, func(tx *db.Tx) error {
		dropped = false
		all, err := lockPartitions(ctx, tx)
		if err != nil {
			return err
		}
		newest, err := NewReader(tx).LastSeq(ctx)
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.to > newest {
				return nil
			}
			if dropped, err = dropIfOver(ctx, tx, p, before); dropped || err != nil {
				return err
			} // a later one may have ended, if a clock was wrong
		}
		return nil
	})
	return dropped, err
}

// dropIfOver drops a partition, unless retention keeps one of its events.
func dropIfOver(ctx context.Context, tx *db.Tx, p partition, before time.Time) (dropped bool, err error) {
	if over, err := isOver(ctx, tx, p, before); !over || err != nil {
		return false, err
	}
	if kept, err := hasPending(ctx, tx, p); kept || err != nil {
		return false, err
	}
	_, err = tx.Exec(ctx, "DROP TABLE "+p.name)
	return err == nil, err
}

// isOver reports whether the events of a partition were created before a time. It requires this of
// nine tenths of its last thousand events, because some may have been created while a clock was wrong.
func isOver(ctx context.Context, tx *db.Tx, p partition, before time.Time) (bool, error) {
	created, err := db.QueryAll(ctx, tx, db.ScanTime, `SELECT percentile_disc(0.9) WITHIN GROUP (ORDER BY created_at)
		FROM (SELECT created_at FROM events WHERE seq >= $1 AND seq < $2 ORDER BY seq DESC LIMIT 1000) AS last HAVING count(*) > 0`, p.from, p.to)
	return len(created) == 0 || created[0].Before(before.Add(-clockSkew)), err
}

// hasPending reports whether an event of a partition has a pending delivery.
func hasPending(ctx context.Context, tx *db.Tx, p partition) (bool, error) {
	pending, err := db.QueryAll(ctx, tx, db.ScanSeq, "SELECT seq FROM deliveries WHERE seq >= $1 AND seq < $2 ORDER BY seq LIMIT 1", p.from, p.to)
	return len(pending) > 0, err
}

var partitionBounds = regexp.MustCompile(`^FOR VALUES FROM \((?:MINVALUE|'?(\d+)'?)\) TO \('?(\d+)'?\)$`)

// lockPartitions returns the partitions of attempts except the default one, in their order, and
// prevents other transactions from making or dropping partitions until the transaction ends. It
// returns no partitions while another transaction does so.
func lockPartitions(ctx context.Context, tx *db.Tx) ([]partition, error) {
	if err := tx.Send(ctx, nil, partitionLocks); err != nil {
		return nil, err
	}
	locked, err := db.QueryRow(ctx, tx, func(row db.Scanner) (locked bool, err error) {
		err = row.Scan(&locked)
		return locked, err
	}, "SELECT pg_try_advisory_xact_lock($1)", partitionsLock)
	if err != nil || !locked {
		return nil, err
	}
	all, err := db.QueryAll(ctx, tx, func(row db.Scanner) (p partition, err error) {
		var bounds string
		if err := row.Scan(&p.name, &bounds); err != nil {
			return p, err
		}
		if m := partitionBounds.FindStringSubmatch(bounds); m != nil {
			p.from, _ = strconv.ParseInt(m[1], 10, 64) // 0 without a bound
			p.to, err = strconv.ParseInt(m[2], 10, 64)
		}
		return p, err
	}, "SELECT inhrelid::regclass::text, pg_get_expr(relpartbound, inhrelid) FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = 'attempts'::regclass")
	all = slices.DeleteFunc(all, func(p partition) bool { return p.to == 0 })
	slices.SortFunc(all, func(a, b partition) int { return int(a.to - b.to) })
	return all, err
}
