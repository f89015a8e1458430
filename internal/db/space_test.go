package db_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
	"github.com/quittance/quittance/internal/webhooks"
)

// vacuumMode returns the file's auto_vacuum: 0 is off, 2 is incremental.
func vacuumMode(t *testing.T, path string) (mode int) {
	t.Helper()
	conn := dbtest.SQL(t, "sqlite:"+path)
	rowtest.Must(t, conn.QueryRowContext(t.Context(), "PRAGMA auto_vacuum").Scan(&mode))
	rowtest.Must(t, conn.Close())
	return mode
}

// fillEvents makes the bodies of a store's events large.
func fillEvents(t *testing.T, s *db.DB, url string) {
	t.Helper()
	dbtest.Schedule(t, s, "shop", 0, 2000, 1000)
	conn := dbtest.SQL(t, url)
	defer func() { rowtest.Must(t, conn.Close()) }()
	for _, statement := range []string{"UPDATE events SET body = hex(randomblob(2000)), created_at = 1", "DELETE FROM deliveries"} {
		_, err := conn.ExecContext(t.Context(), statement)
		rowtest.Must(t, err)
	}
}

// TestFileShrinks removes old events: the file shrinks in steps, and keeps some room.
func TestFileShrinks(t *testing.T) {
	url := dbtest.SQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	s, err := db.Open(t.Context(), url)
	rowtest.Must(t, err)
	if mode := vacuumMode(t, path); mode != 2 {
		t.Errorf("auto_vacuum of a new file is %d, want 2", mode)
	}
	fillEvents(t, s, url)
	const limit = 100
	if more, err := s.ReturnSpace(t.Context(), limit); more || err != nil {
		t.Errorf("space of a full file: %v, %v", more, err)
	}
	for after, more := int64(0), true; more; {
		after, more, err = webhooks.NewTables(s).CleanEvents(t.Context(), time.Unix(100, 0), after, 500)
		rowtest.Must(t, err)
	}
	conn := dbtest.SQL(t, url)
	counts := func() (free, pages int) {
		rowtest.Must(t, conn.QueryRowContext(t.Context(), "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count").Scan(&free, &pages))
		return free, pages
	}
	before, pagesBefore := counts()
	if more, err := s.ReturnSpace(t.Context(), limit); !more || err != nil {
		t.Fatalf("the first step: %v, %v", more, err)
	}
	if free, pages := counts(); free > before-limit || pages > pagesBefore-limit || pages < pagesBefore-limit-2 { // 2 pages of pointers
		t.Errorf("the first step left %d of %d pages free, of %d of %d", free, pages, before, pagesBefore)
	}
	for more := true; more; {
		more, err = s.ReturnSpace(t.Context(), limit)
		rowtest.Must(t, err)
	}
	free, pages := counts()
	if free < pages/10 || free > pages/10+2*limit || pages > pagesBefore/2 {
		t.Errorf("at the end %d of %d pages are free, at first %d of %d", free, pages, before, pagesBefore)
	}
	rowtest.Must(t, conn.Close())
	rowtest.Must(t, s.Close())
	if info, err := os.Stat(path); err != nil || info.Size() > int64(pages)*4096 {
		t.Errorf("the file has %d bytes and %d pages, %v", info.Size(), pages, err)
	}
}

// TestBackupCanShrink backs up a file of an older version, which cannot shrink, and one that can: the copies can.
func TestBackupCanShrink(t *testing.T) {
	url := dbtest.SQLite(t)
	path := strings.TrimPrefix(url, "sqlite:")
	conn := dbtest.SQL(t, url)
	_, err := conn.ExecContext(t.Context(), "CREATE TABLE of_an_older_version (a)")
	rowtest.Must(t, err)
	s := dbtest.Open(t, url)
	if mode := vacuumMode(t, path); mode != 0 {
		t.Fatalf("auto_vacuum of the older file is %d, want 0", mode)
	}
	fillEvents(t, s, url)
	_, err = conn.ExecContext(t.Context(), "DELETE FROM events WHERE seq > 1")
	rowtest.Must(t, err)
	if more, err := s.ReturnSpace(t.Context(), 10); more || err != nil {
		t.Errorf("space of a file that cannot shrink: %v, %v", more, err)
	}
	copied, again := filepath.Join(t.TempDir(), "copy.db"), filepath.Join(t.TempDir(), "again.db")
	rowtest.Must(t, db.Backup(t.Context(), url, copied, time.Now()))
	rowtest.Must(t, db.Backup(t.Context(), "sqlite:"+copied, again, time.Now()))
	for _, path := range []string{copied, again} {
		if mode := vacuumMode(t, path); mode != 2 {
			t.Errorf("auto_vacuum of a copy is %d, want 2", mode)
		}
	}
}
