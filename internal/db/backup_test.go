package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/webhooks"
)

// TestBackup backs up a database during writes, and opens the copy.
func TestBackup(t *testing.T) {
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 100, 1000)
	dir := t.TempDir()
	path := filepath.Join(dir, "copy.db")
	var both errgroup.Group
	both.Go(func() error { return db.Backup(t.Context(), url, path, time.Now()) })
	dbtest.Schedule(t, s, "shop", 100, 100, 1000)
	expect.OK(t, both.Wait())
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the backup has the mode %v, %v", info.Mode(), err)
	}
	copied := dbtest.Open(t, "sqlite:"+path)
	events, err := webhooks.NewReader(copied).Events(t.Context(), webhooks.EventFilter{After: new(int64), Limit: 200})
	if err != nil || len(events) < 100 {
		t.Errorf("the backup has %d events, %v", len(events), err)
	}
}

// TestBackupRefuses backs up an unsuitable database, and to unsuitable paths. Existing
// files stay unchanged, and no new one is left behind.
func TestBackupRefuses(t *testing.T) {
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 1, 1000)
	dir := t.TempDir()
	write := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		expect.OK(t, os.WriteFile(path, []byte("mine"), 0o600))
		return path
	}
	taken := write("taken.db")
	write("busy.db.partial")
	damaged := write("damaged")
	for name, test := range map[string]struct{ url, to, want string }{
		"PostgreSQL":         {"postgres://db/quittance", "a.db", "pg_dump"},
		"no database":        {"sqlite:" + filepath.Join(dir, "none.db"), "a.db", "no such file"},
		"no database's file": {"sqlite:" + damaged, "a.db", "not a database"},
		"a file":             {url, "taken.db", "exists already"},
		"another backup":     {url, "busy.db", "another backup is in progress"},
		"no folder":          {url, "none/a.db", "no such file"},
	} {
		err := db.Backup(t.Context(), test.url, filepath.Join(dir, test.to), time.Now())
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, db.ErrNoBackup) != (name == "PostgreSQL") {
			t.Errorf("%s: %v; want %q", name, err, test.want)
		}
	}
	if text, err := os.ReadFile(taken); err != nil || string(text) != "mine" {
		t.Errorf("it overwrote a file: %q, %v", text, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 3 {
		t.Errorf("it left %q behind, %v", files, err)
	}
}
