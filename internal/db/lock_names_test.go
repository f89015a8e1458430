package db_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestSecondName gives a database a second name by a hard link. No service and no command uses it
// under either name, until one name is left.
func TestSecondName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, second := filepath.Join(dir, "q.db"), filepath.Join(dir, "elsewhere", "second.db")
	s := dbtest.Open(t, "sqlite:"+path)
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
	rowtest.Must(t, s.Close())
	rowtest.Must(t, os.Mkdir(filepath.Dir(second), 0o700))
	rowtest.Must(t, os.Link(path, second))
	for _, name := range []string{path, second} {
		_, locked := db.LockService("sqlite:" + name)
		_, opened := db.Open(t.Context(), "sqlite:"+name)
		for does, err := range map[string]error{
			"lock": locked, "open": opened, "backup": db.Backup(t.Context(), "sqlite:"+name, filepath.Join(dir, "copy.db"), time.Now()),
		} {
			if err == nil || !strings.Contains(err.Error(), "one file with 2 names") || !strings.Contains(err.Error(), "-samefile "+name) {
				t.Errorf("%s of %s: %v; want an error that says how to find both names", does, name, err)
			}
		}
	}
	rowtest.Must(t, os.Remove(second))
	unlock, err := db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	rowtest.Must(t, unlock())
}

// TestLockedFile checks that the lock is on the database's file too: it holds after the file next to
// it was removed, and for a path with a separate lock file, such as a bind mount of the file.
func TestLockedFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // where a file has another path only by a link, see TestSecondName
	}
	path := filepath.Join(t.TempDir(), "q.db")
	unlock, err := db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	rowtest.Must(t, os.Remove(path+".lock"))
	_, err = db.LockService("sqlite:" + path)
	if err == nil || !strings.Contains(err.Error(), "in use by another quittance under another path") {
		t.Errorf("a second lock: %v; want that the file is in use", err)
	}
	rowtest.Must(t, unlock())
	unlock, err = db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	rowtest.Must(t, unlock())
}

// TestIntact damages a page of a table that no statement reads at the start.
func TestIntact(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 200, 1000)
	if complete, err := s.CheckIntact(t.Context()); err != nil || !complete {
		t.Fatalf("an intact file: %t, %v", complete, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if complete, err := s.CheckIntact(late); err != nil || complete {
		t.Errorf("a check without time: %t, %v; want that it is incomplete", complete, err)
	}
	rowtest.Must(t, s.Close())
	path := strings.TrimPrefix(url, "sqlite:")
	content, err := os.ReadFile(path)
	rowtest.Must(t, err)
	at := strings.Index(string(content), `{"id": "evt_shop_000100"`)
	if at < 0 {
		t.Fatal("the file holds no event")
	}
	clear(content[at-at%4096 : at-at%4096+64]) // the page's header, and the place of its rows
	rowtest.Must(t, os.WriteFile(path, content, 0o600))
	s, err = db.Open(t.Context(), url)
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, s.Close()) }()
	if complete, err := s.CheckIntact(t.Context()); err == nil || complete || !strings.Contains(err.Error(), "Restore the newest backup") {
		t.Errorf("a damaged file: %t, %v", complete, err)
	}
}
