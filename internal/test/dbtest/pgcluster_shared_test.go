package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// joinEnv makes the test binary join the cluster in the named folder, print its URL and
// folder, and end with its input.
const joinEnv = "STORETEST_JOIN"

func TestMain(m *testing.M) {
	base := os.Getenv(joinEnv)
	if base == "" {
		os.Exit(m.Run())
	}
	c, err := joinCluster(context.Background(), base)
	if err != nil {
		panic(err)
	}
	fmt.Println(c.DSN("postgres"), c.dir)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		panic(err)
	}
	runtime.KeepAlive(c)
}

// waitForJanitor waits until a running janitor has finished.
func waitForJanitor(t *testing.T, base string) {
	t.Helper()
	users, err := openLock(filepath.Join(base, "users"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(flock(users, syscall.LOCK_EX), users.Close()); err != nil {
		t.Fatal(err)
	}
}

// member is a process that uses a shared cluster.
type member struct {
	dsn   string
	dir   string
	cmd   *exec.Cmd
	input io.Closer
}

func startMember(t *testing.T, base string) *member {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), joinEnv+"="+base)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u := &member{cmd: cmd, input: input}
	t.Cleanup(u.kill)
	if _, err := fmt.Fscanln(output, &u.dsn, &u.dir); err != nil {
		t.Fatalf("a process did not join the cluster: %v", err)
	}
	return u
}

func (u *member) leave(t *testing.T) {
	t.Helper()
	if err := errors.Join(u.input.Close(), u.cmd.Wait()); err != nil {
		t.Fatal(err)
	}
}

// kill kills the process. It ignores errors, because the process may have ended before.
func (u *member) kill() {
	_ = u.cmd.Process.Kill()
	_ = u.cmd.Wait()
}

func join(t *testing.T, base string) *Cluster {
	t.Helper()
	c, err := joinCluster(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.users.Close() }) // a test may have closed it
	return c
}

// waitForEnd waits until the server closes the connection.
func waitForEnd(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for {
		if _, err := conn.WaitForNotification(t.Context()); err != nil {
			return
		}
	}
}

func TestExtraSharedClusterEndsWithItsLastUser(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	first, second := startMember(t, base), startMember(t, base)
	if first.dsn != second.dsn {
		t.Errorf("two processes were given the clusters %s and %s, want one", first.dsn, second.dsn)
	}
	watch := connect(t, first.dsn)
	first.leave(t)
	if err := ping(t, second.dsn); err != nil {
		t.Errorf("the first user took the cluster along: %v", err)
	}
	second.kill()
	waitForEnd(t, watch)
	waitForJanitor(t, base)
	if _, err := os.Stat(first.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking for the cluster's files gives %v, want that there are none", err)
	}

	third := startMember(t, base)
	if third.dir == first.dir {
		t.Errorf("a process joined the cluster in %s, which had ended", third.dir)
	}
	if err := ping(t, third.dsn); err != nil {
		t.Error(err)
	}
}

func TestExtraSharedClusterIsStartedOnce(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var clusters [4]*Cluster
	var wg sync.WaitGroup
	for i := range clusters {
		wg.Go(func() {
			var err error
			if clusters[i], err = joinCluster(t.Context(), base); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, c := range clusters {
		if c == nil {
			continue
		}
		if c.dir != clusters[0].dir {
			t.Errorf("joining at once gave the clusters %s and %s, want one", c.dir, clusters[0].dir)
		}
		if err := c.users.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestExtraSharedClusterWithoutJanitorIsReplaced(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	old := join(t, base)
	watch := connect(t, old.DSN("postgres"))
	// The process group includes the child that waits for the lock.
	if err := syscall.Kill(-old.janitor.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = old.janitor.Wait() // it was killed
	if err := old.users.Close(); err != nil {
		t.Fatal(err)
	}

	fresh := join(t, base)
	if err := ping(t, fresh.DSN("postgres")); err != nil {
		t.Error(err)
	}
	waitForEnd(t, watch)
	if _, err := os.Stat(old.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking for the old cluster's files gives %v, want that there are none", err)
	}
}

func TestExtraSharedClusterThatDiedIsReplaced(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	old := join(t, base)
	if err := old.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := join(t, base)
	if fresh.dir == old.dir {
		t.Errorf("a process joined the dead cluster %s", old.dir)
	}
	if err := ping(t, fresh.DSN("postgres")); err != nil {
		t.Error(err)
	}
}

func TestPostgresUsesTheServerItIsGiven(t *testing.T) {
	t.Parallel()
	c, err := StartCluster(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	inner := func() ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPostgresGivesEachTestItsOwnDatabase$", "-test.v")
		cmd.Env = append(os.Environ(), serverEnv+"="+c.DSN("postgres"))
		return cmd.CombinedOutput()
	}
	if out, err := inner(); err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("with %s: %v\n%s", serverEnv, err, out)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := inner(); err == nil || !strings.Contains(string(out), "--- FAIL") {
		t.Errorf("with %s and nobody there, the test ends with %v, want that it fails\n%s", serverEnv, err, out)
	}
}
