package db_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestLockService checks that one service at a time uses a SQLite file, under any of its
// names, and that the error names the file and the process.
func TestLockService(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, alias := filepath.Join(dir, "q.db"), filepath.Join(dir, "alias.db")
	s := dbtest.Open(t, "sqlite:"+path)
	rowtest.Must(t, os.Symlink(path, alias))
	unlock, err := db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	for _, name := range []string{path, alias} {
		_, err := db.LockService("sqlite:" + name)
		for _, want := range []string{path, fmt.Sprintf("process %d", os.Getpid()), "stop that one"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("a second lock of %s: %v; want it to say %q", name, err, want)
			}
		}
	}
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m")) // the lock does not prevent access to the file
	rowtest.Must(t, unlock())
	unlock, err = db.LockService("sqlite:" + alias)
	rowtest.Must(t, err)
	rowtest.Must(t, unlock())
}

func TestLockServiceOnPostgres(t *testing.T) {
	url := dbtest.Postgres(t)
	for range 2 {
		if _, err := db.LockService(url); err != nil {
			t.Error(err)
		}
	}
}
