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

	"golang.org/x/sync/errgroup"

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

// TestNoPlaintext connects to another host without TLS only if the URL says so.
func TestNoPlaintext(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for url, want := range map[string]bool{
		"postgres://a/db": false, "postgres://a:1,b:2/db": false, "postgres://a/db?sslmode=prefer": true, "postgres://127.0.0.1/db": true, "postgres://localhost/db": true,
	} {
		if got, err := db.FallsBack(url); got != want || err != nil {
			t.Errorf("%s falls back to plaintext: %t, %v", url, got, err)
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
			expect.List(t, use(step.host, int64(i)), step.want, "step %d: former hosts are", i)
		}
		for i := range db.MaxFormerHosts {
			use(fmt.Sprintf("host%d.example", i), int64(100+i))
		}
		if got := use("now.example", 1000); len(got) != db.MaxFormerHosts || slices.Contains(got, "a.example") {
			t.Errorf("%d former hosts are known: %q", len(got), got)
		}
	})
}

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

// TestSecondName gives a database a second name by a hard link. No service and no command uses it
// under either name, until one name is left.
func TestSecondName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, second := filepath.Join(dir, "q.db"), filepath.Join(dir, "elsewhere", "second.db")
	s := dbtest.Open(t, "sqlite:"+path)
	rowtest.Insert(t, s, rowtest.Sample("inv_1", "m"))
	rowtest.Must(t, s.Close())
	rowtest.Must(t, os.Mkdir(filepath.Dir(second), 0o700))
	rowtest.Must(t, os.Link(path, second))
	for _, name := range []string{path, second} {
		_, locked := db.LockService("sqlite:" + name)
		_, opened := db.Open(t.Context(), "sqlite:"+name)
		for does, err := range map[string]error{
			"lock": locked, "open": opened, "backup": db.Backup(t.Context(), "sqlite:"+name, filepath.Join(dir, "copy.db"), time.Now()),
		} {
			if err == nil || !strings.Contains(err.Error(), "one file with 2 names") || !strings.Contains(err.Error(), "-samefile "+name) {
				t.Errorf("%s of %s: %v; want an error that says how to find both names", does, name, err)
			}
		}
	}
	rowtest.Must(t, os.Remove(second))
	unlock, err := db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	rowtest.Must(t, unlock())
}

// TestLockedFile checks that the lock is on the database's file too: it holds after the file next to
// it was removed, and for a path with a separate lock file, such as a bind mount of the file.
func TestLockedFile(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // where a file has another path only by a link, see TestSecondName
	}
	path := filepath.Join(t.TempDir(), "q.db")
	unlock, err := db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	rowtest.Must(t, os.Remove(path+".lock"))
	_, err = db.LockService("sqlite:" + path)
	if err == nil || !strings.Contains(err.Error(), "in use by another quittance under another path") {
		t.Errorf("a second lock: %v; want that the file is in use", err)
	}
	rowtest.Must(t, unlock())
	unlock, err = db.LockService("sqlite:" + path)
	rowtest.Must(t, err)
	rowtest.Must(t, unlock())
}

// TestIntact damages a page of a table that no statement reads at the start.
func TestIntact(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	s := dbtest.Open(t, url)
	dbtest.Schedule(t, s, "shop", 0, 200, 1000)
	if complete, err := s.CheckIntact(t.Context()); err != nil || !complete {
		t.Fatalf("an intact file: %t, %v", complete, err)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancel()
	if complete, err := s.CheckIntact(late); err != nil || complete {
		t.Errorf("a check without time: %t, %v; want that it is incomplete", complete, err)
	}
	rowtest.Must(t, s.Close())
	path := strings.TrimPrefix(url, "sqlite:")
	content, err := os.ReadFile(path)
	rowtest.Must(t, err)
	at := strings.Index(string(content), `{"id": "evt_shop_000100"`)
	if at < 0 {
		t.Fatal("the file holds no event")
	}
	clear(content[at-at%4096 : at-at%4096+64]) // the page's header, and the place of its rows
	rowtest.Must(t, os.WriteFile(path, content, 0o600))
	s, err = db.Open(t.Context(), url)
	rowtest.Must(t, err)
	defer func() { rowtest.Must(t, s.Close()) }()
	if complete, err := s.CheckIntact(t.Context()); err == nil || complete || !strings.Contains(err.Error(), "Restore the newest backup") {
		t.Errorf("a damaged file: %t, %v", complete, err)
	}
}

func TestLease(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		one, two := db.WorkLease{Name: "work", Holder: "one"}, db.WorkLease{Name: "work", Holder: "two"}
		for i, step := range []struct {
			lease      db.WorkLease
			now, until int64
			want       bool
		}{
			{one, 100, 200, true},
			{two, 199, 299, false},
			{db.WorkLease{Name: "other work", Holder: "two"}, 199, 299, true},
			{one, 150, 250, true}, // extended
			{two, 249, 349, false},
			{two, 250, 350, true}, // at its end
			{one, 260, 360, false},
			{two, 500, 600, true}, // after its end, and no other has taken it
		} {
			got, err := s.AcquireWorkLease(t.Context(), step.lease, rowtest.AtMS(step.now), rowtest.AtMS(step.until))
			rowtest.Must(t, err)
			expect.Equal(t, got, step.want, "step %d: acquired is", i)
		}
		rowtest.Must(t, s.ReleaseWorkLease(t.Context(), one)) // the lease of another holder, so it has no effect
		if got, err := s.AcquireWorkLease(t.Context(), one, rowtest.AtMS(510), rowtest.AtMS(610)); err != nil || got {
			t.Errorf("a lease was released by another than its holder: %t, %v", got, err)
		}
		rowtest.Must(t, s.ReleaseWorkLease(t.Context(), two))
		if got, err := s.AcquireWorkLease(t.Context(), one, rowtest.AtMS(510), rowtest.AtMS(610)); err != nil || !got {
			t.Errorf("a lease that was given back is not free: %t, %v", got, err)
		}
	})
}

func TestLeaseGoesToOneOfMany(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, s *db.DB) {
		const askers = 16
		got := make([]bool, askers)
		var group errgroup.Group
		for i := range askers {
			group.Go(func() (err error) {
				got[i], err = s.AcquireWorkLease(t.Context(), db.WorkLease{Name: "work", Holder: string(rune('a' + i))}, rowtest.AtMS(1), rowtest.AtMS(2))
				return err
			})
		}
		rowtest.Must(t, group.Wait())
		holders := 0
		for _, held := range got {
			if held {
				holders++
			}
		}
		if holders != 1 {
			t.Errorf("%d of %d got the lease, want one", holders, askers)
		}
	})
}
