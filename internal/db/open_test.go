package db_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/rowtest"
)

// TestSQLiteIsPrivate checks that other users of the machine cannot read the database.
func TestSQLiteIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := db.Open(t.Context(), "sqlite:"+filepath.Join(dir, "quittance.db"))
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, s.Close()) }()
	files, err := os.ReadDir(dir)
	rowtest.Must(t, err)
	if len(files) != 3 {
		t.Errorf("%v; want the database, its log and its index", files)
	}
	for _, f := range files {
		info, err := f.Info()
		rowtest.Must(t, err)
		if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", f.Name(), info.Mode())
		}
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	rowtest.Must(t, os.WriteFile(file, []byte("this is not a database, and is long enough to be told from one"), 0o600))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	rowtest.Must(t, err)
	down := l.Addr().String() // an address on which no server listens
	rowtest.Must(t, l.Close())
	for name, test := range map[string]struct {
		url  string
		want []string // texts in the message
	}{
		"nothing":           {"", []string{"sqlite:PATH", "postgres://"}},
		"another database":  {"mysql://root:hunter2@localhost/db", []string{"mysql:", "sqlite:PATH"}},
		"a path alone":      {"quittance.db", []string{"quittance.db", "sqlite:PATH"}},
		"sqlite of nothing": {"sqlite:", []string{"path", "sqlite:quittance.db"}},
		"below a file":      {"sqlite:" + file + "/q.db", []string{file, "folder"}},
		"a folder":          {"sqlite:" + dir, []string{dir}},
		"not a database":    {"sqlite:" + file, []string{"not a database"}},
		"PostgreSQL down":   {"postgres://quittance:hunter2@" + down + "/db?sslmode=disable", []string{down, "connect to PostgreSQL"}},
		"several hosts":     {"postgres://quittance:hunter2@" + down + "," + down[:len(down)-1] + "/db?sslmode=prefer", []string{down + " or " + down[:len(down)-1], "connect to PostgreSQL"}},
		"a broken URL":      {"postgres://quittance:hunter2@host:port/db", []string{"postgres://USER:PASSWORD@HOST:PORT/DATABASE"}},
		"a broken option":   {"postgres://quittance:hunter2@host/db?sslmode=maybe", []string{"postgres://"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := db.Open(t.Context(), test.url)
			if err == nil {
				t.Fatalf("it opens (and closes with %v)", s.Close())
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error does not name %q: %v", part, err)
				}
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

func TestOpenGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	for name, url := range dbtest.Databases() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if s, err := db.Open(ctx, url(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v, want context.Canceled", name, s, err)
		}
	}
}

// TestOpenStrangePaths opens databases with paths that look like URLs with options.
func TestOpenStrangePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"plain.db", "with space.db", "a?b=c.db", "a#b.db", "100%41.db", "ü☕.db", "a&mode=memory.db", "new/folder/q.db", "'q'.db"} {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, name)
			s, err := db.Open(t.Context(), "sqlite:"+path)
			rowtest.Must(t, err)
			t.Cleanup(func() { rowtest.Must(t, s.Close()) })
			rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the database is elsewhere: %v", err)
			}
			if !has(t, s, "inv_1") {
				t.Error("what is written is not read")
			}
		})
	}
}

// TestOpenAtOnce opens a new database from several pools at once, which all migrate it.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	const n = 3
	stores := make([]*db.DB, n)
	errs := make([]error, n)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { stores[i], errs[i] = db.Open(ctx, url) })
	}
	wg.Wait()
	rowtest.Must(t, errors.Join(errs...))
	for i, s := range stores {
		rowtest.Insert(t, s, rowtest.Sample(fmt.Sprint("inv_", i), "m"))
	}
	for i := range n {
		if !has(t, stores[0], fmt.Sprint("inv_", i)) {
			t.Errorf("store %d wrote elsewhere", i)
		}
	}
	for _, s := range stores {
		rowtest.Must(t, s.Close())
	}
}
