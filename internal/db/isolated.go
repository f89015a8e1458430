package db

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quittance/quittance/internal/invoice"
)

// markedCopy is the reason of a mark that a person made.
const markedCopy = "serve --isolated --copy was run on it"

// Errors of isolated copies.
var (
	// ErrMarkedCopy means that a person marked a database as a copy, and a service served it in isolation.
	ErrMarkedCopy = errors.New(`the database is marked as a copy, because "quittance serve --isolated --copy" was run on it. Delete it after the test. ` +
		`If it is the live database, which was marked by mistake, run "quittance recover --config FILE --dismiss": what was written since then is sent to the merchants, and serve starts`)
	// ErrNoCopy means that a database is not marked as a copy.
	ErrNoCopy = errors.New(`the database is not marked as a copy, as one that "quittance backup" made is. If it was restored from a dump or an archive ` +
		`and no service uses it, repeat the command with --copy, which marks it: no service starts on it afterwards`)
	// ErrIsolated means that a copy was served in isolation, and cannot become the live database.
	ErrIsolated = errors.New(`the database is a copy that "quittance serve --isolated" has run on. Its events were sent to no merchant, ` +
		`so it cannot become the live database; restore the backup again, and use that copy`)
)

// MarkIsolated records that the service runs on a copy in isolation. If copied is set, it marks the
// database as a copy, with the age of its newest event. Without it, it returns ErrNoCopy unless the
// database is marked as a copy. It returns a RestoredError for one that waits for a recovery.
func (s *DB) MarkIsolated(ctx context.Context, copied bool, now time.Time) error {
	return s.Update(ctx, func(tx *Tx) error {
		r, err := tx.Recovery(ctx)
		if err != nil {
			return err
		}
		if r.State != RecoveryBackup {
			if !copied {
				return ErrNoCopy
			}
			if err := r.Err(); err != nil { // which the mark would replace
				return err
			}
			newest, err := QueryAll(ctx, tx, ScanTime, "SELECT created_at FROM events ORDER BY seq DESC LIMIT 1")
			if err != nil {
				return fmt.Errorf("read the newest event: %w", err)
			}
			r = Recovery{State: RecoveryBackup, Reason: markedCopy, Since: append(newest, now)[0]}
		}
		_, err = tx.Exec(ctx, "UPDATE recovery SET state = $1, reason = $2, since = $3, isolated_at = coalesce(isolated_at, $4) WHERE id = 1",
			string(r.State), r.Reason, invoice.UnixSeconds(r.Since), invoice.UnixSeconds(now))
		return During("mark the copy", err)
	})
}

// MarkedByHand reports whether a person, and not quittance backup, marked the database as a copy.
func (r Recovery) MarkedByHand() bool { return !r.Isolated.IsZero() && r.Reason == markedCopy }
