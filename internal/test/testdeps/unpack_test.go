package testdeps_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/quittance/quittance/internal/test/testdeps"
)

// TestUnpacked asks in several processes for a program of a package that is not installed, while the
// package lists are missing. It is downloaded once.
func TestUnpacked(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		"apt-get": `echo "$*" >>` + dir + `/log
			[ "$1" = update ] && { : >` + dir + `/lists; exit; }
			[ -e ` + dir + `/lists ] && : >"$2_1.0_all.deb"`,
		"dpkg-deb": `mkdir -p "$3/usr/bin" && : >"$3/usr/bin/greet"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("QUITTANCE_TEST_INSTALL", "0")
	if path, err := testdeps.Unpacked(t.Context(), "test", "greeter", "greet"); err == nil || !strings.Contains(err.Error(), "greeter") {
		t.Errorf("without leave to install: %s, %v", path, err)
	}
	t.Setenv("QUITTANCE_TEST_INSTALL", "1")
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			path, err := testdeps.Unpacked(t.Context(), "test", "greeter", "greet")
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "download greeter\nupdate\ndownload greeter\n"; err != nil || string(log) != want {
		t.Errorf("apt-get was run with %q, %v; want %q", log, err, want)
	}
}
