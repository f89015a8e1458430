package db

import (
	"context"
	"fmt"
)

const (
	// incrementalVacuum is the value of auto_vacuum that lets a file shrink on request.
	incrementalVacuum = 2
	// keptFree is the part of a SQLite file that stays free, as a divisor. New rows replace those that
	// retention removes, so the file need not grow again immediately.
	keptFree = 10
)

// ReturnSpace returns up to limit free pages of a SQLite file to the disk, and reports whether it may
// do more. A tenth of the file stays free. It has no effect on PostgreSQL, which reuses space, and in
// a file that was made without the setting for it. VACUUM would keep the only writer waiting while it
// copies the file, and auto_vacuum = FULL would move pages at each commit.
func (s *DB) ReturnSpace(ctx context.Context, limit int) (more bool, err error) {
	if s.OnPostgres() {
		return false, nil
	}
	err = s.Update(ctx, func(tx *Tx) error {
		free, err := QueryRow(ctx, tx, func(row Scanner) (free int64, err error) {
			var mode, pages int64
			if err = row.Scan(&mode, &free, &pages); mode != incrementalVacuum {
				return 0, err
			}
			return free - pages/keptFree, err
		}, "SELECT auto_vacuum, freelist_count, page_count FROM pragma_auto_vacuum, pragma_freelist_count, pragma_page_count")
		if more = err == nil && free >= int64(limit); !more {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", limit))
		return err
	})
	return more, During("return space to the disk", err)
}
