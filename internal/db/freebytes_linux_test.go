package db_test

import (
	"path/filepath"
	"testing"

	"github.com/quittance/quittance/internal/db"
)

func TestFreeBytes(t *testing.T) {
	t.Parallel()
	if n, err := db.FreeBytes(t.TempDir()); err != nil || n <= 0 {
		t.Errorf("a folder's disk has %d bytes, %v", n, err)
	}
	if _, err := db.FreeBytes(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("the disk of a file that does not exist has room")
	}
}
