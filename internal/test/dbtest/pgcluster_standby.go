package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// StartStandby starts a synchronous standby of a primary with durable commits (Options.Fsync), and
// returns once each commit of the primary waits for it. The caller ends it with Stop.
func StartStandby(ctx context.Context, primary *Cluster) (*Cluster, error) {
	c, err := StartReplica(ctx, primary)
	if err != nil {
		return nil, err
	}
	if err := primary.awaitStandby(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// StartReplica starts a standby that commits of the primary do not wait for. The caller ends it with Stop.
func StartReplica(ctx context.Context, primary *Cluster) (*Cluster, error) {
	c, err := newCluster(ctx, Options{Fsync: primary.fsync})
	if err != nil {
		return nil, err
	}
	if err := c.copyFrom(ctx, primary); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if err := c.launchOnFreePort(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// Follow makes a cluster that was killed the synchronous standby of another one, on its former port.
func (c *Cluster) Follow(ctx context.Context, primary *Cluster) error {
	if err := os.RemoveAll(c.data()); err != nil {
		return fmt.Errorf("remove the data of a former primary: %w", err)
	}
	if err := c.copyFrom(ctx, primary); err != nil {
		return err
	}
	return errors.Join(c.launch(ctx), primary.awaitStandby(ctx))
}

// Promote makes a standby a primary, and returns once it takes writes.
func (c *Cluster) Promote(ctx context.Context) error { return c.pgCtl(ctx, "promote") }

// KillNine kills the server's processes by SIGKILL.
func (c *Cluster) KillNine() error {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return fmt.Errorf("find the server's process: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("find the server's process: %w", err)
	}
	// Without such a file, its children notice on their own that it is gone.
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the server: %w", err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		if n, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended
		}
	}
	return nil
}

// HostsDSN returns the URL of a database that names all of the clusters, in this order.
func HostsDSN(database string, clusters ...*Cluster) string {
	var hosts []string
	for _, c := range clusters {
		hosts = append(hosts, "127.0.0.1:"+strconv.Itoa(c.port))
	}
	u := url.URL{
		Scheme: "postgres", User: url.User("postgres"), Host: strings.Join(hosts, ","), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// copyFrom makes the data directory a copy of the primary's that follows it.
func (c *Cluster) copyFrom(ctx context.Context, primary *Cluster) error {
	out, err := c.server.command(ctx, "pg_basebackup", "--pgdata", c.data(), "--dbname", primary.DSN("postgres"),
		"--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pg_basebackup to %s: %w\n%s", c.dir, err, out)
	}
	return nil
}

// awaitStandby makes every commit wait for a standby from now on, and returns once there is one.
func (c *Cluster) awaitStandby(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the primary: %w", err)
	}
	defer conn.Close(ctx) //nolint:errcheck // a failure has no consequences
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	for standbys := 0; standbys == 0; {
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_replication, pg_sleep(0.05) WHERE sync_state = 'sync'").Scan(&standbys); err != nil {
			return fmt.Errorf("wait for the standby: %w", err)
		}
	}
	// Commits wait once the checkpointer has read the setting, which it does before a checkpoint.
	if _, err := conn.Exec(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("wait for the checkpointer: %w", err)
	}
	return nil
}
