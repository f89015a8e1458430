package db_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quittance/quittance/internal/db"
	"github.com/quittance/quittance/internal/test/dbtest"
	"github.com/quittance/quittance/internal/test/expect"
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

// TestConnectTimeout checks that the URL of one host decides how long a connection may take, and that several hosts
// leave time for each other.
func TestConnectTimeout(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]time.Duration{
		"postgres://a/db":                         5 * time.Second,
		"postgres://a/db?connect_timeout=2":       2 * time.Second,
		"postgres://a/db?connect_timeout=60":      time.Minute,
		"postgres://a:1,b:2/db":                   2500 * time.Millisecond,
		"postgres://a:1,b:2/db?connect_timeout=1": time.Second,
		"postgres://a:1,b:2/db?connect_timeout=9": 2500 * time.Millisecond,
	} {
		if got, err := db.ConnectTimeout(url); got != want || err != nil {
			t.Errorf("a connection to %s may take %s, %v; want %s", url, got, err, want)
		}
	}
}

// TestUsePublicHost changes the public host again and again, also back to one that the service had.
func TestUsePublicHost(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		use := func(host string, at int64) []string {
			t.Helper()
			former, err := s.UsePublicHost(t.Context(), host, time.Unix(at, 0))
			expect.OK(t, err)
			return former
		}
		for i, step := range []struct {
			host string
			want []string
		}{{"a.example", nil}, {"a.example", nil}, {"b.example", []string{"a.example"}}, {"c.example", []string{"b.example", "a.example"}}, {"a.example", []string{"c.example", "b.example"}}} {
			if got := use(step.host, int64(i)); !slices.Equal(got, step.want) {
				t.Errorf("step %d: former hosts are %q, want %q", i, got, step.want)
			}
		}
		for i := range db.MaxFormerHosts {
			use(fmt.Sprintf("host%d.example", i), int64(100+i))
		}
		if got := use("now.example", 1000); len(got) != db.MaxFormerHosts || slices.Contains(got, "a.example") {
			t.Errorf("%d former hosts are known: %q", len(got), got)
		}
	})
}
