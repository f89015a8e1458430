package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/store"
	"github.com/quittance/quittance/internal/store/storetest"
)

// TestLockService checks that one service at a time uses a SQLite file, under any of its
// names, and that the error names the file and the process.
func TestLockService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, alias := filepath.Join(dir, "q.db"), filepath.Join(dir, "alias.db")
	s := storetest.Open(t, "sqlite:"+path)
	must(t, os.Symlink(path, alias))
	unlock, err := store.LockService("sqlite:" + path)
	must(t, err)
	for _, name := range []string{path, alias} {
		_, err := store.LockService("sqlite:" + name)
		for _, want := range []string{path, fmt.Sprintf("process %d", os.Getpid()), "stop that one"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a second lock of %s: %v; want it to say %q", name, err, want)
			}
		}
	}
	insert(t, s, sample("inv_1", "m")) // the lock does not prevent access to the file
	must(t, unlock())
	unlock, err = store.LockService("sqlite:" + alias)
	must(t, err)
	must(t, unlock())
}

func TestLockServiceOnPostgres(t *testing.T) {
	url := storetest.Postgres(t)
	for range 2 {
		if _, err := store.LockService(url); err != nil {
			t.Error(err)
		}
	}
}
