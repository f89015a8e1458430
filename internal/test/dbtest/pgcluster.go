package dbtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Limits of a cluster that this package starts.
const (
	// maxConnections is the server's max_connections: several test binaries, each with a few pools, share one cluster.
	maxConnections = 200
	// startAttempts is how many ports are tried before a start is given up: another process may take a
	// free port before the server listens on it.
	startAttempts = 5
	// firstPort and lastPort bound the ports used. They are below the range from which Linux takes ports of outgoing
	// connections (32768 and up), so that the port of a stopped server stays free until its Restart.
	firstPort, lastPort = 20000, 31999
	// logTail is how many bytes of the server's log an error quotes.
	logTail = 2000
)

// Options configures how StartCluster sets a cluster up. The zero value is a cluster for tests.
type Options struct {
	// Fsync makes commits durable, as in production. Without it the server never waits for the disk: good
	// for tests, but wrong for benchmarks.
	Fsync bool
	// Dir is the folder for its files, in which the server's user may create and remove folders. Empty
	// means a usual one.
	Dir string
	// Settings are further settings of the server, as name=value.
	Settings []string
	// Archive has the server keep its WAL for BaseBackup.RecoverTo.
	Archive bool
}

// Cluster is a running PostgreSQL server with a separate data directory. It collates text by ICU's
// en-US rules, so that a query which relies on byte order, SQLite's, fails in the tests and not at an
// operator's.
//
// When the process that started a Cluster ends, however it ends, the server is stopped and its files
// are removed.
type Cluster struct {
	server  server
	dir     string // holds data/ and log; owned by the server's user
	port    int
	fsync   bool
	more    []string  // settings
	users   *os.File  // releasing this lock stops the cluster
	janitor *exec.Cmd // waits for that release
}

// StartCluster starts a private cluster and returns when it accepts connections. The caller ends it
// with Stop. It looks for PostgreSQL 15 or newer where Debian keeps it and on PATH, and installs it if
// it can; otherwise the error explains what is missing.
func StartCluster(ctx context.Context, opts Options) (*Cluster, error) {
	c, err := newCluster(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// newCluster returns a cluster that has a folder and a janitor, and no data yet.
func newCluster(ctx context.Context, opts Options) (*Cluster, error) {
	srv, err := findServerLocked(ctx)
	if err != nil {
		return nil, err
	}
	parent := cmp.Or(opts.Dir, memoryDir())
	if opts.Fsync && opts.Dir == "" {
		parent = tempDir()
	}
	dir, err := srv.mkdirTemp(parent)
	if err != nil {
		return nil, err
	}
	users, err := openLock(filepath.Join(dir, "users"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := flock(users, syscall.LOCK_SH); err != nil {
		return nil, errors.Join(err, users.Close(), os.RemoveAll(dir))
	}
	c := &Cluster{server: srv, dir: dir, fsync: opts.Fsync, more: opts.Settings, users: users}
	if opts.Archive {
		c.more = slices.Concat(c.more, c.archiving())
	}
	if err := c.hireJanitor(); err != nil {
		return nil, errors.Join(err, users.Close(), os.RemoveAll(dir))
	}
	return c, nil
}

// DSN returns the URL of a database of the cluster, whether or not it exists.
// A new cluster has the one called "postgres".
func (c *Cluster) DSN(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.User("postgres"),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Bin returns the path of a program that came with the server, such as pgbench.
func (c *Cluster) Bin(name string) string { return c.server.bin(name) }

// Kill stops the server immediately, like a power failure: connections break, and buffers are not
// flushed. Restart brings it back.
func (c *Cluster) Kill(ctx context.Context) error {
	return c.pgCtl(ctx, "stop", "-m", "immediate")
}

// Restart starts the server again, on the same port and data, after Kill. It first shuts down a server that still runs.
func (c *Cluster) Restart(ctx context.Context) error {
	if c.running(ctx) {
		if err := c.pgCtl(ctx, "stop", "-m", "fast"); err != nil {
			return err
		}
	}
	return c.launch(ctx)
}

// Stop ends the cluster and removes its files. The Cluster cannot be used afterwards.
func (c *Cluster) Stop() error {
	if err := c.users.Close(); err != nil {
		return fmt.Errorf("release the cluster in %s: %w", c.dir, err)
	}
	if err := c.janitor.Wait(); err != nil {
		return fmt.Errorf("stop the cluster in %s: %w", c.dir, err)
	}
	return nil
}

// create makes the data directory and starts the server on a free port.
func (c *Cluster) create(ctx context.Context) error {
	out, err := c.server.command(ctx, "initdb", "--pgdata", c.data(),
		"--username=postgres", "--auth=trust", "--no-sync", "--no-instructions",
		"--encoding=UTF8", "--locale=C", "--locale-provider=icu", "--icu-locale=en-US").CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", c.dir, err, out)
	}
	return c.launchOnFreePort(ctx)
}

// launchOnFreePort starts the server on a free port.
func (c *Cluster) launchOnFreePort(ctx context.Context) (err error) {
	for range startAttempts {
		if c.port, err = freePort(ctx); err != nil {
			return err
		}
		if err = c.launch(ctx); err == nil {
			return nil
		}
	}
	return err
}

// launch starts the server on the cluster's port and waits until it is ready.
func (c *Cluster) launch(ctx context.Context) error {
	settings := []string{
		"listen_addresses=127.0.0.1", "unix_socket_directories=", "port=" + strconv.Itoa(c.port),
		"max_connections=" + strconv.Itoa(maxConnections),
	}
	if !c.fsync {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=256MB")
	}
	settings = append(settings, c.more...)
	options := "-c " + strings.Join(settings, " -c ")
	if err := c.pgCtl(ctx, "start", "-l", c.log(), "-o", options); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(c.log()))
	}
	return nil
}

// running reports whether the server of the cluster's data directory runs.
func (c *Cluster) running(ctx context.Context) bool {
	return c.pgCtl(ctx, "status") == nil
}

func (c *Cluster) pgCtl(ctx context.Context, action string, args ...string) error {
	args = append([]string{action, "--pgdata", c.data()}, args...)
	if out, err := c.server.command(ctx, "pg_ctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("pg_ctl %s in %s: %w\n%s", action, c.dir, err, out)
	}
	return nil
}

// hireJanitor starts the process that outlives this one to clean up: it waits until no process holds the users lock,
// stops the server and removes its files. The kernel also releases the lock of a process that was killed.
func (c *Cluster) hireJanitor() (err error) {
	const script = `
		"$1" --exclusive 3 || exit
		if [ -e "$3/data/postmaster.pid" ]; then "$2" stop --pgdata "$3/data" -m immediate; fi
		rm -rf "$3"`
	flock, err := exec.LookPath("flock")
	if err != nil {
		return fmt.Errorf("find flock, which a PostgreSQL cluster for tests needs: install the package util-linux: %w", err)
	}
	// Opened again: a lock belongs to the open file, not to the process.
	users, err := openLock(c.users.Name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, users.Close()) }()
	cmd := c.server.system("sh", "-c", script, "janitor", flock, c.Bin("pg_ctl"), c.dir)
	cmd.ExtraFiles = []*os.File{users} // its file descriptor 3
	// A separate session: Ctrl-C on the terminal ends the tests, but not the process that cleans up after them.
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process that removes the cluster: %w", err)
	}
	c.janitor = cmd
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }
func (c *Cluster) log() string  { return filepath.Join(c.dir, "log") }

// address is the information that another process needs to use a cluster.
type address struct {
	Dir  string `json:"dir"`
	Port int    `json:"port"`
}

// publish writes the cluster's address to path atomically.
func (c *Cluster) publish(path string) error {
	text, err := json.Marshal(address{c.dir, c.port})
	if err != nil {
		return fmt.Errorf("encode the cluster's address: %w", err)
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("publish the cluster's address: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("publish the cluster's address: %w", err)
	}
	return nil
}

// freePort returns a port of 127.0.0.1 that is free now.
func freePort(ctx context.Context) (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // a port is no secret
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, fmt.Errorf("no free port of 127.0.0.1 found between %d and %d", firstPort, lastPort)
}

// tail returns the end of a log for an error message.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-logTail):])
}
