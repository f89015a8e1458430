package db_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestUnlockServiceWhileForking unlocks a SQLite file while other descriptors have its locked files, as a child process
// has until it executes its program.
func TestUnlockServiceWhileForking(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quittance.db")
	unlock := expect.Must(db.LockService("sqlite:" + path))
	held := 0
	for _, e := range expect.Must(os.ReadDir("/proc/self/fd")) {
		name := filepath.Join("/proc/self/fd", e.Name())
		if file, err := os.Readlink(name); err == nil && strings.HasPrefix(file, path) {
			same := expect.Must(unix.Dup(expect.Must(strconv.Atoi(e.Name()))))
			t.Cleanup(func() { expect.OK(t, unix.Close(same)) })
			held++
		}
	}
	if held < 2 { // the folder's own descriptor may have become one of the duplicates
		t.Fatalf("%d descriptors of locked files, want one of each", held)
	}
	expect.OK(t, unlock())
	unlock, err := db.LockService("sqlite:" + path)
	expect.OK(t, err)
	expect.OK(t, unlock())
}
