package db

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quittance/quittance/internal/test/expect"
)

// TestRenameNew renames a file to a free name, and to one that is taken, in both ways.
func TestRenameNew(t *testing.T) {
	t.Parallel()
	for way, rename := range map[string]func(from, to string) error{"rename": renameNew, "link": linkNew} {
		dir := t.TempDir()
		from, to, taken := filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "taken")
		for _, path := range []string{from, taken} {
			expect.OK(t, os.WriteFile(path, []byte(path), 0o600))
		}
		expect.Error(t, fs.ErrExist, "%s to a taken name", way)(rename(from, taken))
		if err := rename(from, to); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if text, err := os.ReadFile(to); err != nil || string(text) != from || linkCount(to) != 1 {
			t.Errorf("%s: the file has %d names and %q, %v", way, linkCount(to), text, err)
		}
		expect.Error(t, fs.ErrNotExist, "%s left the former name", way)(os.Stat(from))
	}
}
