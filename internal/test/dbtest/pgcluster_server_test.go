package dbtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// script writes a shell script that can be run as the program called name.
func script(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFindServerTakesTheNewest(t *testing.T) {
	root := t.TempDir()
	for dir, version := range map[string]string{"13": "13.9", "16": "16.2", "9.6": "9.6.24"} {
		script(t, filepath.Join(root, dir, "bin"), "postgres", "echo 'postgres (PostgreSQL) "+version+"'")
	}
	script(t, filepath.Join(root, "17", "bin"), "psql", "echo 'psql (PostgreSQL) 17.1'") // a client without a server
	t.Setenv("PATH", root)                                                               // no pg_config
	srv, err := findServer(t.Context(), filepath.Join(root, "*", "bin"))
	if want := filepath.Join(root, "16", "bin", "initdb"); err != nil || srv.bin("initdb") != want {
		t.Errorf("findServer takes %s, %v, want %s", srv.bin("initdb"), err, want)
	}
	if refusesRoot := os.Geteuid() == 0; (srv.cred != nil) != refusesRoot {
		t.Errorf("as uid %d the server is run with the credential %+v", os.Geteuid(), srv.cred)
	}
}

func TestFindServerAsksPath(t *testing.T) {
	root := t.TempDir()
	script(t, root, "pg_config", "echo "+root)
	script(t, root, "postgres", "echo 'postgres (PostgreSQL) 15.0'")
	t.Setenv("PATH", root)
	srv, err := findServer(t.Context(), filepath.Join(root, "none", "*"))
	if err != nil || srv.binDir != root {
		t.Errorf("findServer takes %q, %v, want %q", srv.binDir, err, root)
	}
}

func TestFindServerSaysWhatToInstall(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, "13", "bin"), "postgres", "echo 'postgres (PostgreSQL) 13.9'")
	t.Setenv("PATH", root) // no apt-get
	t.Setenv("QUITTANCE_TEST_INSTALL", "")
	srv, err := findServer(t.Context(), filepath.Join(root, "*", "bin"))
	if err == nil {
		t.Fatalf("findServer takes %s, want an error: version 13 is too old", srv.binDir)
	}
	for _, want := range []string{"15 or newer", "make test", "sudo apt-get install postgresql", serverEnv, "go test -short", "QUITTANCE_TEST_INSTALL"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error %q does not say %q", err, want)
		}
	}
}

// TestFindServerInstalls replaces apt-get by a script. Its first installation fails because of
// outdated package lists.
func TestFindServerInstalls(t *testing.T) {
	root := t.TempDir()
	script(t, root, "apt-get", `
		echo "$DEBIAN_FRONTEND $*" >>`+root+`/calls
		case $1 in
		update) : >`+root+`/updated;;
		install) [ -e `+root+`/updated ] || exit 100
			echo 'echo "postgres (PostgreSQL) 15.3"' >>`+root+`/postgres;;
		esac`)
	script(t, root, "pg_config", "echo "+root)
	script(t, root, "postgres", "")
	t.Setenv("PATH", root)
	t.Setenv("QUITTANCE_TEST_INSTALL", "")
	if srv, err := findServer(t.Context(), filepath.Join(root, "none", "*")); err == nil {
		t.Errorf("findServer takes %q, want an error where nothing may be installed", srv.binDir)
	}
	if _, err := os.Stat(filepath.Join(root, "calls")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("apt-get was called, or: %v", err)
	}
	t.Setenv("QUITTANCE_TEST_INSTALL", "1")
	srv, err := findServer(t.Context(), filepath.Join(root, "none", "*"))
	if os.Geteuid() != 0 {
		if err == nil || !strings.Contains(err.Error(), "only root") {
			t.Errorf("findServer takes %q, %v, want that only root can install", srv.binDir, err)
		}
		return
	}
	if err != nil || srv.binDir != root {
		t.Errorf("findServer takes %q, %v, want what was installed in %q", srv.binDir, err, root)
	}
	calls, err := os.ReadFile(filepath.Join(root, "calls"))
	const (
		install = "noninteractive install -y --no-install-recommends postgresql\n"
		update  = "noninteractive update\n"
	)
	if want := install + update + install; err != nil || string(calls) != want {
		t.Errorf("apt-get was called so: %s%v, want: %s", calls, err, want)
	}
}
