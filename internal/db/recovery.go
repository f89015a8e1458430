package db

import (
	"context"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/clock"
	"github.com/quittance/quittance/internal/invoice"
)

// RecoveryState is whether a database may have been restored from a backup.
type RecoveryState string

// States of a database. The service starts only in the first.
const (
	RecoveryNormal    RecoveryState = "normal"
	RecoveryBackup    RecoveryState = "backup"     // it is a copy that Backup made
	RecoverySuspected RecoveryState = "suspected"  // evidence of a lost past was found
	RecoveryUnderWay  RecoveryState = "recovering" // quittance recover has begun, and has not finished
)

// Reasons of RecoveryBackup that Move sets.
const (
	movingReason = "quittance migrate began to move its rows to PostgreSQL, and has not finished"
	movedReason  = "quittance migrate has moved its rows to PostgreSQL"
)

// Recovery is the state of a database.
type Recovery struct {
	State  RecoveryState
	Reason string    // the evidence; empty if the state is normal
	Since  time.Time // when the state began; for a copy, when it was made
	// Isolated is when serve --isolated first ran on the copy; zero if it never did. SetRecovery does not set it.
	Isolated time.Time
	// Ended is when the last recovery ended, and zero if a service has run since. SetRecovery computes it.
	Ended time.Time
}

// Err returns an error that explains the evidence and what to do, or nil if the state is normal or not
// known yet.
func (r Recovery) Err() error {
	switch {
	case r.State == RecoveryNormal, r.State == "":
		return nil
	case r.MarkedByHand():
		return ErrMarkedCopy
	case !r.Isolated.IsZero():
		return ErrIsolated
	}
	return RestoredError{r}
}

// IsMoved reports whether Move has marked the file, so that its rows are, or may be, in PostgreSQL.
func (r Recovery) IsMoved() bool { return r.Reason == movingReason || r.Reason == movedReason }

// RestoredError is why the service does not use a database.
type RestoredError struct{ Recovery Recovery }

// Error explains the evidence and what to do.
func (e RestoredError) Error() string {
	const undo = `if nothing was restored, run "quittance recover --config FILE --dismiss"`
	since := clock.Format(e.Recovery.Since, time.UTC, time.RFC3339)
	switch e.Recovery.Reason {
	case movingReason:
		return fmt.Sprintf(`The database is not used: %s (since %s). Run it again. If it says that the target is not empty, all rows are there: set database in the `+
			`configuration to the target. To stay with this file, empty the target, and run "quittance recover --config FILE --dismiss"`, e.Recovery.Reason, since)
	case movedReason:
		return fmt.Sprintf(`The database is used no more: %s (on %s). Set database in the configuration to the target. `+
			`To go back before a service ran there, run "quittance recover --config FILE --dismiss"`, e.Recovery.Reason, since)
	}
	what, last := "The database may have been restored from a backup", undo
	switch e.Recovery.State {
	case RecoveryUnderWay:
		what, last = "A recovery has begun and has not finished", "it continues where it ended"
	case RecoveryBackup:
		what, last = "The database is a backup", "before it, no payment, refund or event since the backup is known"
	case RecoverySuspected, RecoveryNormal:
	}
	return fmt.Sprintf(`%s: %s (since %s). Stop every replica and run "quittance recover --config FILE", which reads the chains `+
		`from the backup on and reports what a person must check; %s`, what, e.Recovery.Reason, since, last)
}

// Unavailable is the error for a client.
func (e RestoredError) Unavailable() string {
	return "The database may have been restored from a backup, so the service does nothing until its operator has looked at it. Repeat the request later."
}

// recoveryColumns are the columns of Recovery.
const recoveryColumns = "state, reason, since, isolated_at, ended_at"

func scanRecovery(row Scanner) (r Recovery, err error) {
	err = row.Scan(&r.State, &r.Reason, Seconds(&r.Since), Seconds(&r.Isolated), Seconds(&r.Ended))
	return r, err
}

// Recovery returns the state of the database.
func (q *Queries) Recovery(ctx context.Context) (Recovery, error) {
	r, err := QueryRow(ctx, q, scanRecovery, "SELECT "+recoveryColumns+" FROM recovery WHERE id = 1")
	return r, During("read whether the database was restored", err)
}

// SetRecovery sets the state of the database. It returns ErrIsolated for a copy that ran in isolation.
func (tx *Tx) SetRecovery(ctx context.Context, r Recovery) error {
	n, err := tx.Exec(ctx, `UPDATE recovery SET state = $1, reason = $2, since = $3, ended_at = CASE WHEN state = 'recovering' AND CAST($1 AS TEXT) = 'normal' THEN CAST($3 AS BIGINT) END
		WHERE id = 1 AND isolated_at IS NULL`, string(r.State), r.Reason, invoice.UnixSeconds(r.Since))
	if err != nil {
		return fmt.Errorf("record that the database is in state %s: %w", r.State, err)
	}
	if n == 0 {
		return ErrIsolated
	}
	return nil
}

// BeginService records that a service runs. An earlier recovery is then finished for good.
func (s *DB) BeginService(ctx context.Context) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, "UPDATE recovery SET ended_at = NULL WHERE ended_at IS NOT NULL")
		return err
	})
}

// SuspectRestore records evidence that the database was restored, unless its state is already not
// normal.
func (tx *Tx) SuspectRestore(ctx context.Context, reason string, now time.Time) error {
	_, err := tx.Exec(ctx, "UPDATE recovery SET state = 'suspected', reason = $1, since = $2 WHERE id = 1 AND state = 'normal'", reason, now.Unix())
	return During("record that the database may have been restored", err)
}
