package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/quittance/quittance/internal/config"
	"github.com/quittance/quittance/internal/server"
	"github.com/quittance/quittance/internal/test/expect"
)

// TestReplaceFile replaces a report while it is read: the old file is not changed, so that it stays if the new one cannot
// be written.
func TestReplaceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recovery.md")
	expect.OK(t, config.ReplaceFile(path, []byte("old")))
	old := expect.Must(os.Open(path))
	expect.OK(t, writeRecovery(environment{stdout: io.Discard}, server.RecoveryReport{Reason: "new"}, path))
	if text := expect.Must(io.ReadAll(old)); string(text) != "old" {
		t.Errorf("the old file has %q", text)
	}
	if text := expect.Must(os.ReadFile(path)); len(text) < 10 {
		t.Errorf("the new file has %q", text)
	}
	expect.OK(t, old.Close())
	if left := expect.Must(os.ReadDir(filepath.Dir(path))); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
	expect.OK(t, config.ReplaceFile("/dev/null", []byte("x")))
}
