package store_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestSecondName gives a database a second name by a hard link. Neither a service nor a command
// uses it under either name, until one name is left.
func TestSecondName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, second := filepath.Join(dir, "q.db"), filepath.Join(dir, "elsewhere", "second.db")
	s := storetest.Open(t, "sqlite:"+path)
	insert(t, s, sample("inv_1", "m"))
	must(t, s.Close())
	must(t, os.Mkdir(filepath.Dir(second), 0o700))
	must(t, os.Link(path, second))
	for _, name := range []string{path, second} {
		_, locked := store.LockService("sqlite:" + name)
		_, opened := store.Open(t.Context(), "sqlite:"+name)
		for does, err := range map[string]error{
			"lock": locked, "open": opened, "backup": store.Backup(t.Context(), "sqlite:"+name, filepath.Join(dir, "copy.db"), time.Now()),
		} {
			if err == nil || !strings.Contains(err.Error(), "one file with 2 names") || !strings.Contains(err.Error(), "-samefile "+name) {
				t.Errorf("%s of %s: %v; want an error that says how to find both names", does, name, err)
			}
		}
	}
	must(t, os.Remove(second))
	unlock, err := store.LockService("sqlite:" + path)
	must(t, err)
	must(t, unlock())
}

// TestLockedFile checks that the lock is on the database's file too: it holds after the file next to it
// was removed, and for a path with a lock file of its own, as a bind mount of the file has.
func TestLockedFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // where a file has another path only by a link, see TestSecondName
	}
	path := filepath.Join(t.TempDir(), "q.db")
	unlock, err := store.LockService("sqlite:" + path)
	must(t, err)
	must(t, os.Remove(path+".lock"))
	_, err = store.LockService("sqlite:" + path)
	if err == nil || !strings.Contains(err.Error(), "in use by another quittance under another path") {
		t.Errorf("a second lock: %v; want that the file is in use", err)
	}
	must(t, unlock())
	unlock, err = store.LockService("sqlite:" + path)
	must(t, err)
	must(t, unlock())
}

// TestIntact damages a page of a table, which no statement of a start reads.
func TestIntact(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	s := storetest.Open(t, url)
	storetest.Schedule(t, s, "shop", 0, 200, 1000)
	if complete, err := s.CheckIntact(t.Context()); err != nil || !complete {
		t.Fatalf("an intact file: %t, %v", complete, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if complete, err := s.CheckIntact(late); err != nil || complete {
		t.Errorf("a check without time: %t, %v; want that it is incomplete", complete, err)
	}
	must(t, s.Close())
	path := strings.TrimPrefix(url, "sqlite:")
	content, err := os.ReadFile(path)
	must(t, err)
	at := strings.Index(string(content), `{"id": "evt_shop_000100"`)
	if at < 0 {
		t.Fatal("the file holds no event")
	}
	clear(content[at-at%4096 : at-at%4096+64]) // the page's header, and where its rows are
	must(t, os.WriteFile(path, content, 0o600))
	s, err = store.Open(t.Context(), url)
	must(t, err)
	defer func() { must(t, s.Close()) }()
	if complete, err := s.CheckIntact(t.Context()); err == nil || complete || !strings.Contains(err.Error(), "Restore the newest backup") {
		t.Errorf("a damaged file: %t, %v", complete, err)
	}
}
