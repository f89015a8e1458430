package testdeps_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestDebianInstallsOneAfterTheOther installs several packages at once with an apt-get that, like the
// real one, fails while another one runs.
func TestDebianInstallsOneAfterTheOther(t *testing.T) {
	dir := t.TempDir()
	const script = `#!/bin/sh
		cd "${0%/*}"
		(set -C; : >running) 2>/dev/null || { echo "$*" >>overlaps; exit 100; }
		/bin/rm running`
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("QUITTANCE_TEST_INSTALL", "1")
	var group errgroup.Group
	for range 16 {
		group.Go(func() error { return testdeps.Debian(t.Context(), "test", "hello") })
	}
	err := group.Wait()
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "only root") {
			t.Errorf("Debian returned %v, want that only root can install", err)
		}
		return
	}
	if err != nil {
		t.Error(err)
	}
	if overlaps, err := os.ReadFile(filepath.Join(dir, "overlaps")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("apt-get was started while another one ran: %s%v", overlaps, err)
	}
}
