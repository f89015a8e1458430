package dbtest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// serverEnv names the variable with the URL of a server to use instead of
	// starting one. Its user must be allowed to create databases.
	serverEnv = "QUITTANCE_TEST_POSTGRES"
	// sharedTimeout bounds how long a test binary waits for the shared cluster, an installation of PostgreSQL included.
	sharedTimeout = 5 * time.Minute
	// adminTimeout bounds the creation and the removal of one database.
	adminTimeout = time.Minute
	// connectTimeout is the number of seconds that a test's connection may take: the server is busy with other tests.
	connectTimeout = "60"
	// emptyTemplate is PostgreSQL's own template.
	emptyTemplate = "template1"
	// createDatabase copies the template's files. Writing what they contain to the log, the
	// default, takes three times the CPU time.
	createDatabase = "CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy"
)

// Postgres returns the URL of a new, empty PostgreSQL database for one test, which is dropped when the
// test ends. The test fails if no server is available. It is skipped only with -short.
//
// The test binaries of one user that run at the same time share one cluster: the first starts it, and
// it ends with the last of them.
func Postgres(tb testing.TB) string {
	tb.Helper()
	return newPostgres(tb, func() (string, error) { return emptyTemplate, nil })
}

// newPostgres returns the URL of a new database for one test, a copy of a template.
func newPostgres(tb testing.TB, template func() (string, error)) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short leaves out PostgreSQL")
	}
	host, err := sharedHost()
	if err != nil {
		tb.Fatal("dbtest: no PostgreSQL; the reason is printed once, above")
	}
	from, err := template()
	if err != nil {
		tb.Fatalf("dbtest: make a database with the schema: %v", err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := administer(host.url, fmt.Sprintf(createDatabase, name, from)); err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	tb.Cleanup(func() {
		// Force: a test that failed may have left connections open.
		if err := administer(host.url, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("dbtest: %v", err)
		}
	})
	dsn, err := withDatabase(host.url, name)
	if err != nil {
		tb.Fatalf("dbtest: %v", err)
	}
	return dsn
}

// host is the server that the tests of this process use.
type host struct {
	url string
	// cluster is the shared cluster, if the tests use it. It is kept because its lock ends when the file
	// is garbage-collected.
	cluster *Cluster
}

// sharedHost calls findHost once for the process. It prints the error, which all tests would repeat otherwise.
var sharedHost = sync.OnceValues(func() (host, error) {
	h, err := findHost()
	if err != nil {
		fmt.Fprintf(os.Stderr, "dbtest: %v\n", err)
	}
	return h, err
})

// findHost joins or starts the shared cluster, unless a server is given.
func findHost() (host, error) {
	if dsn := os.Getenv(serverEnv); dsn != "" {
		return host{url: dsn}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), sharedTimeout)
	defer cancel()
	base, err := baseDir()
	if err != nil {
		return host{}, err
	}
	c, err := joinCluster(ctx, base)
	if err != nil {
		return host{}, err
	}
	return host{c.DSN("postgres"), c}, nil
}

// joinCluster returns the cluster published in the folder base, or starts and publishes one. The
// caller uses it until it closes the cluster's users lock or ends; when the last user has gone, the
// janitor stops the cluster.
//
// Two locks in base keep order. "start" is held while joining, so one process at a time decides.
// "users" is held shared by every user, and exclusively by the janitor while it stops a cluster.
func joinCluster(ctx context.Context, base string) (c *Cluster, err error) {
	start, err := holdStart(base)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	srv, err := findServer(ctx, debianBinDirs)
	if err != nil {
		return nil, err
	}
	users, err := openLock(filepath.Join(base, "users"))
	if err != nil {
		return nil, err
	}
	defer func() {
		if c == nil {
			err = errors.Join(err, users.Close())
		}
	}()

	published := filepath.Join(base, "cluster")
	if err := flock(users, syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
		// No process uses the old cluster, so its janitor is about to remove it, or was killed. Do its work
		// here; it does not know the new cluster.
		if err := removeStale(ctx, srv, published); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, err
	}
	if err := flock(users, syscall.LOCK_SH); err != nil {
		return nil, err
	}
	found, err := readCluster(srv, published)
	if err != nil {
		return nil, err
	}
	if found != nil && found.running(ctx) {
		found.users = users
		return found, nil
	}

	return startShared(ctx, srv, users, published)
}

// startShared starts a cluster with a janitor and publishes it at a path.
func startShared(ctx context.Context, srv server, users *os.File, path string) (*Cluster, error) {
	dir, err := srv.mkdirTemp(memoryDir())
	if err != nil {
		return nil, err
	}
	fresh := &Cluster{server: srv, dir: dir, users: users}
	// Before the server, so that a server always has a janitor.
	if err := fresh.hireJanitor(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := fresh.create(ctx); err != nil {
		return nil, err
	}
	if err := fresh.publish(path); err != nil {
		return nil, err
	}
	return fresh, nil
}

// removeStale stops the cluster that is published at path, if any, and removes its files.
func removeStale(ctx context.Context, srv server, path string) error {
	c, err := readCluster(srv, path)
	if err != nil || c == nil {
		return err
	}
	if c.running(ctx) {
		if err := c.Kill(ctx); err != nil {
			return err
		}
	}
	if err := errors.Join(os.RemoveAll(c.dir), os.Remove(path)); err != nil {
		return fmt.Errorf("remove a stale cluster: %w", err)
	}
	return nil
}

// readCluster returns the cluster published at path, or nil.
func readCluster(srv server, path string) (*Cluster, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the shared cluster's address: %w", err)
	}
	var a address
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("read the shared cluster's address in %s: %w", path, err)
	}
	return &Cluster{server: srv, dir: a.Dir, port: a.Port}, nil
}

// findServerLocked is findServer for one process at a time: two cannot both install the server.
func findServerLocked(ctx context.Context) (srv server, err error) {
	base, err := baseDir()
	if err != nil {
		return server{}, err
	}
	start, err := holdStart(base)
	if err != nil {
		return server{}, err
	}
	defer func() { err = errors.Join(err, start.Close()) }()
	return findServer(ctx, debianBinDirs)
}

// baseDir returns this user's folder for the shared cluster, and makes it if needed. Others may write
// to its parent folder, so it refuses a folder of another owner.
func baseDir() (string, error) {
	dir := filepath.Join(tempDir(), "quittance-postgres-shared-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", fmt.Errorf("make the folder for PostgreSQL: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", fmt.Errorf("look at the folder for PostgreSQL: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
		return "", fmt.Errorf("%s is not a folder of yours: remove it", dir)
	}
	return dir, nil
}

// holdStart waits for the lock under which clusters are found and started.
func holdStart(base string) (*os.File, error) {
	f, err := openLock(filepath.Join(base, "start"))
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openLock opens a file to be locked.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a lock of the PostgreSQL cluster: %w", err)
	}
	return f, nil
}

// flock locks or relocks f; closing f releases it.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		return nil
	}
}

// administer runs one statement on the server.
func administer(server, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	_, err = conn.Exec(ctx, statement)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// withDatabase returns dsn, a URL or a list of key=value, for another database, with connectTimeout.
func withDatabase(dsn, name string) (string, error) {
	if !strings.Contains(dsn, "://") {
		return dsn + " dbname=" + name + " connect_timeout=" + connectTimeout, nil
	}
	u, err := url.Parse(dsn)
	if err != nil {
		return "", fmt.Errorf("%s is not a URL: %w", serverEnv, err)
	}
	u.Path = "/" + name
	query := u.Query()
	query.Set("connect_timeout", connectTimeout)
	u.RawQuery = query.Encode()
	return u.String(), nil
}
