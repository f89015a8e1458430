package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quittance/quittance/internal/test/expect"
	"github.com/quittance/quittance/internal/test/testdeps"
)

const (
	// bouncerStart bounds the start of PgBouncer.
	bouncerStart = time.Minute
	// bouncerPool is how many connections PgBouncer has to the server.
	bouncerPool = 8
)

// PgBouncer starts PgBouncer in transaction mode before the server of a postgres:// URL
// for the length of the test, and returns the URL that leads through it.
func PgBouncer(tb testing.TB, target string) string {
	tb.Helper()
	testdeps.Extra(tb, "PgBouncer")
	ctx, cancel := context.WithTimeout(tb.Context(), sharedTimeout)
	defer cancel()
	program, err := testdeps.Program(ctx, "dbtest", "pgbouncer")
	expect.OK(tb, err)
	srv, err := findServerLocked(ctx)
	expect.OK(tb, err)
	dir, err := srv.mkdirTemp(tempDir())
	expect.OK(tb, err)
	tb.Cleanup(func() { expect.NoError(tb, os.RemoveAll(dir)) })
	for range startAttempts {
		var through string
		if through, err = startBouncer(ctx, tb, srv, program, dir, target); err == nil {
			return through
		}
	}
	tb.Fatalf("dbtest: PgBouncer: %v\n%s", err, tail(filepath.Join(dir, "log")))
	return ""
}

// startBouncer starts PgBouncer on a free port, with its files in dir.
func startBouncer(ctx context.Context, tb testing.TB, srv server, program, dir, target string) (through string, err error) {
	tb.Helper()
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	port, err := freePort(ctx)
	if err != nil {
		return "", err
	}
	server := fmt.Sprintf("host=%s port=%s user=%s", u.Hostname(), u.Port(), u.User.Username())
	if password, has := u.User.Password(); has {
		server += " password='" + strings.ReplaceAll(password, "'", "''") + "'"
	}
	text := fmt.Sprintf(`[databases]
* = %s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
logfile = %s
`, server, port, bouncerPool, filepath.Join(dir, "log"))
	settings := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil { //nolint:gosec // PostgreSQL's user reads it
		return "", err
	}
	cmd := srv.system(program, "--quiet", settings)
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := awaitBouncer(ctx, u.String(), ended); err != nil {
		_ = cmd.Process.Kill() // it may have ended
		return "", err
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // "immediate shutdown"
		var exit *exec.ExitError
		if err := <-ended; err != nil && !errors.As(err, &exit) {
			tb.Errorf("stop PgBouncer: %v", err)
		}
	})
	return u.String(), nil
}

// awaitBouncer returns once connections through PgBouncer work. If PgBouncer has ended or takes too
// long, it returns the error of the last connection.
func awaitBouncer(ctx context.Context, through string, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, bouncerStart)
	defer cancel()
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := pgx.Connect(ctx, through)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-retry.C:
		case exit := <-ended:
			return fmt.Errorf("it ended: %w; the last connection: %w", exit, err)
		case <-ctx.Done():
			return err
		}
	}
}
